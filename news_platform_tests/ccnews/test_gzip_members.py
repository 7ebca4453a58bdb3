"""Gzip members, sound, split, damaged and cut off."""

import gzip
import random

import pytest

from news_platform.ccnews.gzip_members import PushbackReader, iter_member_groups
from news_platform_tests.ccnews.archive import gzipped, page, stream


def _groups(data: bytes) -> list[tuple[bytes, bool, bool, int, int]]:
    found = []
    for group in iter_member_groups(PushbackReader(stream(data))):
        parts = []
        while part := group.read(7000):
            parts.append(part)
        group.drain()
        found.append((b"".join(parts), group.is_damaged, group.is_cut, group.offset, group.length))
    return found


def test_each_member_is_a_group_with_its_place() -> None:
    records = [page(number) for number in range(3)]
    data = gzipped(records)
    groups = _groups(data)
    assert [group[0] for group in groups] == [record.dumped() for record in records]
    for body, _, _, offset, length in groups:
        assert gzip.decompress(data[offset : offset + length]) == body
    assert not any(damaged or cut for _, damaged, cut, _, _ in groups)


def test_a_record_flushed_in_several_members_is_one_group() -> None:
    record = page(1).dumped()
    split = [record[:100], record[100:900], b"", record[900:]]
    data = b"".join(gzip.compress(part) for part in split) + gzipped([page(2)])
    groups = _groups(data)
    assert [group[0] for group in groups] == [record, page(2).dumped()]
    assert groups[0][4] == groups[1][3]


def test_a_member_larger_than_every_buffer_is_read_in_pieces() -> None:
    noise = random.Random(7).randbytes(3_000_000)
    (group,) = _groups(gzip.compress(b"WARC/1.0\r\n" + noise))
    assert group[0] == b"WARC/1.0\r\n" + noise


@pytest.mark.parametrize("position", [0, 12, 40, -5])
def test_damage_anywhere_in_a_member_costs_that_member_alone(position: int) -> None:
    first, second, third = (gzipped([page(number)]) for number in range(3))
    broken = bytearray(second)
    broken[position] ^= 0x55
    groups = _groups(first + bytes(broken) + third)
    sound = [body for body, damaged, _, _, _ in groups if not damaged]
    assert sound == [page(0).dumped(), page(2).dumped()]
    assert not any(cut for _, _, cut, _, _ in groups)


def test_damage_that_reaches_the_end_is_a_cut() -> None:
    broken = bytearray(gzipped([page(1)]))
    broken[-5] ^= 0x55
    groups = _groups(gzipped([page(0)]) + bytes(broken))
    assert [cut for _, _, cut, _, _ in groups] == [False, True]


def test_a_false_member_start_inside_the_damage_is_passed_over() -> None:
    broken = bytearray(gzipped([page(1)]))
    broken[-5] ^= 0x55
    trap = b"\x1f\x8b\x08" + b"no member" * 3 + gzip.compress(b"no record")
    groups = _groups(bytes(broken) + trap + gzipped([page(2)]))
    assert [body for body, damaged, _, _, _ in groups if not damaged] == [page(2).dumped()]


def test_every_random_damage_is_found_or_harmless() -> None:
    chance = random.Random(5)
    records = [page(number) for number in range(4)]
    data = gzipped(records)
    for _ in range(50):
        broken = bytearray(data)
        broken[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        bodies = {body for body, damaged, cut, _, _ in _groups(bytes(broken)) if not damaged}
        assert len(bodies & {record.dumped() for record in records}) >= 3


@pytest.mark.parametrize("size", [1, 700_000])
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
