"""Read the pages of a collected day of raw_news, each with its place in the WARC."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

import polars as pl

from news_platform.corpus.rows import TARGET, CrawlPage, PagePlace
from news_platform.datasets.captures import CAPTURES
from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import side_path
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import iter_frames, scan_table
from news_platform.web.urls import canonical_url, reversed_labels

_NEWER = ("warc_record_offset", "fetch_status")
_COLUMNS = ("uri", "tree", "host", "http_date", *_NEWER)

# From a day, and its expired WARCs with their row counts, to rows of raw_news.
ExpiredRows = Callable[[str, Mapping[str, int]], Iterator[pl.DataFrame]]
# Whether an address may not be stored.
Covers = Callable[[str], bool]

OTHER_DOMAIN = "other_domain"


@dataclass(frozen=True, slots=True)
class CorpusOptions:
    """Which pages are classified, the limits of the workers, and how long replaced files stay.

    Empty `languages` or `domains` mean all; domains are registrable, in natural order. `run_bytes`
    is the memory for rows that wait to be sorted. `target` is what a worker runs on each page.
    """

    languages: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    workers: int = 2
    # Real pages take milliseconds: what takes longer hangs.
    page_seconds: float = 30.0
    memory_bytes: int = 1_000_000_000
    run_bytes: int = 64 << 20
    scratch: str | None = None
    # How long replaced files stay for readers; also Delta's own default.
    grace: timedelta = timedelta(days=7)
    target: str = TARGET


class CrawlPages:
    """The pages of a day; after iterating, `pages` and `dropped` say how many were read.

    `covers` says which canonical addresses may not be stored.
    """

    def __init__(
        self,
        store: ObjectStore,
        markers: Collection[Collected],
        *,
        options: CorpusOptions,
        covers: Covers,
        expired_rows: ExpiredRows | None,
    ) -> None:
        self.pages = 0
        self.dropped: Counter[str] = Counter()
        self._store = store
        self._markers = markers
        self._options = options
        self._covers = covers
        self._expired_rows = expired_rows

    def __iter__(self) -> Iterator[tuple[CrawlPage, PagePlace]]:
        """Yield the pages: those of expired WARCs, then file by file by WARC and language."""
        yield from self._expired()
        for marker in self._markers:
            places = _Places(self._store, marker)
            for language, path in sorted(marker.news_paths().items()):
                if not self._options.languages or language in self._options.languages:
                    for frame in iter_frames(
                        self._store, path, columns=_COLUMNS, scratch=self._options.scratch
                    ):
                        yield from self._of_frame(frame, places)

    def _expired(self) -> Iterator[tuple[CrawlPage, PagePlace]]:
        expired = {one.warc: one for one in self._markers if one.is_expired}
        if not expired:
            return
        day = str(next(iter(expired.values())).day)
        if self._expired_rows is None:
            raise StorageError(f"raw_news of {day} is expired", thing=day)
        places = {warc: _Places(self._store, marker) for warc, marker in expired.items()}
        rows = {warc: marker.rows for warc, marker in expired.items()}
        for frame in self._expired_rows(day, rows):
            if self._options.languages:
                frame = frame.filter(pl.col("main_lang").is_in(sorted(self._options.languages)))
            for (warc,), part in frame.group_by("filename", maintain_order=True):
                yield from self._of_frame(part, places[str(warc)])

    def _of_frame(
        self, frame: pl.DataFrame, places: "_Places"
    ) -> Iterator[tuple[CrawlPage, PagePlace]]:
        # An older version may have written the file.
        frame = frame.with_columns(
            pl.lit(None).alias(it) for it in _NEWER if it not in frame.columns
        )
        for uri, tree, host, http_date, offset, status in frame.select(*_COLUMNS).iter_rows():
            self.pages += 1
            place = places.of(uri, http_date, offset)
            if self._options.domains and reversed_labels(host) not in self._options.domains:
                self.dropped[OTHER_DOMAIN] += 1
            elif self._covers(canonical_url(uri)):
                self.dropped[TAKEN_DOWN] += 1
            else:
                yield CrawlPage(uri, tree, status), place


class _Places:
    """The captures of one WARC by address; a page that was fetched twice has two.

    Records that share a gzip member share its offset, so an offset alone does not name a page.
    """

    def __init__(self, store: ObjectStore, marker: Collected) -> None:
        self._marker = marker
        self._known: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        path = side_path(CAPTURES, marker.day, marker.warc)
        if store.exists(path):
            wanted = (
                *("url", "fetch_time", "warc_record_offset", "warc_record_length"),
                pl.lit("sha1:") + pl.col("content_digest"),
            )
            rows = scan_table(store, [path], CAPTURES).select(*wanted).collect()
            for uri, *facts in rows.iter_rows():
                self._known[uri].append(tuple(facts))

    def of(self, uri: str, http_date: str | None, offset: int | None) -> PagePlace:
        """Return the place of the page whose record starts at this byte.

        Rows of older versions state no offset: their place is known if the address has only one.
        """
        day, warc = self._marker.day.isoformat(), self._marker.warc
        found = [one for one in self._known.get(uri, ()) if offset in (None, one[1])]
        if not found or (offset is None and len(found) > 1):
            return PagePlace(day, warc, self._moment(http_date), offset)
        fetched_at, *record = found[0]
        return PagePlace(day, warc, fetched_at or self._moment(http_date), *record)

    def _moment(self, stated: str | None) -> datetime:
        """Return a stated moment in UTC; without one, the beginning of the WARC's day."""
        try:
            found = datetime.fromisoformat(stated or "")
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            return datetime.combine(self._marker.day, time(), tzinfo=UTC)
