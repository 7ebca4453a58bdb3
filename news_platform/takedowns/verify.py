"""Read every byte under a root and look for what is taken down.

gzip, zstd, Parquet and xlsx are inflated, JSON and JSON lines are parsed where they may name a
page, SQLite files are read by rows and by the space that no row uses. All of them are searched for
the texts of removed pages.
"""

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from isal import isal_zlib
from isal.igzip_lib import IsalError

from news_platform.errors import StorageError
from news_platform.storage.objects.interfaces import INCOMING
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore
from news_platform.storage.sql.sqlite_file import read_bytes
from news_platform.takedowns.evidence import MENTIONING, StoredTraces, VerifiedRoot, document_url
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.mentions import may_name_pages, page_needles
from news_platform.takedowns.sqlite_pages import iter_free_space

if TYPE_CHECKING:
    from news_platform.takedowns.text_runs import RemovedTexts

__all__ = ["VerifiedRoot", "verify_objects", "verify_store"]

_GZIP = 31
_PIECE_BYTES = 1 << 20
_SQLITE = b"SQLite format 3\0"
# The ledger and the files beside it.
_LEDGER_FILE = re.compile(r"\.sqlite(-shm|-wal|-journal)?$")
_ZSTD = b"\x28\xb5\x2f\xfd"
# The start of every record of the domain store, see `staging/sorted_runs.py`.
_DOMAIN, _URI = b'{"domain":"', b'","uri":"'
_DELTA_LOG = "/_delta_log/"
# The survey of a domain is found by its folder; addresses and texts inside are those that it read.
_ONLY_MENTIONING = (*MENTIONING, "prod/")


def verify_store(
    store: ObjectStore,
    takedowns: Takedowns,
    *,
    texts: "RemovedTexts | None" = None,
    share: float | None = None,
    more: Iterable[Callable[[StoredTraces], None]] = (),
) -> VerifiedRoot:
    """Read all objects, or a random share of them; `more` looks at what lies outside the root."""
    evidence = StoredTraces.of(takedowns, texts)
    if not takedowns:
        return evidence.result()
    verify_objects(store, evidence, share=share)
    for path in _unfinished(store):
        _read_content(str(path), path.read_bytes(), evidence)
    for look in more:
        look(evidence)
    return evidence.result()


def verify_objects(
    store: ObjectStore, evidence: StoredTraces, *, share: float | None = None
) -> None:
    """Look at the name of every object, and at the content of all or a share of them."""
    draw = random.Random(evidence.takedowns.fingerprint)
    for info in store.list():
        evidence.check_name(info.path)
        if share is None or draw.random() < share:
            _read_object(store, info, evidence)


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
        body = _read_body(store, info.path)
    except NotFound:
        return  # replaced since it was listed
    _read_content(info.path, body, evidence)


def _read_body(store: ObjectStore, path: str) -> bytes:
    folder = store.local_folder
    is_ledger = folder is not None and _LEDGER_FILE.search(path)
    return read_bytes(folder / path) if folder and is_ledger else store.read(path)


def _read_content(path: str, body: bytes, evidence: StoredTraces) -> None:
    # pyarrow costs 0.4 s, which only those who verify should pay.
    from news_platform.takedowns.verify_tables import read_parquet, read_workbook

    evidence.files += 1
    evidence.bytes_read += len(body)
    if body.startswith(b"PAR1"):
        read_parquet(path, body, evidence)
    elif body.startswith(b"PK\x03\x04"):
        read_workbook(path, body, evidence)
    elif body.startswith(_SQLITE):
        _read_free_space(path, body, evidence)
    elif body.startswith(_ZSTD):
        content = _inflated_zstd(path, body)
        evidence.bytes_inflated += len(content)
        _read_plain(path, content, evidence)
    else:
        _read_plain(path, body, evidence)


def _inflated_zstd(path: str, body: bytes) -> bytes:
    import pyarrow as pa

    try:
        with pa.input_stream(pa.py_buffer(body), compression="zstd") as stream:
            return bytes(stream.read())
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"cannot inflate {path!r}: {error}", thing=path) from error


def _read_free_space(path: str, body: bytes, evidence: StoredTraces) -> None:
    spaces = [space for space in iter_free_space(body) if space.strip(b"\0")]
    needles = page_needles(evidence.takedowns)
    shown = [space.decode("utf-8", "replace") for space in spaces]
    held = [
        text for text, is_held in zip(shown, may_name_pages(shown, needles), strict=True) if is_held
    ]
    for needle in needles if held else ():
        if any(needle in text for text in held):
            evidence.find(path, f"{needle!r} in space that no row uses")
    if evidence.texts.held_by(*spaces):
        evidence.find(path, "text of a removed page in space that no row uses")


def _read_plain(path: str, body: bytes, evidence: StoredTraces) -> None:
    evidence.check_bytes(path, body)
    if path.startswith(_ONLY_MENTIONING):
        return
    has_text = len(evidence.texts.positions(body)) > 0
    if not path.endswith((".json", ".jsonl")):
        if has_text and evidence.texts.held_by(body):
            evidence.add_text(path, "")
    elif has_text or evidence.may_name(body) or (evidence.texts and b"\\u" in body):
        has_lines = path.endswith(".jsonl") or _DELTA_LOG in path
        for line in body.splitlines() if has_lines else [body]:
            _check_document(path, line, evidence)


def _check_document(path: str, line: bytes, evidence: StoredTraces) -> None:
    try:
        document = json.loads(line)
    except ValueError:
        return
    evidence.check_json(path, document)
    if _DELTA_LOG in path:
        _check_statistics(path, document, evidence)
    if evidence.texts:
        # Without the escapes of letters, which JSON allows.
        content = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
        if evidence.texts.held_by(content):
            evidence.add_text(path, document_url(document))


def _check_statistics(path: str, action: object, evidence: StoredTraces) -> None:
    """Look at the smallest and largest values that the log of a Delta table keeps of a file."""
    for fields in action.values() if isinstance(action, dict) else ():
        if isinstance(fields, dict) and fields.get("stats"):
            evidence.check_json(path, json.loads(fields["stats"]))


def _read_gzip(store: ObjectStore, info: ObjectInfo, evidence: StoredTraces) -> None:
    evidence.files += 1
    evidence.bytes_read += info.size_bytes
    if not info.path.endswith(".jsonl.gz") or info.path.startswith(MENTIONING):
        _read_gzip_page(store, info, evidence)
        return
    for block in _iter_blocks(_iter_inflated(store, info)):
        evidence.bytes_inflated += len(block)
        evidence.check_bytes(info.path, block)
        _check_lines(info.path, block.splitlines(), evidence)
        _check_line_texts(info.path, block, evidence)


def _iter_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines in blocks of about a megabyte: members of gzip files may be small."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _PIECE_BYTES and b"\n" in piece:
            content = b"".join(held)
            end = content.rfind(b"\n") + 1
            yield content[:end]
            held, size = [content[end:]], len(content) - end
    if size:
        yield b"".join(held)


def _read_gzip_page(store: ObjectStore, info: ObjectInfo, evidence: StoredTraces) -> None:
    """Read a file that is one text, or one of others' archives, piece by piece."""
    held: list[bytes] = []
    for content in _iter_inflated(store, info):
        evidence.bytes_inflated += len(content)
        evidence.check_bytes(info.path, content)
        if len(evidence.texts.positions(content)):
            held.append(content)
    if held and not info.path.startswith(MENTIONING) and evidence.texts.held_by(*held):
        evidence.add_text(info.path, "")


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
        if not line.startswith(_DOMAIN):
            evidence.check_json(path, _start_of(json.loads(line)) if line else None)
            continue
        # Parsed only if its domain may have covered pages: a record has up to a megabyte.
        end = line.find(b'"', len(_DOMAIN))
        if line[len(_DOMAIN) : end].decode("utf-8", "replace") in domains:
            evidence.check_json(path, _parse_start(line, end))


def _parse_start(line: bytes, domain_end: int) -> object:
    """Parse what names a record, without its text if the address follows the domain."""
    uri_end = line.find(b'"', domain_end + len(_URI))
    start = line[: uri_end + 1]
    if line.startswith(_URI, domain_end) and b"\\" not in start:
        return json.loads(start + b"}")
    return _start_of(json.loads(line))


def _start_of(record: object) -> object:
    """Return the fields of a record that name it, without its text."""
    if not isinstance(record, dict):
        return record
    return {key: value for key, value in record.items() if key in ("domain", "uri", "url")}


def _check_line_texts(path: str, block: bytes, evidence: StoredTraces) -> None:
    """Look for removed texts in lines; only those with a part of one are parsed."""
    starts = {block.rfind(b"\n", 0, at) + 1 for at in evidence.texts.positions(block).tolist()}
    for start in sorted(starts):
        end = block.find(b"\n", start)
        line = block[start : end if end >= 0 else len(block)]
        if evidence.texts.held_by(line):
            evidence.add_text(path, document_url(_start_of(json.loads(line))))
