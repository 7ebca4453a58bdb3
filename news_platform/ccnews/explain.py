"""Explain what the crawl has of a page: its records, what was kept of them, what was dropped."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from news_platform.datasets.captures import (
    CAPTURES,
    FEED_CANDIDATES,
    captures_path,
    feed_candidates_path,
)
from news_platform.datasets.collected import Collected
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.dropped_responses import (
    DROPPED,
    DROPPED_RESPONSES,
    dropped_responses_path,
)
from news_platform.datasets.evidence import Evidence
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table
from news_platform.takedowns.spellings import PageAddress

ROOM = "ccnews"
# Newest WARCs whose narrow files are searched, beside those of the days that other rooms name.
_MOST_WARCS = 400
# Of a page that was crawled hundreds of times, the newest captures are shown.
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class CrawlAnswer:
    """The evidence of the crawl, and the days on which it has the page."""

    evidence: tuple[Evidence, ...]
    days: frozenset[str]


def explain_page(store: ObjectStore, page: PageAddress, *, days: Collection[str]) -> CrawlAnswer:
    """Return what the crawl has of a page; `days` are those on which the domain store has it."""
    markers = read_collected(store)
    searched = _searched(markers, days)
    kept = _rows(store, _paths(searched, CAPTURES), CAPTURES, page)
    dropped = _rows(store, _paths(searched, DROPPED_RESPONSES), DROPPED_RESPONSES, page)
    by_warc = {marker.warc: marker for marker in searched}
    evidence = [
        *(_dropped(row) for row in dropped[:_SHOWN]),
        *(one for row in kept[:_SHOWN] for one in _kept(store, row, by_warc[row["filename"]])),
    ]
    if len(kept) > _SHOWN:
        text = f"{len(kept) - _SHOWN} older captures of the page are not shown."
        evidence.append(Evidence(ROOM, "listed", text))
    evidence += _limits(markers, searched, found=bool(evidence))
    return CrawlAnswer(tuple(evidence), frozenset(map(_day, kept)))


def page_html(store: ObjectStore, page: PageAddress, *, day: str) -> str | None:
    """Return the HTML of a page that raw_news has of a day; None once it is expired."""
    markers = read_collected(store, [date.fromisoformat(day)])
    paths = [path for one in markers for path in one.news_paths().values()]
    host = ".".join(reversed(page.domain.split(".")))
    rows = scan_table(store, paths, RAW_NEWS).filter(pl.col("host") == host).select("uri", "tree")
    for uri, tree in rows.collect().iter_rows():
        if page.is_same(uri):
            return None if tree is None else str(tree)
    return None


def explain_feed_links(store: ObjectStore, feeds: Collection[str]) -> Iterator[Evidence]:
    """Yield which sites of the crawl link to a feed, in one of these spellings."""
    searched = _searched(read_collected(store), ())
    frame = scan_table(store, _paths(searched, FEED_CANDIDATES), FEED_CANDIDATES)
    found = frame.filter(pl.col("feed_url").is_in(sorted(feeds)))
    per_host = found.group_by("host").agg(
        pl.col("pages").sum(), pl.struct("year", "month", "day").n_unique().alias("days")
    )
    for host, pages, days in per_host.sort("host").collect().iter_rows():
        site = ".".join(reversed(host.split(".")))
        yield Evidence(
            ROOM,
            "listed",
            f"{pages} crawled pages of {site} on {days} days link to the feed.",
            source="news/feed_candidates",
            details={"site": site},
        )


def _searched(markers: Sequence[Collected], days: Collection[str]) -> list[Collected]:
    """Return the WARCs to search: the newest ones, and all of the given days."""
    newest = {id(marker) for marker in sorted(markers, key=lambda one: one.day)[-_MOST_WARCS:]}
    return [one for one in markers if id(one) in newest or one.day.isoformat() in days]


def _paths(markers: Iterable[Collected], table: Dataset) -> list[str]:
    if table is CAPTURES:
        return [captures_path(one.day, one.warc) for one in markers if one.captures]
    if table is FEED_CANDIDATES:
        return [feed_candidates_path(one.day, one.warc) for one in markers if one.feed_candidates]
    return [dropped_responses_path(one.day, one.warc) for one in markers if one.dropped_responses]


def _rows(
    store: ObjectStore, paths: Sequence[str], table: Dataset, page: PageAddress
) -> list[dict[str, Any]]:
    """Return the rows of a page, newest day first."""
    if table is DROPPED_RESPONSES:  # its files expire
        stored = {info.path for info in store.list(DROPPED)}
        paths = [path for path in paths if path in stored]
    rows = scan_table(store, paths, table)
    # A cheap test for most rows; an IDN may be spelled in two ways.
    if page.domain.isascii() and "xn--" not in page.domain:
        likely = pl.col("uri").str.to_lowercase().str.contains(page.domain, literal=True)
        rows = rows.filter(likely)
    found = [row for row in rows.collect().iter_rows(named=True) if page.is_same(row["uri"] or "")]
    return sorted(found, key=_day, reverse=True)


def _day(row: dict[str, Any]) -> str:
    return f"{row['year']}-{row['month']}-{row['day']}"


def _dropped(row: dict[str, Any]) -> Evidence:
    reason = str(row["reason"])
    return Evidence(
        ROOM,
        "dropped",
        f"The crawl of {_day(row)} has a response that gave no page: {reason.replace('_', ' ')}.",
        source=f"{row['filename']}@{row['offset']}",
        details={"reason": reason, "url": row["uri"], "day": _day(row)},
    )


def _kept(store: ObjectStore, row: dict[str, Any], marker: Collected) -> Iterator[Evidence]:
    at, day = _moment(row["warc_date"]), _day(row)
    length = f"+{row['record_length']}" if row["record_length"] is not None else ""
    yield Evidence(
        ROOM,
        "listed",
        f"Common Crawl captured the page on {day} (HTTP status {row['status'] or 'unknown'}).",
        at=at,
        source=f"{row['filename']}@{row['record_offset']}{length}",
        details=_present(url=row["uri"], day=day, title=row["title"], digest=row["payload_digest"]),
    )
    extracted_at = _moment(marker.collected_at)
    version = row["extractor_version"]
    if marker.is_expired:
        text = f"The row of raw_news is expired; the domain store has the page of {day}."
        yield Evidence(ROOM, "expired", text, at=extracted_at)
        return
    paths = marker.news_paths()
    mine = scan_table(store, paths.values(), RAW_NEWS).filter(pl.col("uri") == row["uri"])
    facts = mine.select("main_lang", pl.col("text").str.len_chars()).head(1)
    for language, characters in facts.collect().iter_rows():
        yield Evidence(
            ROOM,
            "kept",
            f"Extractor {version} kept {characters or 0} characters of text, language {language}.",
            at=extracted_at,
            source=paths[language],
            details={"extractor_version": str(version), "language": str(language)},
        )


def _limits(
    markers: Sequence[Collected], searched: Sequence[Collected], *, found: bool
) -> Iterator[Evidence]:
    """Yield what the answer cannot say."""
    if not markers:
        yield Evidence(ROOM, "absent", "No WARC of the crawl is collected under this root.")
        return
    days = sorted({one.day.isoformat() for one in searched})
    if not found:
        span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        text = f"None of {len(searched)} collected WARCs, {span}, has a record of the page."
        yield Evidence(ROOM, "absent", text, source="news/collected")
    if len(searched) < len(markers):
        text = f"{len(markers) - len(searched)} older WARCs were not searched."
        yield Evidence(ROOM, "unknown", text)
    for missing, what in ((_without_captures, "positions"), (_without_dropped, "dropped pages")):
        if count := sum(map(missing, searched)):
            text = f"{count} WARCs have no record of {what}: switched off, or collected before 0.2."
            yield Evidence(ROOM, "unknown", text)


def _without_captures(marker: Collected) -> bool:
    return marker.captures is None


def _without_dropped(marker: Collected) -> bool:
    return marker.dropped_responses is None


def _moment(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _present(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
