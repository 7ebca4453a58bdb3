"""Read labelled pages of all kinds under NEWS_PLATFORM_BENCH_DATA: articles and six other kinds."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.article_pages import NEWS_SETS, iter_labelled_pages, page_site, page_url
from news_platform.articles.extract import inspect_page
from news_platform.articles.page_model import PageFeatures, page_features
from news_platform.html.decode import html_text

ARTICLE = "article"
# Sets that label some articles with the root of their site: their own address is not known.
_SITE_LABELS = ("chinese/", "waddle/")
OTHER_KINDS = ("collection", "documentation", "forum", "listing", "product", "service")


@dataclass(frozen=True, slots=True)
class KindPage:
    """A page and its kind; the address is empty where it is not known."""

    key: str
    kind: str
    site: str
    url: str
    html: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class PageRow:
    """The features of a page, and what it is."""

    key: str
    kind: str
    site: str
    features: PageFeatures

    @property
    def is_counted(self) -> bool:
        """Return whether the page counts for the recall: the two sets of news only teach."""
        return self.key.partition("/")[0] not in NEWS_SETS


def iter_kind_pages(data: Path) -> Iterator[KindPage]:
    """Yield the article pages of the corpus, then the pages of other kinds."""
    yield from iter_article_pages(data)
    yield from iter_other_pages(data)


def iter_article_pages(data: Path) -> Iterator[KindPage]:
    """Yield the pages of articles: those of two sets of news, then those of the corpus."""
    for page in iter_labelled_pages(data / "articles"):
        is_site = page.key.partition("/")[0] in _SITE_LABELS and urlsplit(page.url).path in (
            "",
            "/",
        )
        url = "" if is_site else page_url(page.html, page.url)
        yield KindPage(page.key, ARTICLE, page.site, url, page.html)


def iter_other_pages(data: Path) -> Iterator[KindPage]:
    """Yield the pages of other kinds."""
    for path in sorted((data / "pages" / "truth").glob("*.json")):
        label = json.loads(path.read_text())
        yield _other(data / "pages", path.stem, label["page_type"], label["url"])
    labels = json.loads((data / "page_types" / "labels.json").read_text())
    for key, kind in sorted(labels.items()):
        yield _other(data / "page_types", key, kind, "")


def _other(folder: Path, key: str, kind: str, url: str) -> KindPage:
    body = gzip.decompress((folder / "html" / f"{key}.html.gz").read_bytes())
    site = page_site(body, url) or key
    return KindPage(f"{folder.name}/{key}", kind, site, page_url(body, url), body)


def page_row(page: KindPage) -> PageRow | None:
    """Return the features of a page; None for a page without markup."""
    text = html_text(page.html, None)
    found = inspect_page(text, page.url)
    if found is None:
        return None
    return PageRow(page.key, page.kind, page.site, page_features(found, text, page.url))
