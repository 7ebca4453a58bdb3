"""Read every byte under a root and look for what is taken down.

gzip, Parquet and xlsx are inflated, JSON and JSON lines are parsed where they may name a page,
SQLite files are read by rows and by the space that no row uses.
"""

import io
import json
import random
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import polars as pl
from isal import isal_zlib
from isal.igzip_lib import IsalError

from news_platform.errors import StorageError
from news_platform.storage.objects.interfaces import INCOMING
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore
from news_platform.takedowns.evidence import (
    DOMAIN_FIELDS,
    HASH_FIELDS,
    MENTIONING,
    URL_FIELDS,
    StoredTraces,
    VerifiedRoot,
)
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.rows import covered_urls, may_be_covered
from news_platform.takedowns.sqlite_pages import iter_free_space

__all__ = ["VerifiedRoot", "verify_store"]

_GZIP = 31
_PIECE_BYTES = 1 << 20
_SQLITE = b"SQLite format 3\0"
# The start of every record of the domain store, see `staging/sorted_runs.py`.
_DOMAIN, _URI = b'{"domain":"', b'"uri":"'
# Columns with the text of a page, and the column by which equal texts are found.
_TEXT_HASH = "text_hash"


def verify_store(
    store: ObjectStore,
    takedowns: Takedowns,
    *,
    text_hashes: Iterable[str] = (),
    share: float | None = None,
    more: Iterable[Callable[[StoredTraces], None]] = (),
) -> VerifiedRoot:
    """Read all objects, or a random share of them; `more` looks at what lies outside the root."""
    evidence = StoredTraces.of(takedowns, text_hashes)
    if not takedowns:
        return evidence.result()
    draw = random.Random(takedowns.fingerprint)
    for info in store.list():
        evidence.check_name(info.path)
        if share is None or draw.random() < share:
            _read_object(store, info, evidence)
    for path in _unfinished(store):
        _read_content(str(path), path.read_bytes(), evidence)
    for look in more:
        look(evidence)
    return evidence.result()


def _unfinished(store: ObjectStore) -> Iterator[Path]:
    """Yield the files that killed writers left in a local root; no listing shows them."""
    folder = store.local_folder
    if folder is not None:
        yield from (path for path in folder.rglob(f"{INCOMING}/*") if path.is_file())


def _read_object(store: ObjectStore, info: ObjectInfo, evidence: StoredTraces) -> None:
    try:
        if info.path.endswith(".gz"):
            _read_gzip(store, info, evidence)
            return
        body = store.read(info.path)
    except NotFound:
        return  # replaced since it was listed
    _read_content(info.path, body, evidence)


def _read_content(path: str, body: bytes, evidence: StoredTraces) -> None:
    evidence.files += 1
    evidence.bytes_read += len(body)
    if body.startswith(b"PAR1"):
        _read_parquet(path, body, evidence)
    elif body.startswith(b"PK\x03\x04"):
        _read_archive(path, body, evidence)
    elif body.startswith(_SQLITE):
        for space in iter_free_space(body):
            for needle in evidence.needles:
                if needle in space:
                    evidence.find(path, f"{needle.decode()!r} in space that no row uses")
    else:
        _read_plain(path, body, evidence)


def _read_plain(path: str, body: bytes, evidence: StoredTraces) -> None:
    if not any(needle in body for needle in evidence.needles):
        return
    evidence.check_bytes(path, body)
    # The survey of a domain is found by its folder; addresses inside are those that it read.
    if path.startswith((*MENTIONING, "prod/")):
        return
    lines = body.splitlines() if path.endswith(".jsonl") else [body]
    for line in lines if path.endswith((".json", ".jsonl")) else ():
        try:
            evidence.check_json(path, json.loads(line))
        except ValueError:
            continue


def _read_gzip(store: ObjectStore, info: ObjectInfo, evidence: StoredTraces) -> None:
    evidence.files += 1
    evidence.bytes_read += info.size_bytes
    is_lines = info.path.endswith(".jsonl.gz") and not info.path.startswith(MENTIONING)
    rest = b""
    for content in _iter_inflated(store, info):
        evidence.bytes_inflated += len(content)
        evidence.check_bytes(info.path, content)
        if is_lines:
            # A record may end in the next piece.
            *lines, rest = (rest + content).split(b"\n") if rest else content.split(b"\n")
            _check_lines(info.path, lines, evidence)


def _iter_inflated(store: ObjectStore, info: ObjectInfo) -> Iterator[bytes]:
    """Yield the content of gzip members; damage ends the file, and is said."""
    with store.stream(info.path) as stream:
        member = isal_zlib.decompressobj(_GZIP)
        while piece := stream.read(_PIECE_BYTES):
            while piece:
                try:
                    yield member.decompress(piece)
                except IsalError as error:  # type: ignore[misc] # its stub names no class
                    raise StorageError(
                        f"cannot inflate {info.path!r}: {error}", thing=info.path
                    ) from error
                piece = b""
                if member.eof:
                    piece, member = member.unused_data, isal_zlib.decompressobj(_GZIP)


def _check_lines(path: str, lines: list[bytes], evidence: StoredTraces) -> None:
    domains = evidence.takedowns.registrable_domains
    evidence.rows += len(lines)
    for line in lines:
        # Parsed only if its domain may have covered pages: a record has up to a megabyte.
        if line.startswith(_DOMAIN):
            end = line.find(b'"', len(_DOMAIN))
            if line[len(_DOMAIN) : end].decode("utf-8", "replace") not in domains:
                continue
        if line:
            evidence.check_json(path, _start_of(json.loads(line)))


def _start_of(record: object) -> object:
    """Return the fields of a record that name it, without its text."""
    if not isinstance(record, dict):
        return record
    return {key: value for key, value in record.items() if key in ("domain", "uri", "url")}


def _read_parquet(path: str, body: bytes, evidence: StoredTraces) -> None:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(body))
    for number in range(file.num_row_groups):
        rows = pl.DataFrame(pl.from_arrow(file.read_row_group(number, use_threads=False)))
        evidence.rows += rows.height
        evidence.bytes_inflated += int(rows.estimated_size())
        for name, kind in rows.schema.items():
            _check_column(path, rows, name, kind, evidence)


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
    elif name == _TEXT_HASH and evidence.text_hashes:
        _check_copies(path, rows, evidence)
    else:
        needles = [needle.decode() for needle in evidence.needles]
        found = column.fill_null("").str.contains_any(needles).sum()
        evidence.mention(path, int(found or 0))


def _check_copies(path: str, rows: pl.DataFrame, evidence: StoredTraces) -> None:
    if "article_url_canon" in rows.columns:
        equal = rows.filter(pl.col(_TEXT_HASH).is_in(list(evidence.text_hashes)))
        for url in equal["article_url_canon"]:
            evidence.copy(path, str(url))


def _read_archive(path: str, body: bytes, evidence: StoredTraces) -> None:
    """Read a workbook: a cell that is an address is a row's, one that contains it mentions it."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            evidence.bytes_inflated += len(content)
            if not any(needle in content for needle in evidence.needles):
                continue
            evidence.check_bytes(path, content)
            for cell in content.split(b"<t")[1:]:
                text = cell.partition(b">")[2].partition(b"</t>")[0].decode("utf-8", "replace")
                if text.startswith("http") and " " not in text:
                    evidence.check_field(f"{path} {name}", "url", text.replace("&amp;", "&"))
