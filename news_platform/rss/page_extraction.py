"""The bytes of a page in, its article out, with the text that the feed's own selector names."""

from dataclasses import replace

from news_platform.articles.article import Article, ExtractedPage
from news_platform.articles.extract import inspect_page
from news_platform.articles.page_model import load_page_model, page_features
from news_platform.errors import InputError
from news_platform.html.decode import html_text
from news_platform.isolation.worker import report
from news_platform.rss.feeds import text_of_markup
from news_platform.text.language import detect

FeedPage = tuple[bytes, str, str | None, str]
"""The body of a page, its URL, the charset of its HTTP header, and the selector or ''."""


def extract_feed_page(page: FeedPage) -> ExtractedPage:
    """Extract the article of a page in a worker process."""
    # The first call loads the models, which must not count against this page's deadline.
    detect("ready")
    model = load_page_model()
    report("ready")
    body, url, charset, selector = page
    html = html_text(body, charset)
    found = inspect_page(html, url)
    if found is None:
        return ExtractedPage(Article())
    is_article = model.is_article(page_features(found, html, url))
    return ExtractedPage(_with_selected(found.article, html, selector), is_article)


def _with_selected(article: Article, html: str, selector: str) -> Article:
    # If the template has changed, what the extractor finds is better than nothing.
    text = selected_text(html, selector) if selector else ""
    if not text:
        return article
    language = detect(text)
    return replace(
        article,
        clean_text=text,
        full_text=text,
        language=language.code,
        language_probability=round(language.probability, 3),
        text_source="page",
        confidence=1.0,
    )


def selected_text(html: str, selector: str) -> str:
    """Return the text of the elements that a CSS selector matches; raise InputError if it is none.

    An element inside another one that matches is part of it and does not count twice.
    """
    from resiliparse.parse.html import HTMLTree  # here, so that the poller need not load it

    tree = HTMLTree.parse(html)
    if tree.document is None:
        return ""
    try:
        found = tree.document.query_selector_all(selector)
    except (ValueError, RuntimeError) as error:
        message = f"invalid CSS selector {selector!r}: {error}"
        raise InputError(message, thing=selector) from error
    texts: list[str] = []
    for element in found:
        text = text_of_markup(element.html)
        if text and not any(text in other for other in texts):
            texts.append(text)
    return "\n".join(texts)
