"""Extract the article of a fetched page in a worker process, and re-export `extract_article`."""

from news_platform.articles.extract import Article, extract_article
from news_platform.isolation.worker import report
from news_platform.text.language import detect

__all__ = ["extract_article", "extract_page"]


def extract_page(page: tuple[bytes, str, str | None]) -> Article:
    """Extract the article of (body, URL, charset of the HTTP header or None)."""
    # The first call loads the language model, which must not count against this page's deadline.
    detect("ready")
    report("ready")
    return extract_article(*page)
