"""Targets of worker processes for tests: one that judges quickly, and one with disasters."""

import os
import re
import time

from news_platform.articles.article import Article
from news_platform.corpus.rows import NOT_AN_ARTICLE, ClassifiedPage, CrawlPage, article_row

QUICK = "news_platform_tests.corpus.hostile:judge_quickly"


def judge_quickly(page: CrawlPage) -> ClassifiedPage:
    """Judge a page of these tests by its markup, without loading a model."""
    if "<article>" not in page.html:
        return ClassifiedPage(None, NOT_AN_ARTICLE)
    text = "\n".join(re.findall("<p>(.*?)</p>", page.html))
    article = Article(clean_text=text, title=f"title of {page.url}", language="en")
    return ClassifiedPage(article_row(article, page.url))


def judge_or_die(page: CrawlPage) -> ClassifiedPage:
    """Judge a page, unless its HTML is the name of a disaster."""
    match page.html:
        case "hang":
            time.sleep(600)
        case "crash":
            os._exit(7)
        case "raise":
            raise ValueError("a page that the extractor cannot take")
    return judge_quickly(page)
