"""Pure: turn the bytes of any file into those that hold its content, whatever it is packed in.

Files are told apart by how they begin, not by their names.
"""

import bz2
import io
import lzma
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, cast

import polars as pl
from isal import isal_zlib
from isal.igzip_lib import IsalError

from news_platform.errors import StorageError

SQLITE, PARQUET, GZIP = b"SQLite format 3\0", b"PAR1", b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_ZSTD, _TAR, _TAR_AT = b"\x28\xb5\x2f\xfd", b"ustar", 257
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_GZIP_WINDOW = 31
_PIECE_BYTES = 1 << 20
# More than any file of ours; what grows beyond it is listed as unreadable.
_MOST_BYTES = 4 << 30
_DEEPEST = 5
UNREADABLE: tuple[type[Exception], ...] = (
    StorageError,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    RuntimeError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
    sqlite3.Error,
    pl.exceptions.PolarsError,
    cast(type[Exception], IsalError),  # its stub does not say that it is a class
)
"""What the libraries raise for damaged files."""


def iter_unpacked(body: bytes, name: str = "", *, depth: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield the content of a file, or of every member of an archive, with the member's name.

    Raise one of UNREADABLE for a file that is damaged or packed too deep.
    """
    if depth > _DEEPEST:
        raise StorageError(f"packed more than {_DEEPEST} times")
    if body.startswith(_ZIP):
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            for info in archive.infolist():
                _require_bounded(info.file_size)
                yield from iter_unpacked(archive.read(info), info.filename, depth=depth + 1)
    elif body[_TAR_AT:].startswith(_TAR):
        with tarfile.open(fileobj=io.BytesIO(body)) as tape:
            for member in tape:
                _require_bounded(member.size)
                file = tape.extractfile(member)
                content = file.read() if file is not None else b""
                yield from iter_unpacked(content, member.name, depth=depth + 1)
    elif inflate := next((it for start, it in _INFLATE.items() if body.startswith(start)), None):
        yield from iter_unpacked(inflate(body), name, depth=depth + 1)
    else:
        yield name, _inflated_zlib(body) if body.startswith(_ZLIB) else body


def is_packed(head: bytes) -> bool:
    """Return whether a file that begins so must be read as a whole: it is not plain text."""
    starts = (*_ZIP, SQLITE, PARQUET, *_INFLATE)
    return head.startswith(starts) or head[_TAR_AT:].startswith(_TAR)


def iter_inflated(stream: IO[bytes], head: bytes = b"") -> Iterator[bytes]:
    """Yield the content of the gzip members of a file, of which `head` was read already."""
    member, is_whole = isal_zlib.decompressobj(_GZIP_WINDOW), False
    while piece := head + stream.read(_PIECE_BYTES):
        head = b""
        while piece:
            yield member.decompress(piece)
            piece, is_whole = b"", member.eof
            if member.eof:
                piece, member = member.unused_data, isal_zlib.decompressobj(_GZIP_WINDOW)
    if not is_whole:
        raise StorageError("the file ends before its content does")


def iter_blocks(pieces: Iterator[bytes]) -> Iterator[bytes]:
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


def _require_bounded(size: int) -> None:
    if size > _MOST_BYTES:
        raise StorageError(f"it unpacks to {size} bytes, more than {_MOST_BYTES}")


def joined(pieces: Iterator[bytes]) -> bytes:
    """Return the pieces in one; raise StorageError if they are too large."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        _require_bounded(size)
        held.append(piece)
    return b"".join(held)


def _inflated_zstd(body: bytes) -> bytes:
    # pyarrow costs 0.4 s, which only those who verify should pay.
    import pyarrow as pa

    with pa.input_stream(pa.py_buffer(body), compression="zstd") as stream:
        return joined(iter(lambda: stream.read(_PIECE_BYTES), b""))


def _inflated_zlib(body: bytes) -> bytes:
    try:
        return zlib.decompress(body)
    except zlib.error:  # a text may begin with the same two bytes
        return body


_INFLATE: Mapping[bytes, Callable[[bytes], bytes]] = {
    GZIP: lambda body: joined(iter_inflated(io.BytesIO(body))),
    _ZSTD: _inflated_zstd,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ\0": lzma.decompress,
}


_HEADER_BYTES = 100
_LEAVES = (0x0A, 0x0D)
_INNER = (0x02, 0x05)


def stated_size(file: bytes) -> int:
    """Return how many bytes a database has by its own header."""
    return max(_HEADER_BYTES, _number(file, 28) * _page_bytes(file))


def _page_bytes(file: bytes) -> int:
    size = int.from_bytes(file[16:18], "big")
    return 65_536 if size == 1 else size


def iter_free_space(file: bytes) -> Iterator[bytes]:
    """Yield the unused bytes of a database, piece by piece."""
    size = _page_bytes(file)
    if size < 512:
        return
    free = set(_iter_free_pages(file, size))
    for number in range(1, len(file) // size + 1):
        page = file[(number - 1) * size : number * size]
        if number in free:
            yield page
        else:
            yield from _iter_gaps(page, _HEADER_BYTES if number == 1 else 0)


def _iter_free_pages(file: bytes, size: int) -> Iterator[int]:
    trunk, seen = int.from_bytes(file[32:36], "big"), set[int]()
    while trunk and trunk not in seen and trunk * size <= len(file):
        seen.add(trunk)
        page = file[(trunk - 1) * size : trunk * size]
        count = min(int.from_bytes(page[4:8], "big"), size // 4 - 2)
        # The trunk itself holds numbers first; what follows them is unused.
        yield from (_number(page, 8 + 4 * place) for place in range(count))
        trunk = _number(page, 0)
    yield from seen


def _number(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + 4], "big")


def _iter_gaps(page: bytes, start: int) -> Iterator[bytes]:
    kind = page[start] if len(page) > start else 0
    if kind not in (*_LEAVES, *_INNER):
        return  # an overflow page, which belongs to a row
    cells = int.from_bytes(page[start + 3 : start + 5], "big")
    content = int.from_bytes(page[start + 5 : start + 7], "big") or 65_536
    pointers = start + (8 if kind in _LEAVES else 12)
    yield page[pointers + 2 * cells : content]
    block, seen = int.from_bytes(page[start + 1 : start + 3], "big"), set[int]()
    while block and block not in seen and block + 4 <= len(page):
        seen.add(block)
        length = int.from_bytes(page[block + 2 : block + 4], "big")
        yield page[block + 4 : block + length]
        block = int.from_bytes(page[block : block + 2], "big")
