"""The entry module of worker processes: a page of the crawl in, its article's row or a reason out.

Only worker processes import it; the models are loaded at import, which has its own deadline.
"""

import gc

from news_platform.articles.article import ExtractedPage, PageAsked, is_error_status, judge_page
from news_platform.articles.block_model import load_model
from news_platform.articles.extract import inspect_page
from news_platform.articles.page_model import load_page_model, page_features
from news_platform.corpus.rows import (
    ERROR_STATUS,
    NO_TEXT,
    NOT_AN_ARTICLE,
    ClassifiedPage,
    CrawlPage,
    article_row,
)
from news_platform.text.language import COMMON_LANGUAGES, detect


def classify_page(page: CrawlPage) -> ClassifiedPage:
    """Extract the article of a page, and decide whether the page is one."""
    if is_error_status(page.status):
        return ClassifiedPage(None, ERROR_STATUS)
    found = inspect_page(page.html, page.url)
    if found is None or not found.article.clean_text:
        return ClassifiedPage(None, NO_TEXT)
    is_article = load_page_model().is_article(page_features(found, page.html, page.url))
    extracted = ExtractedPage(found.article, is_article)
    verdict = judge_page(extracted, url=page.url, asked=PageAsked(status=page.status))
    # Nobody announced the page as an article, so that the model alone can say that it is none.
    if verdict.reason or not is_article:
        return ClassifiedPage(None, NOT_AN_ARTICLE)
    return ClassifiedPage(article_row(found.article, page.url, verdict.doubt))


detect("ready")
detect("ready", COMMON_LANGUAGES)
load_model()
load_page_model()
# Extraction makes many objects and few cycles; what is loaded here never becomes garbage.
gc.freeze()
gc.set_threshold(50_000)
