"""Read one WARC stream and yield its raw HTTP responses, each with its place in the file.

A damaged record is yielded as DroppedWarcRecord and the next one follows. A file that ends within
its last record, is empty or is not a WARC raises InputError: nothing of it may be published.

Nearly every record of the crawl is written strictly by the specification and is parsed here, at a
third of the cost of fastwarc; all other records go to fastwarc, which tolerates more.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import count
from typing import BinaryIO, cast

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordPayloadReader, WarcRecordType

from news_platform.ccnews.gzip_members import (
    GZIP_MAGIC,
    ByteSource,
    MemberGroup,
    PushbackReader,
    iter_member_groups,
)
from news_platform.errors import InputError
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary

# The magic numbers of lz4 and zstd; their own framing reveals a truncated file.
_FRAMED_MAGICS = (b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd")
# These records accompany a response. They are not pages, so leaving them out drops nothing.
_COMPANIONS = WarcRecordType.warcinfo | WarcRecordType.request | WarcRecordType.metadata
# The longest header, of a WARC record or of HTTP, that is looked for.
_HEADER_BYTES = 64 << 10
_VERSIONS = ("WARC/1.0", "WARC/1.1")
_HTTP_BLANK_LINE = re.compile(rb"\n[ \t\r\x0b\x0c]*\n")
_RECORD_END = b"\r\n\r\n"
# More than fastwarc's buffer and the longest header that it accepts, so that the window always
# holds the header of the current record.
_WINDOW_BYTES = 192 << 10
_RECORD_MAGIC = b"WARC/"
_RECORD_BLANK_LINE = re.compile(rb"\r*\n\r*\n")
# Base32 of 160 bits. Some archivers write it in lower case.
_DIGEST = re.compile(r"sha-?1:([A-Z2-7]{32})", re.IGNORECASE)


class BrokenWarc(InputError):
    """A file that is truncated or not a WARC; what lies before the byte `offset` can be read."""

    def __init__(self, message: str, *, thing: str, offset: int = 0) -> None:
        super().__init__(message, thing=thing)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class DroppedWarcRecord:
    """A record that gave no row, and why; `uri` is empty if it is unknown."""

    reason: str
    offset: int
    uri: str = ""


@dataclass(frozen=True, slots=True)
class RecordInfo:
    """The identity and place of a record; `number` counts the records of the file from 0.

    `offset` and `length` are a byte range of the stored file. Records that share a gzip member
    share its offset; `length` is None unless the range ends with the record. `payload_digest` is
    the SHA-1 of the payload in base32: as the record states it, or else computed.
    """

    number: int
    offset: int
    length: int | None
    uri: str
    warc_date: str | None
    payload_digest: str | None


@dataclass(frozen=True, slots=True)
class WarcResponse:
    """One response record as archived.

    `head` is empty when the record has no HTTP header; `payload_type` is the MIME type that the
    archiver identified; `is_whole` is False when the body exceeds the given limit. A revisit has no
    body of its own: an earlier response has it.
    """

    record: RecordInfo
    payload_type: str | None
    head: bytes
    body: bytes
    is_whole: bool
    is_revisit: bool = False


@dataclass(frozen=True, slots=True)
class StrictRecord:
    """A record that follows the specification, with its fields by lower-case name.

    Only a response has `head`, `body` and `digest`; the body is cut one byte above the given limit.
    """

    kind: str
    fields: Mapping[str, str]
    head: bytes = b""
    body: bytes = b""
    digest: str = ""


class PlainStream:
    """An uncompressed stream that can report at its end whether the last record is complete.

    The trailer of a gzip member shows that the member is whole; in a plain file only the blank
    lines after the last record do.
    """

    def __init__(self, source: PushbackReader) -> None:
        self._source = source
        self._window = b""
        self._end = 0
        self._header_end: int | None = None
        self._blank_line = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes of the stream, none at its end."""
        data = bytes(self._source.take())
        if 0 <= size < len(data):
            self._source.give_back(data[size:])
            data = data[:size]
        self._end += len(data)
        self._window = (self._window + data)[-_WINDOW_BYTES:]
        return data

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._end

    def mark(self, start: int) -> None:
        """Remember the record whose header, already read, starts at this byte."""
        found = _RECORD_BLANK_LINE.search(self._window, start - (self._end - len(self._window)))
        self._header_end = None
        if found:
            self._header_end = self._end - len(self._window) + found.end()
            self._blank_line = found.group()

    def is_complete(self, content_length: int) -> bool:
        """Return, at the end of the stream, whether the marked record is complete."""
        if self._header_end is None:
            return False
        rest = self._end - (self._header_end + content_length)
        if rest < 0:
            return False
        after = self._window[max(0, len(self._window) - rest) :].strip(b"\r\n")
        if after:  # a Content-Length that is too small leaves text; only a new record is a cut
            return not _RECORD_MAGIC.startswith(after[: len(_RECORD_MAGIC)])
        # Some writers end an empty record, which cannot lack anything, with a single line break.
        return content_length == 0 or rest >= len(self._blank_line)


# A record that was read but may still turn out damaged; called with its length, it gives the item.
_Held = Callable[[int | None], WarcResponse | DroppedWarcRecord]


def iter_responses(
    stream: ByteSource, *, warc_name: str, max_body_bytes: int
) -> Iterator[WarcResponse | DroppedWarcRecord]:
    """Yield every response in file order; raise InputError for a truncated file or no WARC."""
    source = PushbackReader(stream)
    start = source.peek(_HEADER_BYTES)
    if not start:
        raise BrokenWarc(f"WARC {warc_name!r} is empty", thing=warc_name)
    is_gzip = not start.startswith((_RECORD_MAGIC, *_FRAMED_MAGICS)) and GZIP_MAGIC in start
    iter_records = _iter_gzip if is_gzip else _iter_plain
    yield from iter_records(source, warc_name=warc_name, max_body_bytes=max_body_bytes)


def first_record_day(stream: ByteSource, *, warc_name: str) -> date | None:
    """Return the day of the WARC-Date of the first record; None when it states none.

    Raise InputError for an ARC file.
    """
    source = PushbackReader(stream)
    start = source.peek(_HEADER_BYTES)
    reader: MemberGroup | PlainStream = PlainStream(source)
    if start.startswith(GZIP_MAGIC):
        reader = group = next(iter_member_groups(source))
        start = group.head
    _refuse_arc(start, warc_name)
    with suppress(OSError, ValueError):
        for record in _fastwarc_records(reader):
            return date.fromisoformat((record.headers.get("WARC-Date") or "")[:10])
    return None


def _iter_gzip(
    source: PushbackReader, *, warc_name: str, max_body_bytes: int
) -> Iterator[WarcResponse | DroppedWarcRecord]:
    parse = partial(parse_strict_record, max_body_bytes=max_body_bytes)
    numbers = count()
    for group in iter_member_groups(source):
        strict: StrictRecord | None = None
        response: WarcResponse | None = None
        with boundary("record", f"{warc_name} at byte {group.offset}") as unit:
            if strict := group.parsed(parse):
                number = next(numbers)
                if strict.kind == "response":
                    response = _strict_response(strict, group, number, max_body_bytes)
        if unit.cause:
            if strict is None:  # every record has a number, also one that fails
                next(numbers)
            yield DroppedWarcRecord(INTERNAL_ERROR, group.offset)
        elif response:
            yield response
        elif strict is None:
            read = partial(_read_record, offset=group.offset, max_body_bytes=max_body_bytes)
            yield from _iter_group(group, read, numbers, warc_name=warc_name)
    if not next(numbers):  # an HTML error page or an ARC file gives no record and no error
        raise _not_a_warc(warc_name)


def _strict_response(
    strict: StrictRecord, group: MemberGroup, number: int, max_body_bytes: int
) -> WarcResponse:
    fields = strict.fields
    return WarcResponse(
        record=RecordInfo(
            number=number,
            offset=group.offset,
            length=group.length,
            uri=_uri(fields.get("warc-target-uri")),
            warc_date=fields.get("warc-date"),
            payload_digest=strict.digest,
        ),
        payload_type=fields.get("warc-identified-payload-type"),
        head=strict.head,
        body=strict.body,
        is_whole=len(strict.body) <= max_body_bytes,
    )


def _iter_group(
    group: MemberGroup, read: Callable[..., _Held | None], numbers: Iterator[int], *, warc_name: str
) -> Iterator[WarcResponse | DroppedWarcRecord]:
    """Yield the records of a group that is not strict, however many it holds."""
    held: _Held | None = None
    is_empty = True
    for record in _group_records(group):
        if held:
            yield held(None)
        held = read(record, number=next(numbers))
        is_empty = False
    group.drain()
    if group.is_cut:
        raise _truncated(warc_name, group.offset)
    if group.is_damaged:
        yield DroppedWarcRecord("corrupt_member", group.offset)
    elif held:
        yield held(group.length)
    elif is_empty:
        _refuse_arc(group.head, warc_name)
        yield DroppedWarcRecord("not_a_record", group.offset)


def _iter_plain(
    source: PushbackReader, *, warc_name: str, max_body_bytes: int
) -> Iterator[WarcResponse | DroppedWarcRecord]:
    begin = source.peek(_HEADER_BYTES)
    _refuse_arc(begin, warc_name)
    stream = PlainStream(source)
    held: _Held | None = None
    start, record = 0, None
    for number, record in enumerate(_plain_records(stream, warc_name)):
        if held:
            yield held(record.stream_pos - start)
        start = record.stream_pos
        stream.mark(start)
        held = _read_record(record, offset=start, number=number, max_body_bytes=max_body_bytes)
    if record is None:
        raise _not_a_warc(warc_name)
    if not (begin.startswith(_FRAMED_MAGICS) or stream.is_complete(record.content_length)):
        raise _truncated(warc_name, start)
    if held:
        yield held(stream.tell() - start)


def _fastwarc_records(stream: MemberGroup | PlainStream) -> Iterator[WarcRecord]:
    # fastwarc calls only read and tell of a stream, but its stub asks for a whole file. HTTP is not
    # parsed by it: its auto_decode="all" ends the stream at a header that wrongly says chunked.
    return iter(ArchiveIterator(cast(BinaryIO, stream), parse_http=False, quirks_mode=True))


def _group_records(group: MemberGroup) -> Iterator[WarcRecord]:
    """Yield the records of a group, up to the first whose header cannot be parsed."""
    with suppress(OSError):  # fastwarc raises it at a damaged member and ends the iteration
        yield from _fastwarc_records(group)


def _plain_records(stream: PlainStream, warc_name: str) -> Iterator[WarcRecord]:
    try:
        yield from _fastwarc_records(stream)
    except OSError as error:
        raise _truncated(warc_name, stream.tell()) from error


def _read_record(
    record: WarcRecord, *, offset: int, number: int, max_body_bytes: int
) -> _Held | None:
    """Read a response off the stream; its length is filled in when the next record is reached."""
    kind = record.record_type
    if kind & _COMPANIONS:
        return None
    is_revisit = kind == WarcRecordType.revisit
    if not (is_revisit or kind == WarcRecordType.response):
        uri = _uri(record.headers.get("WARC-Target-URI"))
        return lambda length: DroppedWarcRecord(f"{kind}_record", offset, uri)
    headers = record.headers
    # `read` allocates as many bytes as are requested, so never request more than there are.
    limit = min(record.content_length, max_body_bytes + 1)
    head, body = _read_http(record.reader, limit=limit)
    digest = stated_digest(headers.get("WARC-Payload-Digest"))
    if not (digest or is_revisit):
        digest = _digest_of(body, record.reader)

    def response(length: int | None) -> WarcResponse:
        return WarcResponse(
            record=RecordInfo(
                number=number,
                offset=offset,
                length=length,
                uri=_uri(headers.get("WARC-Target-URI")),
                warc_date=headers.get("WARC-Date"),
                payload_digest=digest,
            ),
            payload_type=headers.get("WARC-Identified-Payload-Type"),
            head=head,
            body=body,
            is_whole=len(body) <= max_body_bytes,
            is_revisit=is_revisit,
        )

    return response


def _uri(stated: str | None) -> str:
    return (stated or "").strip().strip("<>")


def stated_digest(field: str | None) -> str | None:
    """Return the SHA-1 that a record states in base32; None if it states none of that kind."""
    found = _DIGEST.fullmatch((field or "").strip())
    return found[1].upper() if found else None


def _digest_of(body: bytes, rest: WarcRecordPayloadReader) -> str:
    """Return the digest of a payload of which a part is read already."""
    digest = hashlib.sha1(body, usedforsecurity=False)
    while more := rest.read(_HEADER_BYTES):
        digest.update(more)
    return base64.b32encode(digest.digest()).decode()


def _read_http(reader: WarcRecordPayloadReader, *, limit: int) -> tuple[bytes, bytes]:
    """Split a record into HTTP header and body; without a status line all of it is body."""
    lines = [reader.readline()]
    if lines[0][:4].upper() != b"HTTP":
        return b"", lines[0] + reader.read(limit)
    size = 0
    while size < _HEADER_BYTES and (line := reader.readline()).strip():
        lines.append(line)
        size += len(line)
    return b"".join(lines), reader.read(limit)


def _refuse_arc(head: bytes, warc_name: str) -> None:
    if head.startswith(b"filedesc:"):
        raise BrokenWarc(f"{warc_name!r} is an ARC file: expected a WARC", thing=warc_name)


def _truncated(warc_name: str, offset: int) -> BrokenWarc:
    return BrokenWarc(
        f"WARC {warc_name!r} is truncated: it ends within the record at byte {offset}",
        thing=warc_name,
        offset=offset,
    )


def _not_a_warc(warc_name: str) -> BrokenWarc:
    return BrokenWarc(f"{warc_name!r} is not a WARC: it contains no record", thing=warc_name)


def parse_strict_record(data: bytes, *, max_body_bytes: int) -> StrictRecord | None:
    """Parse the bytes of a gzip member that are one strict record; return None for all others.

    Strict means: ASCII header fields with CRLF, a correct Content-Length, blank lines at the end.
    """
    at = data.find(_RECORD_END, 0, _HEADER_BYTES)
    fields = _strict_fields(data[:at]) if at > 0 else {}
    length = fields.get("content-length", "")
    start, end = at + len(_RECORD_END), len(data) - len(_RECORD_END)
    # Compared as text: int() refuses more than 4,300 digits.
    is_sized = length.isdecimal() and length == str(end - start)
    if not (is_sized and data.endswith(_RECORD_END)):
        return None
    kind = fields.get("warc-type", "")
    if kind in ("request", "warcinfo", "metadata"):
        return StrictRecord(kind, fields)
    blank = _HTTP_BLANK_LINE.search(data, start, min(end, start + _HEADER_BYTES))
    if kind != "response" or blank is None or data[start : start + 4].upper() != b"HTTP":
        return None
    body = data[blank.end() : min(end, blank.end() + max_body_bytes + 1)]
    digest = stated_digest(fields.get("warc-payload-digest"))
    if digest is None:
        payload = memoryview(data)[blank.end() : end]
        whole = hashlib.sha1(payload, usedforsecurity=False).digest()
        digest = base64.b32encode(whole).decode()
    return StrictRecord(kind, fields, data[start : blank.start() + 1], body, digest)


def _strict_fields(header: bytes) -> Mapping[str, str]:
    """Return all fields by lower-case name; none when the header could be read in two ways."""
    text = header.decode("latin-1")
    version, *lines = text.split("\r\n")
    has_odd_lines = "\n " in text or "\n\t" in text or text.count("\n") != len(lines)
    if version not in _VERSIONS or has_odd_lines or not text.isascii():
        return {}
    pairs = [line.partition(":") for line in lines]
    found = {(name.lower(), value.strip()) for name, _, value in pairs}
    fields = dict(found)
    # Two values of one name would need a choice. fastwarc reads no body after a second WARC-Type.
    return fields if len(fields) == len(found) else {}
