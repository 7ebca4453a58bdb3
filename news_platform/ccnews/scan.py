"""Scan raw_news lazily, opening exactly the files that the markers name.

scan_news("data", days=["2025-11-01"], langs=["en"], columns=["uri", "text"]).collect()

Ten years of the crawl have three million files, so a scan of all days is a source of its own for
Polars: filters on year, month, day and main_lang decide which months, days and languages are
looked up at all, and a month at a time becomes a plain scan of its files.
"""

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_ORDER
from news_platform.errors import InputError
from news_platform.storage.commit.collected import (
    collected_months,
    read_collected,
    read_collected_month,
)
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform.storage.parquet import scan_table
from news_platform.takedowns.build_filters import without_hidden
from news_platform.text.readable import as_day
from news_platform.web.urls import plain_host, reversed_labels

_log = logging.getLogger(__name__)


def scan_news(
    root: str | Path | ObjectStore,
    days: Iterable[str | date] | str | date | None = None,
    langs: Iterable[str] | str | None = None,
    hosts: Iterable[str] | str | None = None,
    columns: Iterable[str] | str | None = None,
    *,
    options: StoreOptions | None = None,
) -> pl.LazyFrame:
    """Return the pages of some days and languages as a LazyFrame; None means all.

    `hosts` are registrable domains in natural order (`bbc.co.uk`). Columns have the requested
    order, by default all; year, month and day are strings, as in the paths. An invalid day
    or an unknown column raises InputError; an unknown language or host gives no rows.
    """
    wanted_columns = _columns(columns)
    store = root if isinstance(root, ObjectStore) else _opened(root, options)
    wanted = None if langs is None else {language.lower() for language in _several(langs)}
    if days is None:
        source = partial(_iter_all_days, store, wanted)
        frame = register_io_source(source, schema=RAW_NEWS.full_schema)
    else:
        frame = _scan_markers(store, read_collected(store, _days(days)), wanted)
    if hosts is not None:
        frame = frame.filter(pl.col("host").is_in([_as_stored(host) for host in _several(hosts)]))
    return without_hidden(frame, RAW_NEWS, store).select(wanted_columns)


def _scan_markers(
    store: ObjectStore, markers: Sequence[Collected], languages: Collection[str] | None
) -> pl.LazyFrame:
    """Return the pages of some WARCs in some languages, None for all."""
    _warn_of_mixture(markers)
    _warn_of_expired(markers)
    paths = [path for marker in markers for path in marker.news_paths(languages).values()]
    return scan_table(store, paths, RAW_NEWS)


def _iter_all_days(
    store: ObjectStore,
    languages: Collection[str] | None,
    columns: list[str] | None,
    predicate: pl.Expr | None,
    rows: int | None,
    _batch_rows: int | None,
) -> Iterator[pl.DataFrame]:
    """Yield the pages of all days that a filter lets through; Polars calls it."""
    tests = list(_conjuncts(predicate)) if predicate is not None else []
    months = [(f"{day:%Y}", f"{day:%m}") for day in collected_months(store)]
    for key in _passing(tests, ("year", "month"), months):
        markers = read_collected_month(store, date.fromisoformat("-".join((*key, "01"))))
        days = {(*key, f"{marker.day:%d}") for marker in markers}
        days = set(_passing(tests, ("year", "month", "day"), days))
        known = {(one,) for marker in markers for one in marker.languages}
        chosen = {one for (one,) in _passing(tests, ("main_lang",), known)}
        frame = _scan_markers(
            store,
            [marker for marker in markers if (*key, f"{marker.day:%d}") in days],
            chosen if languages is None else chosen.intersection(languages),
        )
        frame = frame.filter(predicate) if predicate is not None else frame
        frame = frame.select(columns) if columns is not None else frame
        for batch in (frame if rows is None else frame.head(rows)).collect_batches():
            yield batch
            rows = None if rows is None else rows - batch.height
        if rows == 0:
            return


def _conjuncts(predicate: pl.Expr) -> Iterator[pl.Expr]:
    """Yield the conditions that must all hold."""
    parts = predicate.meta.pop()
    if len(parts) == 2 and (parts[1] & parts[0]).meta.eq(predicate):
        for part in parts:
            yield from _conjuncts(part)
    else:
        yield predicate


def _passing(
    tests: Iterable[pl.Expr], names: Sequence[str], values: Iterable[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Return the values of some columns for which no test on these columns alone fails, sorted."""
    rows = pl.DataFrame(sorted(values), schema=dict.fromkeys(names, pl.String()), orient="row")
    mine = [test for test in tests if set(test.meta.root_names()) <= set(names)]
    return rows.filter(*mine).rows()


def _warn_of_mixture(markers: Iterable[Collected]) -> None:
    """Log that the rows come from several versions or options of the extractor."""
    made: dict[str, set[str]] = {}
    for marker in markers:
        how = f"version {marker.extractor_version} {json.dumps(dict(marker.options))}"
        made.setdefault(how, set()).add(str(marker.day))
    if len(made) > 1:
        counts = ", ".join(f"{len(days)} days by {how}" for how, days in sorted(made.items()))
        _log.warning("raw_news was collected in several ways: %s; see `ccnews status`", counts)


def _warn_of_expired(markers: Iterable[Collected]) -> None:
    """Log that rows are missing on purpose."""
    if days := {str(marker.day) for marker in markers if marker.is_expired}:
        _log.warning(
            "raw_news of %d days from %s on is expired: read their pages from the domain store",
            len(days),
            min(days),
        )


def _opened(root: str | Path, options: StoreOptions | None) -> ObjectStore:
    return open_store(str(root), options=options) if options else open_store(str(root))


def _columns(names: Iterable[str] | str | None) -> list[str]:
    wanted = list(RAW_NEWS_ORDER) if names is None else list(dict.fromkeys(_several(names)))
    if unknown := [name for name in wanted if name not in RAW_NEWS_ORDER]:
        known = ", ".join(RAW_NEWS_ORDER)
        raise InputError(f"unknown column {unknown[0]!r} of raw_news: expected one of {known}")
    return wanted or list(RAW_NEWS_ORDER)


def _as_stored(host: str) -> str:
    """Return a host as the column stores it: lower case, punycode, labels reversed."""
    return reversed_labels(plain_host(host))


def _several(names: Iterable[str] | str) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _days(days: Iterable[str | date] | str | date | None) -> list[date] | None:
    if days is None:
        return None
    return sorted({as_day(day) for day in ([days] if isinstance(days, str | date) else days)})
