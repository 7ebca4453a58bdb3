"""One WARC stream in, its raw HTTP responses out, each with its place in the file.

A damaged record is yielded as DroppedRecord and the next one follows. A file that ends before its
last record does, is empty, or is no WARC raises InputError: nothing of it may be published.
"""

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

_FRAMED_MAGICS = (b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd")  # lz4 and zstd tell a cut themselves
# Records that go with a response; they are not pages, so leaving them out drops nothing.
_COMPANIONS = WarcRecordType.warcinfo | WarcRecordType.request | WarcRecordType.metadata
HEADER_BYTES = 64 << 10
_VERSIONS = ("WARC/1.0", "WARC/1.1")
_BLANK_LINE = re.compile(rb"\n[ \t\r\x0b\x0c]*\n")
_END = b"\r\n\r\n"
# More than a reader's buffer and the longest header it accepts, so a record's header is inside.
_WINDOW_BYTES = 192 << 10
_RECORD_MAGIC = b"WARC/"
_RECORD_BLANK_LINE = re.compile(rb"\r*\n\r*\n")


@dataclass(frozen=True, slots=True)
class DroppedRecord:
    """A record that gave no row, and why."""

    reason: str
    offset: int


@dataclass(frozen=True, slots=True)
class RecordInfo:
    """Which record it is and where it lies; `number` counts the records of the file from 0.

    `offset` and `length` are a byte range of the stored file; records that share one gzip member
    share its offset, and length is None unless the range ends with the record.
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
    archiver identified; `is_whole` is False when the body exceeds the limit given.
    """

    record: RecordInfo
    payload_type: str | None
    head: bytes
    body: bytes
    is_whole: bool


@dataclass(frozen=True, slots=True)
class StrictRecord:
    """A record: its kind, its fields by name in lower case, its HTTP header and body.

    Only a response has the last two; the body is cut at one byte over the limit given.
    """

    kind: str
    fields: Mapping[str, str]
    head: bytes = b""
    body: bytes = b""


class PlainStream:
    """A readable stream that remembers the header of the record in hand and how it all ended."""

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
        """Say, at the end of the stream, whether the marked record is there to its end."""
        if self._header_end is None:
            return False
        rest = self._end - (self._header_end + content_length)
        if rest < 0:
            return False
        after = self._window[max(0, len(self._window) - rest) :].strip(b"\r\n")
        if after:  # a length stated too short leaves text behind; only a started record is a cut
            return not _RECORD_MAGIC.startswith(after[: len(_RECORD_MAGIC)])
        # Some writers end an empty record, from which nothing can be missing, by one line only.
        return content_length == 0 or rest >= len(self._blank_line)


# A record that was read but is not yet known to be sound; given its length, it is what we yield.
_Held = Callable[[int | None], WarcResponse | DroppedRecord]


def iter_responses(
    stream: ByteSource, *, name: str, max_body_bytes: int
) -> Iterator[WarcResponse | DroppedRecord]:
    """Yield every response in file order; raise InputError when the file is cut off or no WARC."""
    source = PushbackReader(stream)
    start = source.peek(HEADER_BYTES)
    if not start:
        raise InputError(f"WARC {name!r} is empty", thing=name)
    is_gzip = not start.startswith((b"WARC/", *_FRAMED_MAGICS)) and GZIP_MAGIC in start
    iter_records = _iter_gzip if is_gzip else _iter_whole
    yield from iter_records(source, name=name, max_body_bytes=max_body_bytes)


def first_record_day(stream: ByteSource) -> date | None:
    """Return the day of the WARC-Date of the first record; None when it states none."""
    source = PushbackReader(stream)
    is_gzip = source.peek(len(GZIP_MAGIC)) == GZIP_MAGIC
    reader = next(iter_member_groups(source)) if is_gzip else PlainStream(source)
    with suppress(OSError, ValueError):
        for record in _records(reader):
            return date.fromisoformat((record.headers.get("WARC-Date") or "")[:10])
    return None


def _iter_gzip(
    source: PushbackReader, *, name: str, max_body_bytes: int
) -> Iterator[WarcResponse | DroppedRecord]:
    parse = partial(parse_strict_record, max_body_bytes=max_body_bytes)
    numbers = count()
    for frame in iter_member_groups(source):
        if record := frame.parsed(parse):
            number = next(numbers)
            if record.kind == "response":
                yield _plain_response(record, frame, number, max_body_bytes=max_body_bytes)
        else:
            read = partial(_read_record, offset=frame.offset, max_body_bytes=max_body_bytes)
            yield from _iter_frame(frame, read, numbers, name=name)
    if not next(numbers):
        raise _not_a_warc(name)


def _plain_response(
    plain: StrictRecord, frame: MemberGroup, number: int, *, max_body_bytes: int
) -> WarcResponse:
    fields = plain.fields
    return WarcResponse(
        record=RecordInfo(
            number=number,
            offset=frame.offset,
            length=frame.length,
            uri=_uri(fields.get("warc-target-uri")),
            warc_date=fields.get("warc-date"),
            payload_digest=fields.get("warc-payload-digest"),
        ),
        payload_type=fields.get("warc-identified-payload-type"),
        head=plain.head,
        body=plain.body,
        is_whole=len(plain.body) <= max_body_bytes,
    )


def _iter_frame(
    frame: MemberGroup, read: Callable[..., _Held | None], numbers: Iterator[int], *, name: str
) -> Iterator[WarcResponse | DroppedRecord]:
    """Yield the records of a frame that is not by the book, however many it holds."""
    held: _Held | None = None
    is_empty = True
    for record in _frame_records(frame):
        if held:
            yield held(None)
        held = read(record, number=next(numbers))
        is_empty = False
    frame.drain()
    if frame.is_cut:
        raise _truncated(name, frame.offset)
    if frame.is_damaged:
        yield DroppedRecord("corrupt_member", frame.offset)
    elif held:
        yield held(frame.length)
    elif is_empty:
        _refuse_arc(frame.head, name)
        yield DroppedRecord("not_a_record", frame.offset)


def _iter_whole(
    source: PushbackReader, *, name: str, max_body_bytes: int
) -> Iterator[WarcResponse | DroppedRecord]:
    begin = source.peek(HEADER_BYTES)
    _refuse_arc(begin, name)
    tape = PlainStream(source)
    held: _Held | None = None
    start, record = 0, None
    for number, record in enumerate(_whole_records(tape, name)):
        if held:
            yield held(record.stream_pos - start)
        start = record.stream_pos
        tape.mark(start)
        held = _read_record(record, offset=start, number=number, max_body_bytes=max_body_bytes)
    if record is None:
        raise _not_a_warc(name)
    if not (begin.startswith(_FRAMED_MAGICS) or tape.is_complete(record.content_length)):
        raise _truncated(name, start)
    if held:
        yield held(tape.tell() - start)


def _records(stream: MemberGroup | PlainStream) -> Iterator[WarcRecord]:
    # fastwarc asks a stream for read and tell only; its stub asks for a whole file.
    return iter(ArchiveIterator(cast(BinaryIO, stream), parse_http=False, quirks_mode=True))


def _frame_records(frame: MemberGroup) -> Iterator[WarcRecord]:
    """Yield the records of a frame; one whose header is no header ends it."""
    with suppress(OSError):
        yield from _records(frame)


def _whole_records(tape: PlainStream, name: str) -> Iterator[WarcRecord]:
    try:
        yield from _records(tape)
    except OSError as error:
        raise _truncated(name, tape.tell()) from error


def _read_record(
    record: WarcRecord, *, offset: int, number: int, max_body_bytes: int
) -> _Held | None:
    """Read a response off the stream; its length is filled in when the next record is reached."""
    kind = record.record_type
    if kind & _COMPANIONS:
        return None
    if kind != WarcRecordType.response:
        return lambda length: DroppedRecord(f"{kind}_record", offset)
    headers = record.headers
    # `read` allocates what it is asked for, so it is never asked for more than is there.
    limit = min(record.content_length, max_body_bytes + 1)
    head, body = _read_http(record.reader, limit=limit)

    def response(length: int | None) -> WarcResponse:
        return WarcResponse(
            record=RecordInfo(
                number=number,
                offset=offset,
                length=length,
                uri=_uri(headers.get("WARC-Target-URI")),
                warc_date=headers.get("WARC-Date"),
                payload_digest=headers.get("WARC-Payload-Digest"),
            ),
            payload_type=headers.get("WARC-Identified-Payload-Type"),
            head=head,
            body=body,
            is_whole=len(body) <= max_body_bytes,
        )

    return response


def _uri(stated: str | None) -> str:
    return (stated or "").strip().strip("<>")


def _read_http(reader: WarcRecordPayloadReader, *, limit: int) -> tuple[bytes, bytes]:
    """Split a record into HTTP header and body; without a status line all of it is body."""
    lines = [reader.readline()]
    if lines[0][:4].upper() != b"HTTP":
        return b"", lines[0] + reader.read(limit)
    size = 0
    while size < HEADER_BYTES and (line := reader.readline()).strip():
        lines.append(line)
        size += len(line)
    return b"".join(lines), reader.read(limit)


def _refuse_arc(head: bytes, name: str) -> None:
    if head.startswith(b"filedesc:"):
        raise InputError(f"{name!r} is an ARC file, expected a WARC", thing=name)


def _truncated(name: str, offset: int) -> InputError:
    return InputError(
        f"WARC {name!r} is truncated: it ends within the record at byte {offset}", thing=name
    )


def _not_a_warc(name: str) -> InputError:
    return InputError(f"{name!r} is not a WARC: no record found", thing=name)


def parse_strict_record(data: bytes, *, max_body_bytes: int) -> StrictRecord | None:
    """Return the one record that these bytes are; None if they are anything else."""
    at = data.find(_END, 0, HEADER_BYTES)
    fields = _fields(data[:at]) if at > 0 else {}
    length = fields.get("content-length", "")
    start, end = at + len(_END), len(data) - len(_END)
    if not (length.isdecimal() and end - start == int(length) and data.endswith(_END)):
        return None
    kind = fields.get("warc-type", "")
    if kind in ("request", "warcinfo", "metadata"):
        return StrictRecord(kind, fields)
    blank = _BLANK_LINE.search(data, start, min(end, start + HEADER_BYTES))
    if kind != "response" or blank is None or data[start : start + 4].upper() != b"HTTP":
        return None
    body = data[blank.end() : min(end, blank.end() + max_body_bytes + 1)]
    return StrictRecord(kind, fields, data[start : blank.start() + 1], body)


def _fields(header: bytes) -> Mapping[str, str]:
    """Return all fields, names in lower case; none of a header that could be read in two ways."""
    text = header.decode("latin-1")
    version, *lines = text.split("\r\n")
    has_odd_lines = "\n " in text or "\n\t" in text or text.count("\n") != len(lines)
    if version not in _VERSIONS or has_odd_lines or not text.isascii():
        return {}
    pairs = [line.partition(":") for line in lines]
    fields = {name.lower(): value.strip() for name, _, value in pairs}
    return fields if len(fields) == len(pairs) else {}  # a repeated name would need a choice
