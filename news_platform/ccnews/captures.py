"""Turn archived responses into captures, and write the sorted run of a WARC.

The encodings are chosen for rows sorted by `url_surtkey`: 300,000 captures take about 95 bytes each
(docs/benchmarks/captures.md). Statistics of that column alone let a reader find the row group of a
site in the footer.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import polars as pl
from surt import surt

from news_platform.ccnews.page import HttpHead, looks_like_html, plain_body
from news_platform.ccnews.warc import WarcResponse
from news_platform.datasets.captures import CAPTURES, WARC_COLUMNS
from news_platform.datasets.dataset import Dataset
from news_platform.web.urls import registrable_domain, url_host

if TYPE_CHECKING:
    import pyarrow as pa

REVISIT = "warc/revisit"
_BLANKS = re.compile(r"[\x00-\x20\x7f]")
ROW_GROUP_ROWS = 2_500
"""A row group of a day's index is then about 1 % of its file, as is the footer."""
SNIFFED_BYTES = 4096
# Runs are read once, to be merged; the index of a day is kept and read by others.
RUN_LEVEL, INDEX_LEVEL = 3, 15
_SORTED = ("url_surtkey", "fetch_time", "warc_filename", "warc_record_offset")
_BUFFERED_ROWS = 10_000
_PREFIXED = ("url_surtkey", "url")
_NUMBERS = ("fetch_time", "warc_record_offset", "warc_record_length")
_DIGESTS = ("content_digest",)
_MAGICS = (
    (b"%PDF-", "application/pdf"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n", "image/png"),
    (b"GIF8", "image/gif"),
    (b"PK\x03\x04", "application/zip"),
    (b"<rss", "application/rss+xml"),
    (b"<feed", "application/atom+xml"),
    (b"<?xml", "application/xml"),
)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished file in the scratch folder."""

    path: Path
    rows: int


def capture_row(response: WarcResponse, http: HttpHead) -> dict[str, object]:
    """Return the capture of a response, without what all captures of its WARC share."""
    record = response.record
    host = url_host(record.uri)
    return {
        "url_surtkey": surt_key(record.uri),
        "url": record.uri,
        "url_host_name": host,
        "url_host_registered_domain": registrable_domain(host),
        "fetch_time": parse_time(record.warc_date),
        "fetch_status": http.status,
        "content_digest": record.payload_digest,
        "content_mime_type": REVISIT if response.is_revisit else http.mime,
        "content_mime_detected": response.payload_type or _detected(response.body, http),
        "content_languages": None,
        "warc_record_offset": record.offset,
        "warc_record_length": record.length,
    }


def surt_key(url: str) -> str:
    """Return the sort key of a URL, without blanks: they end the key in a line of CDXJ."""
    return _BLANKS.sub(lambda found: quote(found[0]), surt(url))


@lru_cache(maxsize=4096)
def parse_time(stated: str | None) -> datetime | None:
    """Return a WARC-Date in UTC; None for one that cannot be parsed."""
    try:
        found = datetime.fromisoformat(stated or "")
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _detected(body: bytes, http: HttpHead) -> str | None:
    start = plain_body(body[:SNIFFED_BYTES], http, max_bytes=SNIFFED_BYTES)
    if looks_like_html(start):
        return "text/html"
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"<?xml") and b"<html" in text.lower():
        return "application/xhtml+xml"
    return next((kind for magic, kind in _MAGICS if text.startswith(magic)), None)


def iso_639_3(codes: Sequence[str]) -> str | None:
    """Return languages of the detector as ISO 639-3 codes, joined by commas; None without any."""
    return ",".join(_languages().get(code, code) for code in codes) or None


@cache
def _languages() -> Mapping[str, str]:
    text = files("news_platform.ccnews").joinpath("iso_639_3.json").read_text("utf-8")
    found: dict[str, str] = json.loads(text)
    return found


class CaptureRun:
    """The captures of one WARC in memory: about 300 bytes each, of some 30,000."""

    def __init__(self) -> None:
        self._rows: list[Mapping[str, object]] = []
        self._parts: list[pl.DataFrame] = []

    def add(self, row: Mapping[str, object]) -> None:
        """Add one capture."""
        self._rows.append(row)
        if len(self._rows) >= _BUFFERED_ROWS:
            self._convert()

    def _convert(self) -> None:
        own = {name: kind for name, kind in CAPTURES.schema.items() if name not in WARC_COLUMNS}
        self._parts.append(pl.DataFrame(self._rows, schema=own, orient="row"))
        self._rows = []

    def write(self, path: Path, shared: Mapping[str, str], **metadata: str) -> WrittenFile:
        """Write all captures in the order of their keys; `shared` has the WARC's own columns."""
        self._convert()
        rows = pl.concat(self._parts).with_columns(
            pl.lit(value, pl.String()).alias(name) for name, value in shared.items()
        )
        write_sorted(rows, path, level=RUN_LEVEL, **metadata)
        return WrittenFile(path, rows.height)


def write_sorted(rows: pl.DataFrame, path: Path, *, level: int, **metadata: str) -> None:
    """Write captures in the order of their keys."""
    # pyarrow costs 0.4 s, which only those who write should pay.
    import pyarrow.parquet as pq

    schema = arrow_schema(CAPTURES)
    ordered = rows.select(*CAPTURES.schema).sort(*_SORTED)
    table = ordered.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)
    pq.write_table(
        table.replace_schema_metadata(metadata),
        path,
        compression="zstd",
        compression_level=level,
        column_encoding=_encodings(),
        use_dictionary=[name for name in schema.names if name not in _encodings()],
        write_statistics=["url_surtkey"],
        row_group_size=ROW_GROUP_ROWS,
        # The schema of Arrow would take a tenth of the footer.
        store_schema=False,
    )


def _encodings() -> dict[str, str]:
    return {
        **dict.fromkeys(_PREFIXED, "DELTA_BYTE_ARRAY"),
        **dict.fromkeys(_NUMBERS, "BYTE_STREAM_SPLIT"),
        **dict.fromkeys(_DIGESTS, "PLAIN"),
    }


@cache
def arrow_schema(table: Dataset) -> "pa.Schema":
    """Return the columns inside the files as Arrow types."""
    import pyarrow as pa

    # Polars' own conversion gives view types, which older readers of the Arrow schema reject.
    kinds: Mapping[pl.DataType, pa.DataType] = {
        pl.String(): pa.string(),
        pl.Int16(): pa.int16(),
        pl.Int32(): pa.int32(),
        pl.Int64(): pa.int64(),
        pl.Datetime("us", "UTC"): pa.timestamp("us", "UTC"),
        pl.List(pl.String()): pa.list_(pa.string()),
        pl.List(pl.Int64()): pa.list_(pa.int64()),
    }
    return pa.schema([(name, kinds[dtype]) for name, dtype in table.schema.items()])
