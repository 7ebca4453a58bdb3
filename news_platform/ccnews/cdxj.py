"""Write captures as CDXJ: the lines of a CDX server, and a ZipNum cluster that pywb serves.

A cluster is `cdx-00000.gz` with blocks of 3,000 sorted lines, one gzip member each; `cluster.idx`
with the first key and the place of every block; and `cluster.loc` with the files of the blocks.
"""

import gzip
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from news_platform.ccnews.capture_index import CaptureFiles

# The names of pywb and of Common Crawl's own CDX server, in its order.
FIELDS = {
    "url": "url",
    "mime": "content_mime_type",
    "mime-detected": "content_mime_detected",
    "status": "fetch_status",
    "digest": "content_digest",
    "length": "warc_record_length",
    "offset": "warc_record_offset",
    "filename": "warc_filename",
    "languages": "content_languages",
}
ALL_FIELDS = ("urlkey", "timestamp", *FIELDS)
_STAMP_FORMATS = {
    4: "%Y",
    6: "%Y%m",
    8: "%Y%m%d",
    10: "%Y%m%d%H",
    12: "%Y%m%d%H%M",
    14: "%Y%m%d%H%M%S",
}
_STAMP_SECONDS = {8: 86_400, 10: 3_600, 12: 60, 14: 1}
# As Common Crawl's own clusters have them.
BLOCK_LINES = 3_000
# A part of a month is then about half a gigabyte.
_PART_BLOCKS = 10_000


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What was written: days, captures, blocks of lines and bytes of all parts."""

    days: int
    captures: int
    blocks: int
    bytes: int


def parse_stamp(digits: str, *, is_end: bool = False) -> datetime:
    """Return the moment of 4 to 14 digits; missing ones mean the first moment, or the last.

    Raise ValueError for any other text.
    """
    if len(digits) not in _STAMP_FORMATS or not (digits.isascii() and digits.isdecimal()):
        raise ValueError(digits)
    found = datetime.strptime(digits, _STAMP_FORMATS[len(digits)]).replace(tzinfo=UTC)
    if not is_end:
        return found
    if len(digits) == 4:
        following = found.replace(month=12, day=31) + timedelta(days=1)
    elif len(digits) == 6:
        following = (found + timedelta(days=31)).replace(day=1)
    else:
        following = found + timedelta(seconds=_STAMP_SECONDS[len(digits)])
    return following - timedelta(microseconds=1)


def cdx_fields(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a capture as the fields of a CDX server, in text; those without a value are absent."""
    moment = row["fetch_time"]
    stamp = f"{moment:%Y%m%d%H%M%S}" if moment else f"{row['date'].replace('-', '')}000000"
    found = {name: row[column] for name, column in FIELDS.items()}
    return {
        "urlkey": row["url_surtkey"],
        "timestamp": stamp,
        **{name: str(value) for name, value in found.items() if value is not None},
    }


def cdxj_line(fields: Mapping[str, str]) -> str:
    """Return the line of a capture: key, time and the other fields as JSON."""
    rest = {name: value for name, value in fields.items() if name not in ("urlkey", "timestamp")}
    return f"{fields['urlkey']} {fields['timestamp']} {json.dumps(rest, ensure_ascii=False)}"


def _iter_lines(files: CaptureFiles, day: str) -> Iterator[tuple[str, str]]:
    """Yield key and time, and line, of every capture of a merged day, in their order."""
    rows = (row for frame in files.iter_frames(day) for row in frame.iter_rows(named=True))
    for _, same in groupby(map(cdx_fields, rows), key=itemgetter("urlkey")):
        # Captures without a time are first in the index, and have that of their day here.
        ordered = sorted(same, key=itemgetter("timestamp"))
        yield from ((f"{one['urlkey']} {one['timestamp']}", cdxj_line(one)) for one in ordered)


def write_cluster(files: CaptureFiles, days: Sequence[str], folder: Path) -> ClusterReport:
    """Write the captures of merged days as a cluster; its index comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = heapq.merge(*(_iter_lines(files, day) for day in days), key=itemgetter(0))
    report, entries, parts = _write_parts(map(itemgetter(1), lines), folder, days=len(days))
    (folder / "cluster.loc").write_text("".join(f"{part}\t{part}\n" for part in parts), "utf-8")
    beside = folder / "cluster.idx.tmp"
    beside.write_text("".join(entries), "utf-8")
    beside.replace(folder / "cluster.idx")
    return report


def _write_parts(
    lines: Iterable[str], folder: Path, *, days: int
) -> tuple[ClusterReport, list[str], list[str]]:
    entries: list[str] = []
    parts: list[str] = []
    captures = written = number = 0
    rest = iter(lines)
    blocks = iter(lambda: list(islice(rest, BLOCK_LINES)), [])
    while block := next(blocks, None):
        name = f"cdx-{len(parts):05}.gz"
        parts.append(name)
        with (folder / name).open("wb") as file:
            while block:
                body = gzip_block(block)
                first = " ".join(block[0].split(" ", 2)[:2])
                number += 1
                entries.append(f"{first}\t{name}\t{file.tell()}\t{len(body)}\t{number}\n")
                file.write(body)
                captures += len(block)
                block = next(blocks, []) if number % _PART_BLOCKS else []
            written += file.tell()
    return ClusterReport(days, captures, number, written), entries, parts


def gzip_block(lines: Iterable[str]) -> bytes:
    """Return lines as one gzip member; the same lines give the same bytes."""
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
