"""Small pages of the crawl: articles, lists and broken pages, stored as a collected day."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import polars as pl

from news_platform.ccnews.captures import parse_time, surt_key
from news_platform.datasets.captures import CAPTURES
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.raw_news import RAW_NEWS, raw_news_path, side_path
from news_platform.storage.commit.collected import write_collected
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import write_table
from news_platform.web.urls import reversed_domain
from news_platform_tests.collected import MARKER

DAY = "2025-11-01"
_SENTENCES = (
    "The mayor of {place} said on Monday that the old bridge would close for repairs in spring.",
    "“We have waited for this decision for nine years,” said {name}, who runs a shop nearby.",
    "According to the council, the work will cost four million euros and take eighteen months.",
    "Residents had complained about cracks in the northern pillars since the flood of 2019.",
    "An engineer told reporters that the bridge was safe, but that its bearings were worn out.",
    "The opposition criticised the plan and asked for a ferry while the road is closed.",
    "Buses will take a longer route through the valley, and the school will open later.",
    "A vote on the budget is expected next week, when the council meets for the last time.",
)


def article_html(number: int, *, place: str = "Riverton", paragraphs: int = 8) -> str:
    """Return the page of an article; another number or place gives another text."""
    names = ("Ada Hill", "Ben Marsh", "Cora Field", "Dan Brook")
    name = names[number % len(names)]
    texts = [
        f"{_SENTENCES[(number + at) % len(_SENTENCES)]} Report {number} counts {number * 7 + at} "
        f"cases in {place}, which {name} called a matter of concern for the whole region."
        for at in range(paragraphs)
    ]
    body = "".join(f"<p>{text.format(place=place, name=name)}</p>" for text in texts)
    stated = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": f"{place} closes its old bridge, report {number}",
        "datePublished": "2025-11-01T08:00:00+00:00",
        "author": {"@type": "Person", "name": name},
    }
    return (
        f"<html lang='en'><head><title>{stated['headline']} - The Courier</title>"
        f"<meta property='og:type' content='article'>"
        f"<script type='application/ld+json'>{json.dumps(stated)}</script></head><body>"
        f"<nav><a href='/'>Home</a> <a href='/news'>News</a></nav>"
        f"<main><article><h1>{stated['headline']}</h1><p class='byline'>By {name}</p>{body}"
        "</article></main><footer><p>Copyright The Courier</p></footer></body></html>"
    )


def list_html(number: int) -> str:
    """Return a front page: links to many articles, and no text of its own."""
    items = "".join(
        f"<div class='teaser'><h2><a href='/news/{number}-{at}'>Council of town {at} votes on its "
        f"new budget</a></h2><p>Read more about town {at}.</p></div>"
        for at in range(30)
    )
    return (
        "<html><head><title>The Courier - latest news</title>"
        "<meta property='og:type' content='website'></head><body><nav><a href='/'>Home</a> "
        f"<a href='/shop'>Shop</a></nav><main><h1>Latest news</h1>{items}</main></body></html>"
    )


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page of raw_news."""

    uri: str
    html: str
    fetched_at: str = "2025-11-01T10:00:00+00:00"


def collect_pages(
    store: ObjectStore,
    pages: Sequence[StoredPage],
    *,
    day: str = DAY,
    warc: str = "CC-NEWS-20251101000000-00001.warc.gz",
    language: str = "en",
) -> None:
    """Store pages of one language as one collected WARC with captures, its marker last."""
    when = date.fromisoformat(day)
    columns: dict[str, list[object]] = {
        "uri": [page.uri for page in pages],
        "tree": [page.html for page in pages],
        "text": ["text" for _ in pages],
        "http_date": [page.fetched_at for page in pages],
        "host": [reversed_domain(page.uri) for page in pages],
        "warc_record_offset": [1000 * number for number in range(len(pages))],
    }
    write_table(
        store, raw_news_path(when, language, filename=warc), _filled(columns, RAW_NEWS), RAW_NEWS
    )
    captured: dict[str, list[object]] = {
        "url_surtkey": [surt_key(page.uri) for page in pages],
        "url": [page.uri for page in pages],
        "fetch_time": [parse_time(page.fetched_at) for page in pages],
        "warc_record_offset": [1000 * number for number in range(len(pages))],
        "warc_record_length": [1000 for _ in pages],
    }
    write_table(store, side_path(CAPTURES, when, warc), _filled(captured, CAPTURES), CAPTURES)
    marker = replace(
        MARKER,
        warc=warc,
        day=when,
        rows=len(pages),
        bytes=sum(len(page.html) for page in pages),
        languages={language: len(pages)},
        captures=len(pages),
        source_digest=fingerprint(f"{page.uri} {page.html}" for page in pages),
    )
    write_collected(store, marker)


def _filled(columns: Mapping[str, Sequence[object]], table: Dataset) -> pl.DataFrame:
    empty = [None] * len(next(iter(columns.values())))
    return pl.DataFrame(
        [pl.Series(name, columns.get(name, empty), dtype) for name, dtype in table.schema.items()]
    )
