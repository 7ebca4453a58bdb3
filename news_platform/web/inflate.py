"""Decompress the chunks of a response body up to a cap."""

import zlib
from typing import Protocol

import brotli  # type: ignore[import-untyped]  # ships no types

from news_platform.errors import FetchError

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
