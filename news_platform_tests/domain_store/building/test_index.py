"""The index of a bucket."""

import json
from datetime import date

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from news_platform.datasets.domain_store import ENTRIES
from news_platform.domain_store.building.merge import (
    BLOCK_DOMAINS,
    IndexFile,
    build_index,
    byte_ranges,
    index_totals,
)
from news_platform.domain_store.manifest import BatchEntry, DataFile, Segment

DAY = date(2025, 11, 1)
ROW = {"languages": ["en"], "first_seen": DAY, "last_seen": DAY}


def _entries(*rows: tuple[str, str, int, int, int, int]) -> pl.DataFrame:
    names = ("domain", "batch", "file", "offset", "length", "records")
    return pl.DataFrame(
        [{**dict(zip(names, row, strict=True)), **ROW} for row in rows], schema=ENTRIES.schema
    )


def _segment(*batches: str, dropped: tuple[str, ...] = (), files: int = 1) -> Segment:
    paths = tuple(DataFile(f"domain_store/data/7/{n}/part.gz", 100) for n in range(files))
    held = {batch: BatchEntry("x", 1000 + n) for n, batch in enumerate(batches)}
    return Segment(f"segment of {batches[0]}", 7, paths, "list", held, dropped)


def _index(*parts: tuple[Segment, pl.DataFrame]) -> IndexFile:
    segments = [segment for segment, _ in parts]
    ranges = [byte_ranges(segment, entries) for segment, entries in parts]
    return build_index(segments, ranges, bucket=7, uri=lambda path: f"s3://bucket/{path}")


def _lines(index: IndexFile) -> list[dict[str, object]]:
    return [json.loads(line) for line in index.body.splitlines()]


def test_a_line_has_the_form_of_the_source_design() -> None:
    entries = _entries(("a.org", "d1", 0, 5, 10, 3))
    assert _lines(_index((_segment("d1"), entries))) == [
        {
            "domain": "a.org",
            "domain_hash_id": "7",
            "count": 3,
            "files": [
                {
                    "filepath": "s3://bucket/domain_store/data/7/0/part.gz",
                    "offset": 5,
                    "length": 10,
                    "record_count": 3,
                    "timestamp": 1000,
                }
            ],
        }
    ]


def test_neighbouring_batches_of_a_domain_become_one_range_with_the_latest_time() -> None:
    entries = _entries(("a.org", "d1", 0, 0, 10, 3), ("a.org", "d2", 0, 10, 20, 4))
    (line,) = _lines(_index((_segment("d1", "d2"), entries)))
    assert line["count"] == 7
    assert line["files"] == [
        {
            "filepath": "s3://bucket/domain_store/data/7/0/part.gz",
            "offset": 0,
            "length": 30,
            "record_count": 7,
            "timestamp": 1001,
        }
    ]


def test_a_dropped_batch_leaves_a_hole() -> None:
    entries = _entries(
        ("a.org", "d1", 0, 0, 10, 1), ("a.org", "d2", 0, 10, 10, 1), ("a.org", "d3", 0, 20, 10, 1)
    )
    index = _index((_segment("d1", "d2", "d3", dropped=("d2",)), entries))
    (line,) = _lines(index)
    files = line["files"]
    assert isinstance(files, list)
    assert [(f["offset"], f["length"]) for f in files] == [(0, 10), (20, 10)]
    assert index_totals(index.ranges) == {"domains": 1, "records": 2, "bytes": 20, "fragments": 2}


@settings(deadline=None)
@given(st.sets(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=200))
def test_every_domain_is_found_through_the_sparse_index(domains: set[str]) -> None:
    rows = [(d, "d1", 0, n, 1, 1) for n, d in enumerate(sorted(domains))]
    index = _index((_segment("d1"), _entries(*rows)))
    assert [line["domain"] for line in _lines(index)] == sorted(domains)
    starts = [offset for _, offset in index.sparse] + [len(index.body)]
    for (first, start), end in zip(index.sparse, starts[1:], strict=True):
        block = [json.loads(line)["domain"] for line in index.body[start:end].splitlines()]
        assert block[0] == first
        assert len(block) <= BLOCK_DOMAINS
        for domain in block:
            needle = b'{"domain":%b,' % json.dumps(domain, ensure_ascii=False).encode()
            assert needle in index.body[start:end]
