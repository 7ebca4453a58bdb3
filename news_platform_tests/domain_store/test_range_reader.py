"""Reading forward through a file."""

import gzip
import random

import pytest

from news_platform.domain_store.fragments import MIN_BUFFER_BYTES, RangeReader
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_store.test_lookup import Counted


def _file(store: ObjectStore, sizes: list[int]) -> tuple[bytes, list[tuple[int, int]]]:
    """Put a file of gzip members that hold noise of these sizes; return it and its ranges."""
    noise = random.Random(1)
    members = [gzip.compress(noise.randbytes(size), mtime=0) for size in sizes]
    ranges, offset = [], 0
    for member in members:
        ranges.append((offset, len(member)))
        offset += len(member)
    body = b"".join(members)
    store.put("file", body)
    return body, ranges


def test_neighbouring_ranges_share_a_request(root: ObjectStore) -> None:
    body, ranges = _file(root, [100] * 50)
    counted = Counted(root)
    window = RangeReader(counted, "file", size_bytes=len(body))
    for offset, length in ranges:
        assert b"".join(window.pieces(offset, length)) == body[offset : offset + length]
    assert len(counted.gets) == 1


def test_a_range_larger_than_the_window_comes_in_pieces(root: ObjectStore) -> None:
    body, ranges = _file(root, [10, 3 * MIN_BUFFER_BYTES, 10])
    window = RangeReader(root, "file", size_bytes=len(body), buffer_bytes=1)
    for offset, length in ranges:
        pieces = list(window.pieces(offset, length))
        assert b"".join(pieces) == body[offset : offset + length]
        assert max(map(len, pieces)) <= MIN_BUFFER_BYTES


def test_a_range_that_begins_no_member_is_an_error(root: ObjectStore) -> None:
    body, _ = _file(root, [100, 100])
    with pytest.raises(StorageError, match="no gzip member at byte 5"):
        list(RangeReader(root, "file", size_bytes=len(body)).pieces(5, 10))


def test_a_file_shorter_than_promised_is_an_error(root: ObjectStore) -> None:
    body, _ = _file(root, [100, 100])
    with pytest.raises(StorageError, match="file"):
        list(RangeReader(root, "file", size_bytes=len(body) + 50).pieces(0, len(body) + 50))
