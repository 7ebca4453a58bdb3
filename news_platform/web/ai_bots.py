"""The AI crawlers whose robots.txt policy we report: their operators and purposes.

Each change to the list gets a new version, because policies are comparable only under one list.
Purposes: `training` collects data for models, `search` builds an index for model answers,
`assistant` fetches on a user's request, `data` sells or shares what it collects.
"""

from dataclasses import dataclass

AI_BOTS_VERSION = "2025-11-01"


@dataclass(frozen=True, slots=True)
class AiBot:
    """One crawler, by its name in robots.txt."""

    name: str
    operator: str
    purpose: str


AI_BOTS = tuple(
    AiBot(name, operator, purpose)
    for name, operator, purpose in (
        ("AI2Bot", "Ai2", "training"),
        ("Ai2Bot-Dolma", "Ai2", "training"),
        ("Amazonbot", "Amazon", "search"),
        ("Amzn-SearchBot", "Amazon", "search"),
        ("Amzn-User", "Amazon", "assistant"),
        ("anthropic-ai", "Anthropic", "training"),
        ("ClaudeBot", "Anthropic", "training"),
        ("Claude-SearchBot", "Anthropic", "search"),
        ("Claude-User", "Anthropic", "assistant"),
        ("Claude-Web", "Anthropic", "assistant"),
        ("Applebot", "Apple", "search"),
        ("Applebot-Extended", "Apple", "training"),
        ("Bytespider", "ByteDance", "training"),
        ("TikTokSpider", "ByteDance", "training"),
        ("CCBot", "Common Crawl", "data"),
        ("cohere-ai", "Cohere", "assistant"),
        ("cohere-training-data-crawler", "Cohere", "training"),
        ("DeepSeekBot", "DeepSeek", "training"),
        ("Diffbot", "Diffbot", "data"),
        ("DuckAssistBot", "DuckDuckGo", "assistant"),
        ("FirecrawlAgent", "Firecrawl", "data"),
        ("Google-Extended", "Google", "training"),
        ("GoogleOther", "Google", "training"),
        ("Google-CloudVertexBot", "Google", "training"),
        ("Google-NotebookLM", "Google", "assistant"),
        ("PanguBot", "Huawei", "training"),
        ("PetalBot", "Huawei", "search"),
        ("img2dataset", "img2dataset", "data"),
        ("ImagesiftBot", "ImageSift", "data"),
        ("FacebookBot", "Meta", "training"),
        ("meta-externalagent", "Meta", "training"),
        ("meta-externalfetcher", "Meta", "assistant"),
        ("MistralAI-User", "Mistral", "assistant"),
        ("GPTBot", "OpenAI", "training"),
        ("OAI-SearchBot", "OpenAI", "search"),
        ("ChatGPT-User", "OpenAI", "assistant"),
        ("PerplexityBot", "Perplexity", "search"),
        ("Perplexity-User", "Perplexity", "assistant"),
        ("Timpibot", "Timpi", "training"),
        ("omgili", "Webz.io", "data"),
        ("omgilibot", "Webz.io", "data"),
        ("Webzio-Extended", "Webz.io", "data"),
        ("YandexAdditional", "Yandex", "training"),
        ("YouBot", "You.com", "search"),
    )
)
