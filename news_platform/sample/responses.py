"""The responses of sample sites, and gzip with the same bytes at any time."""

import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"

# Magic, deflate, no name, no time, no hints, unknown system. gzip.compress writes a last byte that
# changed between Python versions.
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


@dataclass(frozen=True, slots=True)
class SiteResponse:
    """The response of a site at one URL; `gzipped` bodies are compressed when they are sent."""

    body: bytes = b""
    content_type: str = HTML
    status: int = 200
    location: str | None = None
    modified_at: datetime | None = None
    etag: bool = False
    gzipped: bool = False
    retry_after_seconds: int | None = None


def http_date(instant: datetime) -> str:
    """Return the instant as an HTTP date."""
    return format_datetime(instant.astimezone(UTC), usegmt=True)


def gzip_member(body: bytes) -> bytes:
    """Compress into one gzip member without name or time."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = packer.compress(body) + packer.flush()
    tail = zlib.crc32(body).to_bytes(4, "little") + len(body).to_bytes(4, "little")
    return _GZIP_HEADER + deflated + tail
