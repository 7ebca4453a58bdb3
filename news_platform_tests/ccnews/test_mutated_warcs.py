"""Mutations of real WARC records hurt no other record of their WARC."""

import gzip
import logging
import os
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from news_platform.ccnews.pool import CollectOptions
from news_platform.ccnews.scan import scan_news
from news_platform.storage.objects.store import open_store
from news_platform_tests.ccnews.archive import page
from news_platform_tests.ccnews.crawl import (
    DAY,
    collect_all,
    mixed_pages,
    warc_path,
    write_listings,
)
from news_platform_tests.isolation.mutations import (
    MemoryGrowth,
    check_log,
    mutated,
    mutated_one,
)

PATH = warc_path(DAY)
GOOD = [record.dumped() for record in mixed_pages(6)]
_READ_BYTES = 4_000_000


def real_records() -> list[bytes]:
    """Return the first records of a real WARC, none where there is no data."""
    file = Path(os.environ.get("NEWS_PLATFORM_BENCH_DATA", "/nonexistent")) / "warc/bench.warc.gz"
    if not file.is_file():
        return []
    with file.open("rb") as stream:
        rest = stream.read(_READ_BYTES)
    found = []
    while rest:
        inflate = zlib.decompressobj(wbits=31)
        record = inflate.decompress(rest)
        if not inflate.eof:  # cut by the limit
            break
        found.append(record)
        rest = inflate.unused_data
    return [record for record in found if b"WARC-Type: response" in record[:2000]]


def warcs(count: int, seed: int) -> Iterator[list[bytes]]:
    """Yield groups of mutated records as gzip members; one in ten is damaged when compressed."""
    dice = random.Random(seed)
    sources = [page(9).dumped(), *real_records()]
    for start in range(0, count, 250):
        members = []
        for _ in range(start, min(start + 250, count)):
            if dice.random() < 0.1:
                members.append(mutated(gzip.compress(dice.choice(sources), 1), dice))
            else:
                members.append(gzip.compress(mutated_one(sources, dice), 1))
        yield members


def collect_group(folder: Path, bad: list[bytes]) -> list[dict[str, Any]]:
    """Collect a WARC with good records among bad ones; return the rows of the good ones."""
    place = Path(mkdtemp(dir=folder))
    every = len(bad) // len(GOOD) + 1
    data = b""
    for number, record in enumerate(GOOD):
        # A good one is last: a damaged end of the file would be a truncated download.
        data += b"".join(bad[number * every : (number + 1) * every]) + gzip.compress(record)
    file = place / "crawl" / PATH
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    write_listings(place / "crawl", [PATH])
    root = open_store(str(place / "root"))
    options = CollectOptions(workers=1)
    source = open_store(str(place / "crawl"))
    report = collect_all([PATH], source=source, root=root, options=options)
    assert not report.failed, report
    rows = scan_news(root).drop("warc_record_offset").sort("uri").collect().to_dicts()
    return [row for row in rows if ".example.com/a/" in row["uri"] and "news9." not in row["uri"]]


def collect_mutations(
    folder: Path, caplog: pytest.LogCaptureFixture, *, count: int, seed: int
) -> None:
    memory, undisturbed = MemoryGrowth(), collect_group(folder, [])
    assert len(undisturbed) == len(GOOD)
    for bad in warcs(count, seed):
        assert collect_group(folder, bad) == undisturbed
        check_log(caplog)
        memory.sample()
    memory.check()


def test_a_few_mutated_records_hurt_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.WARNING)
    collect_mutations(tmp_path, caplog, count=40, seed=9)
    assert "Traceback" not in capfd.readouterr().err  # the workers write to our standard error


@pytest.mark.soak
def test_three_thousand_mutated_records_hurt_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    collect_mutations(tmp_path, caplog, count=3_000, seed=10)
    assert "Traceback" not in capfd.readouterr().err
