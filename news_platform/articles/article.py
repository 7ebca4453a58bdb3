"""The result of extracting an article; importing it loads none of the extractor's libraries."""

from dataclasses import dataclass
from datetime import datetime

from news_platform.datasets import versions

# Version of the rules and weights; stored with every article, raised with every change of them.
EXTRACTOR_VERSION = versions.ARTICLE_EXTRACTOR


@dataclass(frozen=True, slots=True)
class Article:
    """One article; a value that the page does not state is empty.

    `clean_text` is the uncut body, `full_text` all visible text of the main column. `published_at`
    is the date that the page states, in UTC; `published_at_source` says where (json-ld, meta,
    microdata, time, url, visible). `out_links` are absolute, unique, to other hosts only.
    `confidence` is the F1 to expect of `clean_text`, 0 to 1. `text_source` is `page`,
    `json-ld` or `trafilatura`. `is_paywalled` is None if the page does not say.
    """

    clean_text: str = ""
    full_text: str = ""
    title: str = ""
    subtitle: str = ""
    authors: tuple[str, ...] = ()
    published_at: datetime | None = None
    section: str = ""
    tags: tuple[str, ...] = ()
    language: str = ""
    out_links: tuple[str, ...] = ()
    article_type: str = ""
    published_at_source: str = ""
    published_at_has_time: bool = False
    published_at_has_zone: bool = False
    modified_at: datetime | None = None
    image_url: str = ""
    canonical_link: str = ""
    is_paywalled: bool | None = None
    language_probability: float = 0.0
    text_source: str = ""
    confidence: float = 0.0
    extractor_version: str = EXTRACTOR_VERSION
