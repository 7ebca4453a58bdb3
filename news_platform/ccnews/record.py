"""Pure: the bytes of one gzip member in, the WARC record they hold out, if written by the book.

By the book is: one record, ASCII header fields with CRLF, a true Content-Length, blank lines at the
end. Nearly every record of the crawl is, and is read here at a third of the cost; whatever is not
belongs to the tolerant reader.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

HEADER_BYTES = 64 << 10
_VERSIONS = ("WARC/1.0", "WARC/1.1")
_BLANK_LINE = re.compile(rb"\n[ \t\r\x0b\x0c]*\n")
_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class StrictRecord:
    """A record: its kind, its fields by name in lower case, its HTTP header and body.

    Only a response has the last two; the body is cut at one byte over the limit given.
    """

    kind: str
    fields: Mapping[str, str]
    head: bytes = b""
    body: bytes = b""


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
