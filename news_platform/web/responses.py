"""Read a response: what its headers ask of the next request, and its body up to a cap.

Servers write anything here: superscript digits, numbers of 5,000 digits, dates with impossible
offsets, validators of 50 KB. A wait or validator that cannot be used is left out.
"""

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

import aiohttp
import brotli  # type: ignore[import-untyped]  # ships no types
from yarl import URL

from news_platform.errors import FetchError
from news_platform.html.dates import parse_rfc822_date
from news_platform.text.normalize import scrub_text

REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))
_PERMANENT_STATUSES = frozenset((301, 308))
# A retry may help with these, among them Cloudflare's 52x. Any other status from 400 is final.
RETRYABLE_STATUSES = frozenset((408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524))
# The longest wait that a header can cause; a longer one is cut to it.
MAX_WAIT_SECONDS = 24 * 3600
_DEFAULT_WAIT_SECONDS = 600
# ASCII only: `\d` and `str.isdigit` accept digits that `int` rejects.
_SECONDS = re.compile(r"[0-9]+")
_MAX_AGE = re.compile(r"(?:^|[\s,])(?:s-maxage|max-age)\s*=\s*\"?([0-9]+)", re.IGNORECASE)
# An HTTP date has 29 characters; two of them joined by a proxy still fit.
_LONGEST_DATE = 64
# Real validators have up to 200 characters; servers refuse requests with a header of 8 KB.
_LONGEST_VALIDATOR = 1_000


def next_url(
    current: URL,
    location: str,
    *,
    visited: Sequence[str],
    max_redirects: int,
    has_new_cookie: bool = False,
) -> str:
    """Return the URL that a `Location` header leads to, without its fragment.

    `visited` are the URLs so far, `current` included. A site may lead to one of them again after it
    has set a cookie. Raise FetchError if the header cannot be parsed (bad_url), or for a loop or
    too many redirects (too_many_redirects).
    """
    try:
        target = str(current.join(URL(location)).with_fragment(None))
    except ValueError as error:
        message = f"cannot follow {str(current)!r} to {location!r}: {error}"
        raise FetchError(message, thing=str(current), reason="bad_url") from error
    is_loop = target in visited and not has_new_cookie
    if is_loop or len(visited) > max_redirects:
        message = f"cannot fetch {visited[0]!r}: gave up after {len(visited)} redirects"
        raise FetchError(message, thing=visited[0], reason="too_many_redirects")
    return target


def is_permanent_redirect(statuses: Iterable[int]) -> bool:
    """Return True if there was a redirect and every one of them was permanent."""
    found = tuple(statuses)
    return bool(found) and _PERMANENT_STATUSES.issuperset(found)


def requested_wait_seconds(headers: Mapping[str, str], *, now: datetime) -> int:
    """Return the longer wait of the two headers (lower-case names), 0 when there is none."""
    retry_after = parse_retry_after(headers.get("retry-after", ""), now=now)
    return max(retry_after or 0, parse_max_age(headers.get("cache-control", "")) or 0)


def host_wait_seconds(status: int, headers: Mapping[str, str]) -> int:
    """Return for how long an answer wants no further request of us to its host."""
    if status not in (429, 503):
        return 0
    # Its own clock tells how far away a date is.
    sent_at = parse_rfc822_date(headers.get("date", "")[:_LONGEST_DATE])
    now = sent_at or datetime.max.replace(tzinfo=UTC)
    wait = parse_retry_after(headers.get("retry-after", ""), now=now)
    # "Too many requests" without a time means all of our requests, too.
    return _DEFAULT_WAIT_SECONDS if wait is None and status == 429 else wait or 0


def parse_retry_after(value: str, *, now: datetime) -> int | None:
    """Return the seconds from `now` that a Retry-After header asks for, 0 for a past date.

    None means that the value cannot be read: empty, negative, fractional, not ASCII, or a date out
    of range. Of several numbers (a repeated header, joined by commas) the largest counts.
    """
    parts = [part.strip() for part in value.split(",")]
    numbers = [_capped(part) for part in parts if _SECONDS.fullmatch(part)]
    return max(numbers) if numbers else _seconds_until(value.strip(), now=now)


def parse_max_age(value: str) -> int | None:
    """Return the first `s-maxage` or `max-age` of a Cache-Control header; None without one."""
    found = _MAX_AGE.search(value)
    return _capped(found[1]) if found else None


def _capped(digits: str) -> int:
    # `int` refuses more than 4,300 digits.
    short = digits.lstrip("0")[:9]
    return min(int(short or 0), MAX_WAIT_SECONDS)


def _seconds_until(date: str, *, now: datetime) -> int | None:
    if len(date) > _LONGEST_DATE:
        return None
    moment = parse_rfc822_date(date)
    if moment is None:
        return None
    return min(max(int((moment - now).total_seconds()), 0), MAX_WAIT_SECONDS)


def validator(headers: Mapping[str, str], name: str) -> str:
    """Return the header (lower-case name) of a response if it can be sent back, else ''."""
    value = headers.get(name, "")
    return value if _is_sendable(value) else ""


def conditional_headers(*, etag: str, last_modified: str) -> dict[str, str]:
    """Return the headers that ask for the resource only if it changed."""
    headers = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    return {name: value for name, value in headers.items() if value and _is_sendable(value)}


def _is_sendable(value: str) -> bool:
    has_breaks = "\n" in value or "\r" in value
    return len(value) <= _LONGEST_VALIDATOR and not has_breaks and value == scrub_text(value)


class FetchCookies:
    """The cookies that the redirects of one fetch have set, each sent to the sites it is for."""

    def __init__(self) -> None:
        self._jar: aiohttp.CookieJar | None = None

    def headers(self, target: URL) -> dict[str, str]:
        """Return the Cookie header for a request; none if no cookie is for it."""
        found = self._jar.filter_cookies(target) if self._jar else {}
        line = "; ".join(f"{name}={cookie.coded_value}" for name, cookie in found.items())
        return {"Cookie": line} if line else {}

    def add(self, lines: Sequence[str], source: URL) -> bool:
        """Take the Set-Cookie lines of a redirect; return whether one is new."""
        if not lines:
            return False
        # "unsafe" only means that hosts that are addresses may have cookies, too.
        jar = self._jar or aiohttp.CookieJar(unsafe=True)
        before = {(cookie.key, cookie.value) for cookie in jar}
        jar.update_cookies_from_headers(lines, source)
        self._jar = jar
        return not before.issuperset((cookie.key, cookie.value) for cookie in jar)


# One encoding is normal and a proxy may add a second; more is an attack.
_MAX_LAYERS = 3
# Values that servers send for unencoded bodies, often a charset in the wrong header.
_NONE = frozenset({"", "identity", "none", "utf-8", "utf8", "binary", "8bit", "7bit"})


class _BodyDecoder(Protocol):
    complete: bool

    def inflate(self, data: bytes, limit: int) -> bytes:
        """Return the decompressed data, at most `limit` bytes (the rest may be dropped)."""


class _GzipDecoder:
    """Gzip with any number of members; a body that is not gzip passes unchanged."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._plain: bool | None = None
        self.complete = True

    def inflate(self, data: bytes, limit: int) -> bytes:
        if self._plain is None and data:
            # Some servers declare gzip and send plain text; browsers show the text.
            self._plain = data[0] != 0x1F
        if self._plain:
            return data[:limit]
        out = bytearray()
        while data and len(out) < limit:
            if self._member.eof:
                if data[0] != 0x1F:  # padding after the last member
                    break
                self._member = zlib.decompressobj(wbits=31)
            out += self._member.decompress(data, limit - len(out))
            data = self._member.unused_data
        self.complete = self._member.eof
        return bytes(out)


class _DeflateDecoder:
    """Deflate with a zlib header, or without one as many servers send it."""

    def __init__(self) -> None:
        self._stream: zlib._Decompress | None = None
        self._start = b""
        self.complete = True

    def inflate(self, data: bytes, limit: int) -> bytes:
        if self._stream is None:
            data = self._start = self._start + data
            if len(data) < 2:  # the header has two bytes
                self.complete = not data
                return b""
            self._stream = zlib.decompressobj(wbits=15 if _has_zlib_header(data) else -15)
        out = self._stream.decompress(data, limit)
        self.complete = self._stream.eof
        return out


def _has_zlib_header(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0


class _BrotliDecoder:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self.complete = True

    def inflate(self, data: bytes, limit: int) -> bytes:
        out = bytearray(self._stream.process(data, output_buffer_limit=limit))
        while len(out) < limit and not self._stream.can_accept_more_data():
            out += self._stream.process(b"", output_buffer_limit=limit - len(out))
        self.complete = self._stream.is_finished()
        return bytes(out[:limit])


_DECODERS: dict[str, type[_GzipDecoder] | type[_DeflateDecoder] | type[_BrotliDecoder]] = {
    "gzip": _GzipDecoder,
    "x-gzip": _GzipDecoder,
    "deflate": _DeflateDecoder,
    "br": _BrotliDecoder,
}


class ResponseBody:
    """The body of a response: feed it the chunks, stop when it is full."""

    def __init__(self, encoding: str, *, cap_bytes: int) -> None:
        self._cap = cap_bytes
        self._bytes = bytearray()
        self._decoders = _decoders(encoding)

    @property
    def full(self) -> bool:
        """Return True if the body exceeds the cap; the rest need not be read."""
        return len(self._bytes) > self._cap

    def feed(self, data: bytes) -> None:
        """Add the next chunk as received; raise FetchError if its compression is damaged."""
        limit = self._cap + 1 - len(self._bytes)
        try:
            for decoder in self._decoders:
                data = decoder.inflate(data, self._cap + 1)
        except (zlib.error, brotli.error) as error:
            raise FetchError(
                f"the compressed body is damaged: {error}", reason="bad_encoding"
            ) from error
        self._bytes += data[:limit]

    def finish(self) -> bytes:
        """Return the body, cut at the cap; raise FetchError if its compression is incomplete."""
        if not self.full and not all(decoder.complete for decoder in self._decoders):
            raise FetchError("the compressed body is incomplete", reason="incomplete")
        return bytes(self._bytes[: self._cap])


def _decoders(encoding: str) -> list[_BodyDecoder]:
    names = [name.strip().lower() for name in encoding.split(",")]
    names = [name for name in names if name not in _NONE]
    unknown = [name for name in names if name not in _DECODERS]
    if unknown or len(names) > _MAX_LAYERS:
        raise FetchError(
            f"unsupported Content-Encoding {encoding!r}: expected gzip, deflate or br",
            reason="bad_encoding",
        )
    return [_DECODERS[name]() for name in reversed(names)]
