"""The validators of a response (ETag, Last-Modified) in, the headers of the next request out.

Servers send what no request can carry back: control characters, bytes that are not UTF-8 (they
arrive as lone surrogates), 50 KB. Such a validator is not kept, and never sent if an old ledger
holds one; the resource is then fetched without a condition.
"""

from collections.abc import Mapping

from news_platform.text.normalize import scrub_text

# Real validators have up to 200 characters; servers refuse requests with a header of 8 KB.
_MAX_LENGTH = 1_000


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
    return len(value) <= _MAX_LENGTH and not has_breaks and value == scrub_text(value)
