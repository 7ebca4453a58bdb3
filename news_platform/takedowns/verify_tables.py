"""Look for what is taken down in tables: Parquet files and workbooks."""

import io
import zipfile
from collections import Counter
from collections.abc import Iterator

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from news_platform.takedowns.evidence import DOMAIN_FIELDS, HASH_FIELDS, URL_FIELDS, StoredTraces
from news_platform.takedowns.rows import covered_urls, may_be_covered

# The column by which equal texts are found, also short ones.
_TEXT_HASH = "text_hash"
# The column that names the page of a row, the first that a table has.
_ROW_URL = ("uri", "article_url_canon", "canonical_url", "url")
# A row with fewer runs of removed texts is not looked at more closely.
_FEWEST_HITS = 4


def read_parquet(path: str, body: bytes, evidence: StoredTraces) -> None:
    """Look at every column of every row group."""
    file = pq.ParquetFile(io.BytesIO(body))
    for number in range(file.num_row_groups):
        table = file.read_row_group(number, use_threads=False)
        rows = pl.DataFrame(pl.from_arrow(table))
        evidence.rows += rows.height
        evidence.bytes_inflated += int(rows.estimated_size())
        for name, kind in rows.schema.items():
            _check_column(path, rows, name, kind, evidence)
        if evidence.texts:
            _check_texts(path, table, rows, evidence)


def _check_texts(path: str, table: pa.Table, rows: pl.DataFrame, evidence: StoredTraces) -> None:
    named = next((name for name in _ROW_URL if name in rows.columns), None)
    found: dict[int, None] = {}
    for name in table.column_names:
        start = 0
        for chunk in table.column(name).chunks:
            found.update(dict.fromkeys(start + row for row in _rows_with_text(chunk, evidence)))
            start += len(chunk)
    for row in found:
        evidence.add_text(path, str(rows[named][row] or "") if named else "")


def _rows_with_text(chunk: pa.Array, evidence: StoredTraces) -> Iterator[int]:
    """Yield the rows of a column that hold a removed text; its bytes are searched in one piece."""
    if not (pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type)):
        return
    _, borders, content = chunk.buffers()
    if content is None or not len(chunk):
        return
    kind = np.int64 if pa.types.is_large_string(chunk.type) else np.int32
    offsets = np.frombuffer(borders, kind)[chunk.offset : chunk.offset + len(chunk) + 1]
    first, data = int(offsets[0]), memoryview(content)
    places = evidence.texts.positions(data[first : int(offsets[-1])]) + first
    counts = Counter((np.searchsorted(offsets, places, "right") - 1).tolist())
    for row, count in counts.items():
        if count >= _FEWEST_HITS and evidence.texts.held_by(data[offsets[row] : offsets[row + 1]]):
            yield row


def _check_column(
    path: str, rows: pl.DataFrame, name: str, kind: pl.DataType, evidence: StoredTraces
) -> None:
    column = rows[name].explode() if kind == pl.List(pl.String) else rows[name]
    if column.dtype != pl.String:
        return
    is_candidate = path.startswith("news/feed_candidates") and name == "feed_url"
    if name in URL_FIELDS or is_candidate:
        likely = rows.filter(may_be_covered(name, evidence.takedowns))[name]
        for url in sorted(covered_urls(likely, evidence.takedowns)):
            evidence.find(path, f"{name} {url!r}")
    elif name in DOMAIN_FIELDS or name in HASH_FIELDS:
        for value in column.unique():
            evidence.check_field(path, name, value)
    elif name == _TEXT_HASH and evidence.texts.equal:
        _check_copies(path, rows, evidence)
    else:
        needles = [needle.decode() for needle in evidence.needles]
        found = column.fill_null("").str.contains_any(needles).sum()
        evidence.mention(path, int(found or 0))


def _check_copies(path: str, rows: pl.DataFrame, evidence: StoredTraces) -> None:
    named = next((name for name in _ROW_URL if name in rows.columns), None)
    if named is not None:
        equal = rows.filter(pl.col(_TEXT_HASH).is_in(list(evidence.texts.equal)))
        for url in equal[named]:
            evidence.add_text(path, str(url))


def read_workbook(path: str, body: bytes, evidence: StoredTraces) -> None:
    """Read a workbook: a cell that is an address is a row's, one that contains it mentions it."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            evidence.bytes_inflated += len(content)
            evidence.check_bytes(path, content)
            if evidence.may_name(content):
                for url in _cell_urls(content):
                    evidence.check_field(f"{path} {name}", "url", url)
            # The workbook shows the ledger, which names the copies that have another address.
            if evidence.texts.held_by(content):
                evidence.copy(f"{path} {name}", "")


def _cell_urls(content: bytes) -> Iterator[str]:
    """Yield the cells that are an address, as far as a sheet has its texts inside."""
    for cell in content.split(b"<t")[1:]:
        text = cell.partition(b">")[2].partition(b"</t>")[0].decode("utf-8", "replace")
        if text.startswith("http") and " " not in text:
            yield text.replace("&amp;", "&")
