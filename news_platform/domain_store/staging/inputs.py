"""Find and read the rows to stage: collected days of raw_news, or Parquet files by pattern."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from urllib.parse import unquote

import polars as pl

from news_platform.datasets.domain_store import DOMAIN_BUCKETS
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_FIRST, RAW_NEWS_ORDER
from news_platform.domain_store.layout import validated_batch
from news_platform.errors import InputError
from news_platform.storage.commit import collected
from news_platform.storage.commit.markers import (
    content_part,
    fingerprint_of,
)
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform.storage.parquet import FRAME_BYTES, iter_frames
from news_platform.storage.units import wanted_inputs

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class StagingInput:
    """Parquet files with the columns of raw_news, and the fingerprint of their content.

    `expired` has the WARCs of a day whose rows only the domain store holds, with their row counts.
    """

    store: ObjectStore
    paths: tuple[str, ...]
    inputs: str
    expired: Mapping[str, int] = field(default_factory=dict)


def day_input(store: ObjectStore, day: str) -> StagingInput | None:
    """Return the files of the collected WARCs of a day; None when there are none."""
    # Before reading the markers: a change in between then leaves the day stale, not wrong.
    inputs = wanted_inputs(store, DOMAIN_BUCKETS).get(day, collected.REMOVED)
    markers = collected.list_collected_day(store, date.fromisoformat(day))
    if not markers:
        return None
    found = collected.parse_listed(store, markers)
    gone = [marker for marker in found if marker.is_expired]
    whole = [marker for marker in found if marker not in gone]
    paths = tuple(path for marker in whole for path in marker.news_paths().values())
    return StagingInput(store, paths, inputs, {marker.warc: marker.rows for marker in gone})


def validated_crawl_name(batch: str) -> str:
    """Return the name of a crawl; raise InputError for a day, which is staged from raw_news."""
    if _DAY.fullmatch(batch):
        message = (
            f"invalid crawl name {batch!r}: it is a day of CC-NEWS, use another name for these rows"
        )
        raise InputError(message, thing=batch)
    return validated_batch(batch)


def matching_input(pattern: str, *, options: StoreOptions) -> StagingInput:
    """Return the Parquet files that match a path or URL with `*`, `?` or `**`."""
    fixed = re.split(r"[*?]", pattern, maxsplit=1)[0]
    # Only the folder before the first wildcard is listed.
    folder, _, _ = fixed.rpartition("/")
    store = open_store(folder or ("/" if pattern.startswith("/") else "."), options=options)
    wanted = _pattern(pattern[len(folder) :].removeprefix("/"))
    infos = [info for info in store.list() if wanted.fullmatch(info.path)]
    if not infos:
        raise InputError(f"no file matches {pattern!r}", thing=pattern)
    inputs = fingerprint_of(infos, content_part(store))
    return StagingInput(store, tuple(info.path for info in infos), inputs)


def _pattern(glob: str) -> re.Pattern[str]:
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(meaning.get(piece, re.escape(piece)) for piece in pieces))


def iter_rows(
    store: ObjectStore,
    paths: Iterable[str],
    *,
    frame_bytes: int = FRAME_BYTES,
    scratch: str | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows of Parquet files in order; the path may hold columns, too (`day=01`)."""
    for path in paths:
        uri = store.uri(path)
        # The columns of the file win over those of the path.
        folders = path_columns(uri)
        for frame in iter_frames(
            store, path, columns=RAW_NEWS_ORDER, frame_bytes=frame_bytes, scratch=scratch
        ):
            missing = {k: pl.lit(v) for k, v in folders.items() if k not in frame.columns}
            try:
                rows = cast_to_raw_news(frame.with_columns(**missing), uri)
            except pl.exceptions.PolarsError as error:
                raise InputError(f"cannot read {uri!r} as Parquet: {error}", thing=uri) from error
            yield rows


def cast_to_raw_news(rows: pl.DataFrame, source: str) -> pl.DataFrame:
    """Return the columns of raw_news in their types; raise InputError for missing ones.

    Columns that were added to raw_news later may be missing and become null.
    """
    missing = [name for name in RAW_NEWS_FIRST if name not in rows.columns]
    if missing:
        raise InputError(
            f"{source!r} has no columns {', '.join(missing)}: expected those of raw_news",
            thing=source,
        )
    schema = RAW_NEWS.full_schema
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(schema[name]).alias(name)
        for name in RAW_NEWS_ORDER
    )


def path_columns(path: str) -> Mapping[str, str]:
    """Return the columns that a path holds as `name=value` folders."""
    pairs = (part.partition("=") for part in path.split("/"))
    return {name: unquote(value) for name, sign, value in pairs if sign}
