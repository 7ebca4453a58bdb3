"""One bucket of at least 2 GB made from real news pages, for the benchmarks of the domain store.

A *short page* is what most of a news archive looks like to a compressor: the head and navigation
of a site (12,000 characters of a real page, the same for all pages of the site) around an article
(the text of another real page). A *full page* is a real page as captured, 175 KB on average.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from fastwarc.warc import ArchiveIterator, WarcRecordType
from resiliparse.extract.html2text import extract_plain_text

from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_ORDER

TEMPLATE_CHARACTERS, ARTICLE_CHARACTERS = 12_000, 3_000
FRAME_ROWS = 500
SCHEMA = {name: RAW_NEWS.full_schema[name] for name in RAW_NEWS_ORDER}


@dataclass(frozen=True, slots=True)
class Page:
    """A real page and its text."""

    html: str
    text: str


def read_pages(bench_data: Path) -> list[Page]:
    """Return the HTML pages of the sample WARC."""
    with (bench_data / "warc" / "bench.warc.gz").open("rb") as file:
        bodies = [
            record.reader.read().decode("utf-8", "replace")
            for record in ArchiveIterator(file, record_types=WarcRecordType.response)
        ]
    html = [body for body in bodies if body.lstrip()[:1] == "<"]
    return [Page(body, extract_plain_text(body, main_content=True)) for body in html]


def iter_short_pages(
    pages: list[Page], count: int, *, domains: int, seed: int
) -> Iterator[pl.DataFrame]:
    """Yield frames of short pages in the order of a crawl: domains mixed, large ones more often."""
    rng = random.Random(seed)
    texts = [page.text for page in pages if len(page.text) > ARTICLE_CHARACTERS]
    for start in range(0, count, FRAME_ROWS):
        yield _frame(
            [_short_page(pages, texts, domains, rng) for _ in range(min(FRAME_ROWS, count - start))]
        )


def _short_page(
    pages: list[Page], texts: list[str], domains: int, rng: random.Random
) -> tuple[str, str, str]:
    site = int(domains * rng.random() ** 1.5)
    template = pages[site % len(pages)].html[:TEMPLATE_CHARACTERS]
    text = rng.choice(texts)
    start = rng.randrange(0, len(text) - ARTICLE_CHARACTERS + 1)
    article = text[start : start + ARTICLE_CHARACTERS]
    return f"com.site-{site:05d}", f"{template}<article><p>{article}</p></article></html>", article


def iter_full_pages(
    pages: list[Page], count: int, *, domains: int, seed: int
) -> Iterator[pl.DataFrame]:
    """Yield frames of full pages; each domain has pages of one site while there are enough."""
    rng = random.Random(seed)
    for start in range(0, count, 50):
        chosen = [rng.choice(pages) for _ in range(min(50, count - start))]
        yield _frame([(f"com.site-{rng.randrange(domains):05d}", p.html, p.text) for p in chosen])


def _frame(rows: list[tuple[str, str, str]]) -> pl.DataFrame:
    size = len(rows)
    hosts, trees, texts = (list(column) for column in zip(*rows, strict=True))
    number = random.Random(trees[0]).randrange(10**9)
    columns: dict[str, object] = {
        "uri": [
            f"https://www.{h.removeprefix('com.')}.com/news/{number + n}"
            for n, h in enumerate(hosts)
        ],
        "tree": trees,
        "text": texts,
        "main_lang": ["en"] * size,
        "langs": [["en", "de", "nl"]] * size,
        "confs": [[301, 340, 352]] * size,
        "http_date": ["2025-11-01T01:44:44+00:00"] * size,
        "http_last_modified": [None] * size,
        "http_charset": ["utf-8"] * size,
        "surt_uri": [f"{h.replace('.', ',')})/news/{number + n}" for n, h in enumerate(hosts)],
        "host": hosts,
        "filename": ["CC-NEWS-20251101004549-04954.warc.gz"] * size,
        "year": ["2025"] * size,
        "month": ["11"] * size,
        "day": ["01"] * size,
        "warc_record_offset": [1000 * (number + n) for n in range(size)],
        "fetch_status": [200] * size,
    }
    return pl.DataFrame(columns, schema=SCHEMA)
