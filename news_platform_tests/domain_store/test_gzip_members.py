"""Lines to gzip members and back."""

import gzip
import zlib
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from news_platform.domain_store.data_files import (
    MEMBER_BYTES,
    MemberWriter,
    iter_inflated,
    iter_lines,
)
from news_platform.errors import StorageError


def _written(*groups: tuple[str, list[bytes]]) -> tuple[bytes, MemberWriter]:
    sink = BytesIO()
    writer = MemberWriter(sink)
    for domain, lines in groups:
        writer.add(domain, lines)
    writer.end_domain()
    return sink.getvalue(), writer


def _members(body: bytes) -> list[bytes]:
    """Return what each gzip member holds."""
    held: list[bytes] = []
    while body:
        inflate = zlib.decompressobj(31)
        held.append(inflate.decompress(body))
        body = inflate.unused_data
    return held


def test_each_run_is_found_by_its_offset_and_length() -> None:
    body, writer = _written(("a.org", [b"1", b"2"]), ("b.org", [b"3"]))
    texts = [gzip.decompress(body[r.offset : r.offset + r.length]) for r in writer.ranges]
    assert texts == [b"1\n2\n", b"3\n"]
    assert [(r.domain, r.records) for r in writer.ranges] == [("a.org", 2), ("b.org", 1)]
    assert writer.size_bytes == len(body)
    assert writer.records == 3


def test_a_member_holds_at_most_a_megabyte() -> None:
    lines = [bytes([65 + n % 20]) * 300_000 for n in range(10)]
    body, writer = _written(("a.org", lines))
    members = _members(body)
    assert max(map(len, members)) <= MEMBER_BYTES
    assert len(members) == 4
    assert all(member.endswith(b"\n") for member in members)
    assert len(writer.ranges) == 1


def test_a_record_larger_than_a_member_is_cut_and_comes_back_whole() -> None:
    huge = b"x" * (3 * MEMBER_BYTES + 17)
    body, writer = _written(("a.org", [b"before", huge, b"after"]))
    assert max(map(len, _members(body))) <= MEMBER_BYTES
    assert list(iter_lines(iter_inflated([body]))) == [b"before", huge, b"after"]
    assert writer.records == 3


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=200).map(lambda b: b.replace(b"\n", b" ")), max_size=40),
    st.integers(1, 50),
)
def test_lines_come_back_however_the_bytes_are_cut(lines: list[bytes], size: int) -> None:
    body, _ = _written(("a.org", lines))
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert list(iter_lines(iter_inflated(pieces))) == lines


@pytest.mark.parametrize("kept", [5, -1])
def test_a_member_that_ends_early_is_an_error(kept: int) -> None:
    body, _ = _written(("a.org", [b"some text"] * 10))
    with pytest.raises(StorageError, match="inflate"):
        list(iter_inflated([body[:kept]]))


def test_a_flipped_bit_is_an_error() -> None:
    body = bytearray(_written(("a.org", [b"some text %d" % n for n in range(50)]))[0])
    body[len(body) // 2] ^= 0x10
    with pytest.raises(StorageError, match=r"inflate|no line end"):
        list(iter_lines(iter_inflated([bytes(body)])))


def test_lines_without_an_end_are_an_error() -> None:
    with pytest.raises(StorageError, match="no line end"):
        list(iter_lines([b"one\ntw", b"o"]))
