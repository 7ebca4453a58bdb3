"""Remove taken-down pages from raw_news, captures, feed_candidates and dropped_responses.

The files of a WARC are written again without the rows, its marker keeps its fingerprint: nothing
that follows the day becomes stale. feed_candidates is first, because it is computed from the rows
of raw_news, and the marker is last: a run that is killed is repeated with the same result.
"""

import io
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

import polars as pl

from news_platform.datasets.captures import CAPTURES, FEED_CANDIDATES
from news_platform.datasets.collected import Collected
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.dropped_responses import DROPPED_RESPONSES
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.storage.commit.collected import amend_collected, read_collected
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import naming_damaged, path_values, scan_table
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.removed_texts import keep_texts
from news_platform.takedowns.rows import covered_urls, is_covered, may_be_covered
from news_platform.web.urls import reversed_domain

# Files that one scan opens; ten years have millions.
_FILES_PER_SCAN = 2_000


@dataclass(frozen=True, slots=True)
class _Folder:
    """Where the files of a table lie, and the column with the URL of a row."""

    table: Dataset
    url: str

    @property
    def path(self) -> str:
        """Return the folder of all days."""
        return self.table.path.partition("/year=")[0]

    def day_path(self, day: date) -> str:
        """Return the folder of one day."""
        return f"{self.path}/year={day:%Y}/month={day:%m}/day={day:%d}"


_NEWS = _Folder(RAW_NEWS, "uri")
_CAPTURES = _Folder(CAPTURES, "uri")
_FEEDS = _Folder(FEED_CANDIDATES, "feed_url")
_DROPPED = _Folder(DROPPED_RESPONSES, "uri")


def takedown_parts(store: ObjectStore) -> list[TakedownPart]:
    """Return the parts of the four tables of the crawl; each day is a partition."""
    return [
        SimplePart(folder.table.name, partial(find_days, store, folder), partial(clean_day, store))
        for folder in (_NEWS, _CAPTURES, _FEEDS, _DROPPED)
    ]


def find_days(store: ObjectStore, folder: _Folder, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered rows of a table by day; files that no marker names count, too."""
    paths = [info.path for info in store.list(folder.path)]
    found: dict[str, int] = {}
    for start in range(0, len(paths), _FILES_PER_SCAN):
        rows = _likely_rows(store, folder, paths[start : start + _FILES_PER_SCAN], takedowns)
        covered = rows.filter(_is_row_covered(rows, folder, takedowns))
        for year, month, day in covered.select("year", "month", "day").iter_rows():
            key = f"{year}-{month}-{day}"
            found[key] = found.get(key, 0) + 1
    return found


def _likely_rows(
    store: ObjectStore, folder: _Folder, paths: Sequence[str], takedowns: Takedowns
) -> pl.DataFrame:
    names = [folder.url, *(["host"] if folder is _FEEDS else []), "year", "month", "day"]
    likely = may_be_covered(folder.url, takedowns)
    hosts = [reversed_domain(domain) for domain in takedowns.registrable_domains]
    if folder is _NEWS:
        likely = pl.col("host").is_in(hosts)
    if folder is _FEEDS:
        likely |= pl.col("host").is_in(hosts)
    rows = scan_table(store, paths, folder.table).filter(likely).select(names)
    with naming_damaged(store, paths, folder.table):
        return rows.collect()


def _is_row_covered(rows: pl.DataFrame, folder: _Folder, takedowns: Takedowns) -> pl.Series:
    covered = rows[folder.url].is_in(list(covered_urls(rows[folder.url], takedowns)))
    if folder is _FEEDS:
        covered |= _is_host_covered(rows["host"], takedowns)
    return covered


def _is_host_covered(hosts: pl.Series, takedowns: Takedowns) -> pl.Series:
    gone = [host for host in hosts.unique() if takedowns.covers_domain(_natural(host))]
    return hosts.is_in(gone)


def _natural(host: str) -> str:
    return ".".join(reversed(host.split(".")))


def clean_day(store: ObjectStore, day: str, takedowns: Takedowns) -> RemovedData:
    """Rewrite the files of a day that hold covered rows, and bring the markers up to date."""
    at = date.fromisoformat(day)
    markers = {marker.warc: marker for marker in read_collected(store, [at])}
    files = [_WarcFiles.of(warc, infos) for warc, infos in _by_warc(store, at).items()]
    done = RemovedData()
    for one in files:
        cleaned = _clean_warc(store, one, takedowns)
        marker = markers.get(one.warc)
        if marker is not None:
            _amend(store, marker, at, taken_down=cleaned.rows)
        done += cleaned
    return done


def _by_warc(store: ObjectStore, day: date) -> Mapping[str, list[ObjectInfo]]:
    found: dict[str, list[ObjectInfo]] = {}
    for folder in (_NEWS, _CAPTURES, _FEEDS, _DROPPED):
        for info in store.list(folder.day_path(day)):
            found.setdefault(path_values(info.path)["filename"], []).append(info)
    return found


@dataclass(frozen=True, slots=True)
class _WarcFiles:
    """The stored files of one WARC by table."""

    warc: str
    news: tuple[ObjectInfo, ...]
    captures: tuple[ObjectInfo, ...]
    feeds: tuple[ObjectInfo, ...]
    dropped: tuple[ObjectInfo, ...]

    @classmethod
    def of(cls, warc: str, infos: Iterable[ObjectInfo]) -> "_WarcFiles":
        given = list(infos)
        parts = (
            tuple(info for info in given if info.path.startswith(f"{folder.path}/"))
            for folder in (_NEWS, _CAPTURES, _FEEDS, _DROPPED)
        )
        return cls(warc, *parts)


def _clean_warc(store: ObjectStore, files: _WarcFiles, takedowns: Takedowns) -> RemovedData:
    # pyarrow costs 0.4 s, which only those who rewrite should pay.
    from news_platform.ccnews.rewriting import rewrite_captures, rewrite_dropped, rewrite_news

    is_dropped = partial(_dropped_rows, takedowns)
    news = [info for info in files.news if _covered_in(store, info, _NEWS, takedowns)]
    keep_texts(store, _covered_texts(store, news, takedowns))
    done = _clean_feeds(store, files, news, takedowns)
    for infos, rewrite, folder in (
        (files.dropped, rewrite_dropped, _DROPPED),
        (files.captures, rewrite_captures, _CAPTURES),
        (tuple(news), rewrite_news, _NEWS),
    ):
        for info in infos:
            if folder is _NEWS or _covered_in(store, info, folder, takedowns):
                counts = folder is _NEWS or (folder is _DROPPED)
                done += _rewritten(store, info, partial(rewrite, is_dropped=is_dropped), counts)
    return done


def _covered_texts(
    store: ObjectStore, news: Sequence[ObjectInfo], takedowns: Takedowns
) -> Iterator[str | None]:
    for info in news:
        rows = scan_table(store, [info.path], RAW_NEWS).filter(may_be_covered("uri", takedowns))
        likely = rows.select("uri", "text").collect()
        yield from likely.filter(is_covered(likely["uri"], takedowns))["text"]


def _dropped_rows(takedowns: Takedowns, urls: pl.Series) -> pl.Series:
    return is_covered(urls, takedowns)


def _covered_in(
    store: ObjectStore, info: ObjectInfo, folder: _Folder, takedowns: Takedowns
) -> bool:
    rows = _likely_rows(store, folder, [info.path], takedowns)
    return bool(_is_row_covered(rows, folder, takedowns).any())


def _rewritten(
    store: ObjectStore,
    info: ObjectInfo,
    rewrite: Callable[[io.BytesIO, Path], tuple[int, int]],
    counts: bool,
) -> RemovedData:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "part-0.parquet"
        kept, dropped = rewrite(io.BytesIO(store.read(info.path)), target)
        size = target.stat().st_size
        if kept == 0 and info.path.startswith(f"{_NEWS.path}/"):
            store.delete([info.path])  # a language without pages has no file
            size = 0
        elif dropped:
            store.put(info.path, target)
    return RemovedData(dropped if counts else 0, info.size_bytes - size, size)


def _clean_feeds(
    store: ObjectStore, files: _WarcFiles, news: Sequence[ObjectInfo], takedowns: Takedowns
) -> RemovedData:
    """Count the feeds of the hosts that lose pages again, from the pages that stay."""
    done = RemovedData()
    for info in files.feeds:
        rows = scan_table(store, [info.path], FEED_CANDIDATES).select(*FEED_CANDIDATES.schema)
        held = rows.collect()
        hosts = _losing_hosts(store, news, takedowns)
        gone = held["host"].is_in(hosts) | _is_row_covered(held, _FEEDS, takedowns)
        if not gone.any():
            continue
        again = [row for row in _counted_again(store, files, hosts, takedowns)]
        kept = pl.concat([held.filter(~gone), pl.DataFrame(again, held.schema, orient="row")]).sort(
            "host", "feed_url"
        )
        done += _replaced_feeds(store, info, kept, lost=held.height - kept.height)
    return done


def _losing_hosts(
    store: ObjectStore, news: Sequence[ObjectInfo], takedowns: Takedowns
) -> list[str]:
    wanted = [info.path for info in news]
    rows = scan_table(store, wanted, RAW_NEWS).select("uri", "host").collect()
    return rows.filter(is_covered(rows["uri"], takedowns))["host"].unique().to_list()


def _counted_again(
    store: ObjectStore, files: _WarcFiles, hosts: Sequence[str], takedowns: Takedowns
) -> Iterator[tuple[object, ...]]:
    from resiliparse.parse.html import HTMLTree

    from news_platform.ccnews.writer import FeedTally, absolute_feeds
    from news_platform.html.feed_autodiscovery import feed_links

    tally = FeedTally()
    for uri, host, tree in _pages_in_order(store, files, hosts):
        if not takedowns.covers_url(uri):
            links = feed_links(HTMLTree.parse(tree or ""))
            tally.add(absolute_feeds(links, page_uri=uri, host=host, without=takedowns))
    yield from tally.rows()


def _pages_in_order(
    store: ObjectStore, files: _WarcFiles, hosts: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield the pages of some hosts in the order of the WARC, as far as captures know it."""
    paths = [info.path for info in files.news]
    pages = scan_table(store, paths, RAW_NEWS).filter(pl.col("host").is_in(list(hosts)))
    rows = pages.select("uri", "host", "tree").collect()
    captures = scan_table(store, [info.path for info in files.captures], CAPTURES)
    order = captures.select("uri", "record_offset").collect()
    first = order.group_by("uri").agg(pl.col("record_offset").min())
    ordered = rows.join(first, on="uri", how="left").sort("record_offset", maintain_order=True)
    yield from ordered.select("uri", "host", "tree").iter_rows()


def _replaced_feeds(
    store: ObjectStore, info: ObjectInfo, kept: pl.DataFrame, *, lost: int
) -> RemovedData:
    from news_platform.ccnews.rewriting import write_feeds

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "part-0.parquet"
        write_feeds(io.BytesIO(store.read(info.path)), target, kept.to_arrow())
        size = target.stat().st_size
        store.put(info.path, target)
    return RemovedData(max(0, lost), info.size_bytes - size, size)


def _amend(store: ObjectStore, marker: Collected, day: date, *, taken_down: int) -> None:
    """Write the marker with the counts of the files as they are now."""
    if marker.is_expired:
        return
    files = _WarcFiles.of(
        marker.warc,
        [info for info in _by_warc(store, day).get(marker.warc, ())],
    )
    size = sum(info.size_bytes for info in (*files.news, *files.captures, *files.feeds))
    if size == marker.bytes and not taken_down:
        return
    rows = scan_table(store, [info.path for info in files.news], RAW_NEWS)
    pages = rows.select("main_lang", "uri", "http_date").collect()
    languages = {str(name): count for name, count in pages["main_lang"].value_counts().iter_rows()}
    dropped = _dropped_counts(store, files, marker)
    lost = marker.rows - pages.height + sum(marker.dropped.values()) - sum(dropped.values())
    if lost:
        dropped[TAKEN_DOWN] = dropped.get(TAKEN_DOWN, 0) + lost
    amended = replace(
        marker,
        rows=pages.height,
        duplicates=pages.height - pages.select("uri", "http_date").n_unique(),
        bytes=size,
        languages=dict(sorted(languages.items())),
        dropped=dict(sorted(dropped.items())),
        captures=_height(store, files.captures, CAPTURES, marker.captures),
        feed_candidates=_height(store, files.feeds, FEED_CANDIDATES, marker.feed_candidates),
        dropped_responses=_height(
            store, files.dropped, DROPPED_RESPONSES, marker.dropped_responses
        ),
    )
    amend_collected(store, amended)


def _dropped_counts(store: ObjectStore, files: _WarcFiles, marker: Collected) -> dict[str, int]:
    """Return the dropped records by reason, from their table as long as it is kept."""
    if marker.dropped_responses is None or not files.dropped:
        return dict(marker.dropped)
    rows = scan_table(store, [info.path for info in files.dropped], DROPPED_RESPONSES)
    counted = rows.group_by("reason").len().collect()
    refused = {key: count for key, count in marker.dropped.items() if key == TAKEN_DOWN}
    return dict(counted.iter_rows()) | refused


def _height(
    store: ObjectStore, infos: Sequence[ObjectInfo], table: Dataset, before: int | None
) -> int | None:
    if before is None or not infos:
        return before
    return int(
        scan_table(store, [info.path for info in infos], table).select(pl.len()).collect().item()
    )
