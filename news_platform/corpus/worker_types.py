"""What goes into a worker process and what comes out; importing it loads no extractor."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from news_platform.corpus.rows import ArticleRow

TARGET = "news_platform.corpus.worker:judge_page"
NO_TEXT = "no_text"
NOT_AN_ARTICLE = "not_an_article"


@dataclass(frozen=True, slots=True)
class CrawlPage:
    """A page to judge: its address and its decoded HTML."""

    url: str
    html: str


@dataclass(frozen=True, slots=True)
class JudgedPage:
    """The row of an article, or the reason why the page has none."""

    row: "ArticleRow | None"
    reason: str = ""
