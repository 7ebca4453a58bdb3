"""A worker's target that hangs, crashes or fails for pages that say so."""

import os
import time

from news_platform.corpus.worker import judge_page
from news_platform.corpus.worker_types import CrawlPage, JudgedPage


def judge_or_die(page: CrawlPage) -> JudgedPage:
    """Judge a page, unless its HTML is the name of a disaster."""
    match page.html:
        case "hang":
            time.sleep(600)
        case "crash":
            os._exit(7)
        case "raise":
            raise ValueError("a page that the extractor cannot take")
    return judge_page(page)
