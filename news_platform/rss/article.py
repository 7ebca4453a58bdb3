"""Re-export `extract_article`, which moved to `news_platform.articles.extract`."""

from news_platform.articles.extract import extract_article

__all__ = ["extract_article"]
