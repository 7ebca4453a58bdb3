"""Pure: captures in, WARC bytes out, shaped like Common Crawl's CC-NEWS files."""

import base64
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha1
from http import HTTPStatus
from urllib.parse import urlsplit

from news_platform.sample.chance import Chance
from news_platform.sample.resource import Resource, gzip_member, http_date

_AGENT = "CCBot/2.0 (https://commoncrawl.org/faq/)"
_WARCINFO = f"""\
software: StormCrawler 2.10 http://stormcrawler.net/
description: News crawl of the sample world
http-header-user-agent: {_AGENT}
format: WARC File Format 1.0
conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.0/
"""


@dataclass(frozen=True, slots=True)
class Capture:
    """One request of the crawler and the answer it got."""

    url: str
    resource: Resource
    at: datetime


def warc_bytes(name: str, captures: Sequence[Capture], *, started_at: datetime) -> bytes:
    """Return a whole WARC file: warcinfo, then request and response pairs, a member a record."""
    body = _WARCINFO.replace("\n", "\r\n").encode()
    info = _record("warcinfo", body, name=name, at=started_at, extra=(("WARC-Filename", name),))
    return info + b"".join(_pair(capture, f"{name}/{n}") for n, capture in enumerate(captures))


def _pair(capture: Capture, name: str) -> bytes:
    answer = _record_id(f"{name}/response")
    shared = (("WARC-IP-Address", _address(capture)), ("WARC-Target-URI", capture.url))
    request = _record(
        "request",
        _request(capture),
        name=f"{name}/request",
        at=capture.at,
        extra=(*shared, ("WARC-Concurrent-To", answer)),
    )
    block = _response(capture)
    digests = (
        ("WARC-Payload-Digest", _digest(capture.resource.body)),
        ("WARC-Block-Digest", _digest(block)),
    )
    return request + _record(
        "response", block, name=f"{name}/response", at=capture.at, extra=(*shared, *digests)
    )


def _record(
    kind: str, block: bytes, *, name: str, at: datetime, extra: Iterable[tuple[str, str]]
) -> bytes:
    types = {"warcinfo": "application/warc-fields"}
    fields = (
        ("WARC-Type", kind),
        ("WARC-Record-ID", _record_id(name)),
        ("WARC-Date", f"{at:%Y-%m-%dT%H:%M:%SZ}"),
        ("Content-Length", str(len(block))),
        ("Content-Type", types.get(kind, f"application/http; msgtype={kind}")),
        *extra,
    )
    head = "WARC/1.0\r\n" + "".join(f"{key}: {value}\r\n" for key, value in fields) + "\r\n"
    return gzip_member(head.encode() + block + b"\r\n\r\n")


def _request(capture: Capture) -> bytes:
    parts = urlsplit(capture.url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    return (
        f"GET {target} HTTP/1.1\r\nHost: {parts.hostname}\r\nUser-Agent: {_AGENT}\r\n"
        "Accept-Language: en-us,en-gb,en;q=0.7,*;q=0.3\r\n"
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
        "Accept-Encoding: br,gzip\r\nConnection: Keep-Alive\r\n\r\n"
    ).encode()


def _response(capture: Capture) -> bytes:
    resource = capture.resource
    fields = [("Date", http_date(capture.at)), ("Content-Type", resource.content_type)]
    if resource.modified_at:
        fields.append(("Last-Modified", http_date(resource.modified_at)))
    if resource.location:
        fields.append(("Location", resource.location))
    if resource.gzipped:
        # The crawler stores the body inflated and keeps the old header under this name.
        fields.append(("X-Crawl-Content-Encoding", "gzip"))
    fields.append(("Content-Length", str(len(resource.body))))
    phrase = HTTPStatus(resource.status).phrase
    head = f"HTTP/1.1 {resource.status} {phrase}\r\n"
    head += "".join(f"{key}: {value}\r\n" for key, value in fields)
    return f"{head}\r\n".encode() + resource.body


def _digest(body: bytes) -> str:
    return "sha1:" + base64.b32encode(sha1(body, usedforsecurity=False).digest()).decode()


def _record_id(name: str) -> str:
    return f"<urn:uuid:{uuid.UUID(bytes=Chance('record', name).octets(16), version=4)}>"


def _address(capture: Capture) -> str:
    """Return an address of the blocks reserved for documentation, the same for a host."""
    chance = Chance("address", urlsplit(capture.url).hostname)
    return chance.pick(("192.0.2", "198.51.100", "203.0.113")) + f".{chance.number(1, 254)}"
