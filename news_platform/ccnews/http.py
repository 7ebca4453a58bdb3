"""Parse the HTTP header of an archived response and undo the encodings of its body.

Archived headers are unreliable: bodies are often stored decoded while the header still says chunked
or gzip (all of CC-NEWS before 16 May 2019). An encoding is undone only when the body itself has it.
"""

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from io import BytesIO

from fastwarc.stream_io import BrotliReader, ZstdReader

from news_platform.html.dates import parse_rfc822_date
from news_platform.html.decode import content_type_charset

# Larger steps would lose more of a body before its damage.
_INFLATE_STEP_BYTES = 4096
_STATUS = re.compile(rb"HTTP\S*\s+(\d{3})", re.IGNORECASE)
_FIELD = re.compile(
    rb"^(content-type|date|last-modified|transfer-encoding|content-encoding)[ \t]*:[ \t]*"
    rb"([^\r\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_CHUNK_LINE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_USUAL_DATE = re.compile(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d:\d\d:\d\d) GMT")
_MONTHS = {
    name: f"{number:02}"
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}


@dataclass(frozen=True, slots=True)
class HttpHead:
    """The fields of the header that we keep; None if absent. Dates are ISO 8601 with offset."""

    status: int | None
    mime: str | None
    charset: str | None
    date: str | None
    last_modified: str | None
    is_chunked: bool
    content_encoding: str


def parse_head(head: bytes) -> HttpHead:
    """Parse the fields that we keep; the first counts if one is repeated."""
    fields = {name.lower(): value for name, value in reversed(_FIELD.findall(head))}
    status = _STATUS.match(head)
    mime, charset = parse_content_type(fields.get(b"content-type", b""))
    return HttpHead(
        status=int(status.group(1)) if status else None,
        mime=mime,
        charset=charset,
        date=iso_date(fields.get(b"date", b"")),
        last_modified=iso_date(fields.get(b"last-modified", b"")),
        is_chunked=b"chunked" in fields.get(b"transfer-encoding", b"").lower(),
        content_encoding=fields.get(b"content-encoding", b"").decode("latin-1").strip().lower(),
    )


# A WARC has 30,000 responses but few distinct content types.
@lru_cache(maxsize=1024)
def parse_content_type(value: bytes) -> tuple[str | None, str | None]:
    """Return MIME type and charset in lower case, unquoted; None for what is not stated."""
    text = value.decode("latin-1").lower()
    mime = re.split(r"[;,\s]", text.strip(), maxsplit=1)[0]
    return mime or None, content_type_charset(text)


@lru_cache(maxsize=4096)
def iso_date(value: bytes) -> str | None:
    """Return an HTTP date as ISO 8601 with offset; None if it cannot be parsed."""
    text = value.decode("latin-1").strip()
    moment = _usual_date(text) or parse_rfc822_date(text)
    return moment.isoformat() if moment else None


def _usual_date(text: str) -> datetime | None:
    """Parse the form that nearly all servers send; much faster than the general parser."""
    usual = _USUAL_DATE.fullmatch(text)
    if not usual or usual[2] not in _MONTHS:
        return None
    try:
        return datetime.fromisoformat(f"{usual[3]}-{_MONTHS[usual[2]]}-{usual[1]}T{usual[4]}+00:00")
    except ValueError:
        return None


def plain_body(body: bytes, head: HttpHead, *, max_bytes: int) -> bytes:
    """Undo chunks and compression that the body really has, inflating to at most `max_bytes`.

    A truncated or damaged body gives the part that could be decoded.
    """
    if head.is_chunked:
        body = _unchunked(body)
    undo = _undo(body, head.content_encoding)
    return undo(body, max_bytes) if undo else body


def _unchunked(body: bytes) -> bytes:
    parts: list[bytes] = []
    position = 0
    while line := _CHUNK_LINE.match(body, position):
        size = int(line.group(1), 16)
        if size == 0:
            return b"".join(parts)
        end = line.end() + size
        parts.append(body[line.end() : end])
        position = end + (2 if body.startswith(b"\r\n", end) else body.startswith(b"\n", end))
    return b"".join((*parts, body[position:]))


def _undo(body: bytes, encoding: str) -> Callable[[bytes, int], bytes] | None:
    """Choose the decoder by the body; the header decides only for codings without a signature."""
    if body.startswith(b"\x1f\x8b\x08"):
        return _gunzipped
    if body.startswith(b"\x28\xb5\x2f\xfd"):
        return _unzstd
    undo = {"deflate": _undeflated, "br": _unbrotli}.get(encoding)
    # A body that starts like HTML was stored decoded, whatever its header says.
    if undo is None or body.lstrip(b"\xef\xbb\xbf\x00 \t\r\n")[:1] == b"<":
        return None
    return undo


def _gunzipped(body: bytes, max_bytes: int) -> bytes:
    return _inflated(body, max_bytes, wbits=31) or body


# "deflate" means zlib, but some servers send the bare deflate stream.
def _undeflated(body: bytes, max_bytes: int) -> bytes:
    return _inflated(body, max_bytes, wbits=15) or _inflated(body, max_bytes, wbits=-15) or body


def _inflated(body: bytes, max_bytes: int, *, wbits: int) -> bytes:
    """Inflate in small steps, so that damage costs only what follows it."""
    inflate = zlib.decompressobj(wbits)
    parts: list[bytes] = []
    room = max_bytes
    for start in range(0, len(body), _INFLATE_STEP_BYTES):
        try:
            parts.append(inflate.decompress(body[start : start + _INFLATE_STEP_BYTES], room))
        except zlib.error:
            break
        room -= len(parts[-1])
        if room <= 0:
            break
    return b"".join(parts)


def _unbrotli(body: bytes, max_bytes: int) -> bytes:
    return _read_all(BrotliReader(BytesIO(body)), max_bytes) or body


def _unzstd(body: bytes, max_bytes: int) -> bytes:
    return _read_all(ZstdReader(BytesIO(body)), max_bytes) or body


def _read_all(reader: BrotliReader | ZstdReader, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    room = max_bytes
    try:
        while room > 0 and (data := reader.read(min(room, 64 << 10))):
            parts.append(data)
            room -= len(data)
    except OSError:
        pass  # keep what could be read
    return b"".join(parts)
