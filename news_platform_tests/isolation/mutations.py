"""Mutations of real inputs and of HTTP answers, and whether memory grows while they are read."""

import ctypes
import gc
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from news_platform_tests.web.site import Answer, closing

HEADERS = (
    b'ETag: "abc"',
    b"Last-Modified: Mon, 03 Nov 2025 12:00:00 GMT",
    b"Content-Type: text/html; charset=utf-8",
    b"Content-Type: application/rss+xml",
    b"Retry-After: 120",
    b"Cache-Control: max-age=60, public",
    b"Location: https://nobody.invalid/rss",
    b"Content-Encoding: gzip",
    b"Transfer-Encoding: chunked",
)
STATUSES = (b"200 OK",) * 8 + (b"301 x", b"304 x", b"404 x", b"503 x", b"999 x")
# What parsers stumble over; put at random places.
SPLINTERS = (
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"&#0;",
    b"&#xD800;",
    b"<![CDATA[",
    b"http://a[b]c/",
    b"9" * 5_000,
    "²".encode(),
    b"]]>",
    b"<a " * 50,
    b"\x1f\x8b\x08",
    b"\r\n\r\n",
)
MOST_GROWTH = 1.1
_MAX_SAMPLE_BYTES = 200_000


def real_samples(folder: str, pattern: str = "*", *, most: int = 300) -> list[bytes]:
    """Return real inputs of NEWS_PLATFORM_BENCH_DATA, none where it is not set."""
    root = Path(os.environ.get("NEWS_PLATFORM_BENCH_DATA", "/nonexistent")) / folder
    files = sorted(path for path in root.rglob(pattern) if path.is_file())
    return [path.read_bytes()[:_MAX_SAMPLE_BYTES] for path in files[:most]]


def mutated(source: bytes, dice: random.Random) -> bytes:
    """Return the bytes with a few flips, cuts, repetitions and splinters."""
    data = bytearray(source)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(4):
            case 0:
                data[at : at + 1] = dice.randbytes(1)
            case 1:
                del data[at : at + dice.randint(1, 200)]
            case 2:
                data[at:at] = data[at : at + dice.randint(1, 200)]
            case _:
                data[at:at] = dice.choice(SPLINTERS)
    return bytes(data)


def mutated_one(sources: Sequence[bytes], dice: random.Random) -> bytes:
    """Return a mutation of one of the sources."""
    return mutated(dice.choice(sources), dice)


def http_answer(content: bytes, dice: random.Random) -> Answer:
    """Return a whole HTTP answer; in one of two its head is mutated, too."""
    fields = dice.sample(HEADERS, dice.randint(0, 4))
    length = b"Content-Length: " + str(len(content)).encode()
    head = b"\r\n".join((b"HTTP/1.1 " + dice.choice(STATUSES), length, *fields))
    if dice.random() < 0.5:
        # The first line stays readable more often than not, as on real servers.
        start = head.index(b"\r\n") if dice.random() < 0.8 else 0
        head = head[:start] + mutated(head[start:], dice)
    return closing(head + b"\r\n\r\n" + content)


class MemoryGrowth:
    """Resident memory after each group of inputs, without what can be given back."""

    def __init__(self) -> None:
        self._sizes: list[int] = []

    def sample(self) -> None:
        """Measure the memory that is in use."""
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self._sizes.append(pages * os.sysconf("SC_PAGE_SIZE"))

    def check(self) -> None:
        """The first tenth fills caches and imports; from then on the memory stays."""
        if len(self._sizes) >= 10:
            assert self._sizes[-1] <= MOST_GROWTH * self._sizes[len(self._sizes) // 10], self._sizes


def check_log(caplog: pytest.LogCaptureFixture) -> None:
    """Find no traceback in the log, and forget it: kept records would count as our memory."""
    # Contexts of Dagster that earlier tests left hold connections of instances in memory, and their
    # collection in another thread is logged whenever it happens.
    found = [one for one in caplog.records if not one.name.startswith("sqlalchemy.pool")]
    assert [record.getMessage() for record in found if record.exc_info] == []
    assert not any("Traceback" in record.getMessage() for record in found)
    caplog.clear()
