"""Small WARC files for tests, written byte by byte so that each can be wrong in its own way."""

import gzip
import io
from collections.abc import Iterable
from dataclasses import dataclass

NAME = "CC-NEWS-20251101004549-04954.warc.gz"
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Record:
    """One WARC record to be written."""

    block: bytes
    kind: str = "response"
    uri: str = "https://www.levels.fyi/nl-nl/x"
    at: str = "2025-11-01T01:44:44Z"

    def dumped(self) -> bytes:
        head = (
            f"WARC/1.0\r\nWARC-Type: {self.kind}\r\nWARC-Target-URI: {self.uri}\r\n"
            f"WARC-Date: {self.at}\r\nWARC-Payload-Digest: sha1:ABC\r\n"
            f"Content-Type: application/http\r\nContent-Length: {len(self.block)}\r\n\r\n"
        )
        return head.encode() + self.block + b"\r\n\r\n"


def http(
    body: bytes | str, *headers: str, mime: str | None = HTML, status: str = "200 OK"
) -> bytes:
    """Return an HTTP response."""
    fields = [f"HTTP/1.1 {status}", "Date: Sat, 01 Nov 2025 01:44:44 GMT", *headers]
    fields += [f"Content-Type: {mime}"] if mime else []
    data = body.encode() if isinstance(body, str) else body
    return "\r\n".join([*fields, "", ""]).encode() + data


def article(text: str, *, head: str = "") -> str:
    """Return a page whose main content is the text."""
    body = "".join(f"<p>{text} And so the story of the town goes on.</p>" for _ in range(4))
    return (
        f"<!doctype html><html><head><title>A title</title>{head}</head>"
        f"<body><article>{body}</article></body></html>"
    )


def page(number: int, *, text: str = "The mayor of the town opened the bridge today.") -> Record:
    """Return the response record of one plain article."""
    return Record(
        http(article(f"{text} Number {number}.")),
        uri=f"https://news{number}.example.com/a/{number}",
    )


def gzipped(records: Iterable[Record]) -> bytes:
    """Return a WARC file with one gzip member a record, as Common Crawl writes it."""
    return b"".join(gzip.compress(record.dumped(), mtime=0) for record in records)


def stream(data: bytes) -> io.BytesIO:
    """Return the bytes as a stream."""
    return io.BytesIO(data)
