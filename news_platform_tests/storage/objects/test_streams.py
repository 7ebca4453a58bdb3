"""A byte stream reads like a file, on every backend."""

import gzip

import pytest

from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore

BODY = bytes(range(251)) * 10_007  # 2.5 MB, several chunks


def test_pieces_of_any_size_add_up_to_the_object(any_store: ObjectStore) -> None:
    any_store.put("a", BODY)
    with any_store.stream("a") as stream:
        pieces: list[bytes] = []
        sizes = [0, 1, 7, 1_048_576, 1_048_577]
        while piece := stream.read(sizes[len(pieces) % len(sizes)] or 3):
            pieces.append(piece)
            assert stream.tell() == sum(map(len, pieces))
    assert b"".join(pieces) == BODY


def test_a_stream_tells_size_and_tag_and_ends(any_store: ObjectStore) -> None:
    info = any_store.put("a", BODY)
    with any_store.stream("a") as stream:
        assert (stream.size_bytes, stream.etag, stream.tell()) == (len(BODY), info.etag, 0)
        assert stream.read(0) == b""
        assert stream.read() == BODY
        assert stream.read(10) == b""
    with pytest.raises(StorageError):
        any_store.stream("a", start=len(BODY) + 1)


@pytest.mark.parametrize("start", [1000, len(BODY)])
def test_a_stream_may_start_anywhere(any_store: ObjectStore, start: int) -> None:
    any_store.put("a", BODY)
    with any_store.stream("a", start=start, expected_size=len(BODY)) as stream:
        assert stream.tell() == start
        assert stream.read() == BODY[start:]
        assert stream.tell() == len(BODY)


def test_an_object_longer_than_expected_is_an_error(any_store: ObjectStore) -> None:
    any_store.put("a", b"12345")
    with pytest.raises(StorageError, match="it has 5 bytes, expected 4"):
        any_store.stream("a", expected_size=4)


def test_an_object_shorter_than_expected_is_an_error(any_store: ObjectStore) -> None:
    any_store.put("a", b"12345")
    with (
        any_store.stream("a", expected_size=6) as stream,
        pytest.raises(StorageError, match="it ended after 5 of 6 bytes"),
    ):
        stream.read()


def test_a_decompressor_reads_it_like_a_file(any_store: ObjectStore) -> None:
    any_store.put("a.gz", gzip.compress(BODY))
    with any_store.stream("a.gz") as stream, gzip.GzipFile(fileobj=stream) as inflated:  # type: ignore[call-overload]  # read is all it needs
        assert inflated.read() == BODY
