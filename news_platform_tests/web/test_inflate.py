"""Bodies that arrive in pieces of any size."""

import gzip
import zlib

import brotli  # type: ignore[import-untyped]  # ships no types
import pytest

from news_platform.errors import FetchError
from news_platform.web.responses import ResponseBody

TEXT = b"hello world " * 50
ENCODED = {
    "gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "Deflate": zlib.compress(TEXT, wbits=-15),
    "br": brotli.compress(TEXT),
    "deflate, gzip": gzip.compress(zlib.compress(TEXT)),
}


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("encoding", ENCODED)
def test_a_body_is_the_same_in_pieces_of_any_size(encoding: str, size: int) -> None:
    body, sent = ResponseBody(encoding, cap_bytes=10_000), ENCODED[encoding]
    for start in range(0, len(sent), size):
        body.feed(sent[start : start + size])
    assert body.finish() == TEXT


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_body_that_ends_after_its_first_byte_is_incomplete(encoding: str) -> None:
    body = ResponseBody(encoding, cap_bytes=10_000)
    body.feed(ENCODED[encoding][:1])
    with pytest.raises(FetchError) as caught:
        body.finish()
    assert caught.value.reason == "incomplete"


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_body_that_never_begins_is_empty(encoding: str) -> None:
    assert ResponseBody(encoding, cap_bytes=10).finish() == b""
