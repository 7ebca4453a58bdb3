"""Which rows there are to stage: collected days of raw_news, or any Parquet files by pattern."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial

from news_platform.datasets.domain_buckets import ROOT as STAGED
from news_platform.domain_store.layout import checked_batch
from news_platform.errors import InputError
from news_platform.storage.commit import collected
from news_platform.storage.commit.markers import (
    content_part,
    current_inputs,
    fingerprint_of,
    read_inputs,
)
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Rows:
    """Parquet files with the columns of raw_news, and what stands for their present content."""

    store: ObjectStore
    paths: tuple[str, ...]
    inputs: str


def wanted_days(store: ObjectStore) -> Mapping[str, str]:
    """Return what the input of every day is now: all that are collected, and those that were."""
    return collected.wanted_days(store, built=staged_days(store))


def staged_days(store: ObjectStore) -> Mapping[str, str]:
    """Return what every day in stage 1 was built from; batches of other crawls are left out."""
    return {
        key: inputs for key, inputs in read_inputs(store, STAGED).items() if _DAY.fullmatch(key)
    }


def day_rows(store: ObjectStore, day: str) -> Rows | None:
    """Return the files of a day, None when nothing of it is collected.

    Only WARCs count whose marker says that they are complete.
    """
    markers = collected.list_collected_day(store, date.fromisoformat(day))
    if not markers:
        return None
    # Before the markers are read: what changes meanwhile leaves the day stale, not wrong.
    inputs = collected.day_inputs(store, markers, built=staged_days(store).get(day))
    found = collected.parse_listed(store, markers)
    paths = tuple(path for marker in found for path in marker.news_paths().values())
    return Rows(store, paths, inputs)


def crawl_name(batch: str) -> str:
    """Return the name of a batch that is no day; days are built from what is collected of them."""
    if _DAY.fullmatch(batch):
        message = f"{batch!r} names a day of the news crawl: give these rows a name of their own"
        raise InputError(message, thing=batch)
    return checked_batch(batch)


def matching_rows(pattern: str, *, options: StoreOptions, staged: str | None = None) -> Rows:
    """Return the Parquet files that a pattern names (`*`, `?`, `**`), on disk or behind a URL.

    `staged` is the fingerprint of the files that the batch is staged from, None when it is new.
    """
    fixed = re.split(r"[*?]", pattern, maxsplit=1)[0]
    folder, _, _ = fixed.rpartition("/")
    store = open_store(folder or ("/" if pattern.startswith("/") else "."), options=options)
    wanted = _pattern(pattern[len(folder) :].removeprefix("/"))
    infos = [info for info in store.list() if wanted.fullmatch(info.path)]
    if not infos:
        raise InputError(f"no file matches {pattern!r}", thing=pattern)
    inputs = current_inputs(staged, partial(fingerprint_of, infos), part=content_part(store))
    return Rows(store, tuple(info.path for info in infos), inputs)


def _pattern(glob: str) -> re.Pattern[str]:
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(meaning.get(piece, re.escape(piece)) for piece in pieces))
