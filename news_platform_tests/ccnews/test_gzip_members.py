"""Gzip members, sound, split, damaged and cut off."""

import gzip
import random

import pytest

from news_platform.ccnews.gzip_members import MemberGroup, PushbackReader, iter_member_groups
from news_platform_tests.ccnews.archive import gzipped, page, stream


def _frames(data: bytes) -> list[tuple[bytes, bool, bool, int, int]]:
    found = []
    for frame in iter_member_groups(PushbackReader(stream(data))):
        parts = []
        while part := frame.read(7000):
            parts.append(part)
        frame.drain()
        found.append((b"".join(parts), frame.is_damaged, frame.is_cut, frame.offset, frame.length))
    return found


def test_each_member_is_a_frame_with_its_place() -> None:
    records = [page(number) for number in range(3)]
    data = gzipped(records)
    frames = _frames(data)
    assert [frame[0] for frame in frames] == [record.dumped() for record in records]
    for body, _, _, offset, length in frames:
        assert gzip.decompress(data[offset : offset + length]) == body
    assert not any(damaged or cut for _, damaged, cut, _, _ in frames)


def test_a_record_flushed_in_several_members_is_one_frame() -> None:
    record = page(1).dumped()
    split = [record[:100], record[100:900], b"", record[900:]]
    data = b"".join(gzip.compress(part) for part in split) + gzipped([page(2)])
    frames = _frames(data)
    assert [frame[0] for frame in frames] == [record, page(2).dumped()]
    assert frames[0][4] == frames[1][3]


def test_a_member_larger_than_every_buffer_is_read_in_pieces() -> None:
    noise = random.Random(7).randbytes(3_000_000)
    (frame,) = _frames(gzip.compress(b"WARC/1.0\r\n" + noise))
    assert frame[0] == b"WARC/1.0\r\n" + noise


@pytest.mark.parametrize("position", [0, 1, 3, 12, 40, -1, -5, -8])
def test_damage_anywhere_in_a_member_costs_that_member_alone(position: int) -> None:
    first, second, third = (gzipped([page(number)]) for number in range(3))
    broken = bytearray(second)
    broken[position] ^= 0x55
    frames = _frames(first + bytes(broken) + third)
    sound = [body for body, damaged, _, _, _ in frames if not damaged]
    assert sound == [page(0).dumped(), page(2).dumped()]
    assert not any(cut for _, _, cut, _, _ in frames)


def test_damage_that_reaches_the_end_is_a_cut() -> None:
    broken = bytearray(gzipped([page(1)]))
    broken[-5] ^= 0x55
    frames = _frames(gzipped([page(0)]) + bytes(broken))
    assert [cut for _, _, cut, _, _ in frames] == [False, True]


def test_a_false_member_start_inside_the_damage_is_passed_over() -> None:
    broken = bytearray(gzipped([page(1)]))
    broken[-5] ^= 0x55
    trap = b"\x1f\x8b\x08" + b"no member" * 3 + gzip.compress(b"no record")
    frames = _frames(bytes(broken) + trap + gzipped([page(2)]))
    assert [body for body, damaged, _, _, _ in frames if not damaged] == [page(2).dumped()]


def test_every_random_damage_is_found_or_harmless() -> None:
    chance = random.Random(5)
    records = [page(number) for number in range(4)]
    data = gzipped(records)
    for _ in range(150):
        broken = bytearray(data)
        broken[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        bodies = {body for body, damaged, cut, _, _ in _frames(bytes(broken)) if not damaged}
        assert len(bodies & {record.dumped() for record in records}) >= 3


def test_peek_takes_nothing() -> None:
    source = PushbackReader(stream(b"abcdef"))
    assert source.peek(4) == b"abcd"
    assert source.position == 0
    assert bytes(source.take()) == b"abcdef"
    assert source.peek(1) == b""


@pytest.mark.parametrize("size", [0, 1, 40_000, 300_000, 700_000])
def test_what_is_given_back_comes_again_whatever_was_taken_since(size: int) -> None:
    data = random.Random(size).randbytes(1_000_000)
    source = PushbackReader(stream(data))
    taken = b""
    while len(taken) < size:
        taken += source.take()
    source.give_back(taken)
    assert source.position == 0
    assert b"".join(bytes(part) for part in iter(source.take, b"")) == data
    assert source.position == len(data)


def test_a_frame_that_the_parser_declines_is_read_from_its_start() -> None:
    data = gzipped([page(1), page(2)])
    found = []
    for frame in iter_member_groups(PushbackReader(stream(data))):
        assert frame.parsed(lambda _: None) is None
        found.append(frame.read(1 << 20) + frame.read(1 << 20))
    assert found == [page(1).dumped(), page(2).dumped()]


def test_a_frame_of_one_sound_member_is_parsed_whole() -> None:
    data = gzipped([page(1), page(2)])
    frames = list(map(_parsed_whole, iter_member_groups(PushbackReader(stream(data)))))
    assert frames == [page(1).dumped(), page(2).dumped()]


def _parsed_whole(frame: MemberGroup) -> bytes | None:
    found = frame.parsed(bytes)
    assert frame.read(100) == b""
    return found


def test_split_damaged_and_giant_frames_are_not_parsed_whole() -> None:
    record = page(1).dumped()
    split = gzip.compress(record[:100]) + gzip.compress(record[100:])
    damaged = bytearray(gzipped([page(2)]))
    damaged[-5] ^= 1
    giant = gzip.compress(b"WARC/1.0\r\n" + bytes(5 << 20))
    data = split + bytes(damaged) + giant
    found = []
    for frame in iter_member_groups(PushbackReader(stream(data))):
        assert frame.parsed(bytes) is None
        size = 0
        while part := frame.read(9000):
            size += len(part)
        found.append((size, frame.is_damaged))
    assert [is_damaged for _, is_damaged in found] == [False, True, False]
    assert (found[0][0], found[2][0]) == (len(record), (5 << 20) + 10)
