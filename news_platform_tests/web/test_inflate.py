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


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_body_is_the_same_in_pieces_of_any_size(encoding: str) -> None:
    sent = ENCODED[encoding]
    for size in (1, 3, 1000):
        body = ResponseBody(encoding, cap_bytes=10_000)
        for start in range(0, len(sent), size):
            body.feed(sent[start : start + size])
        assert body.finish() == TEXT
    assert ResponseBody(encoding, cap_bytes=10).finish() == b""


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_body_that_ends_after_its_first_byte_is_incomplete(encoding: str) -> None:
    body = ResponseBody(encoding, cap_bytes=10_000)
    body.feed(ENCODED[encoding][:1])
    with pytest.raises(FetchError) as caught:
        body.finish()
    assert caught.value.reason == "incomplete"
