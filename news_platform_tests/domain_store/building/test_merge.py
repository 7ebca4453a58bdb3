"""Planning and copying: every byte arrives once, in order, where the plan says."""

from datetime import date
from io import BytesIO

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from news_platform.datasets.domain_store import ENTRIES, RECORDS
from news_platform.domain_store.building.merge import (
    MergeSource,
    copy_plan,
    merged_entries,
    read_entries,
    write_segment,
)
from news_platform.domain_store.data_files import (
    MemberWriter,
    iter_inflated,
    iter_lines,
    open_uploads,
)
from news_platform.domain_store.layout import BuildOptions
from news_platform.domain_store.manifest import BatchEntry, Current
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore

DAY = date(2025, 11, 1)
SCHEMA = {name: dtype for name, dtype in ENTRIES.schema.items() if name != "file"}
Batches = dict[str, dict[str, int]]


def _source(store: ObjectStore, number: int, batch: str, domains: dict[str, int]) -> MergeSource:
    """Put a file with so many records of each domain, and describe it."""
    sink = BytesIO()
    writer = MemberWriter(sink)
    for domain in sorted(domains):
        writer.add(domain, [f"{domain} {batch} {n}".encode() for n in range(domains[domain])])
    writer.end_domain()
    path = f"in/{number}.jsonl.gz"
    store.put(path, sink.getvalue())
    rows = [
        (r.domain, batch, r.offset, r.length, r.records, ["en"], DAY, DAY) for r in writer.ranges
    ]
    entries = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return MergeSource(path, writer.size_bytes, entries, pl.DataFrame(schema=RECORDS.schema))


def _merged(
    store: ObjectStore, batches: Batches, *, memory_bytes: int, file_bytes: int
) -> list[str]:
    """Merge the batches and return all lines that the new segment's entries lead to."""
    options = BuildOptions(memory_bytes=memory_bytes, file_bytes=file_bytes)
    sources = [
        _source(store, number, batch, domains)
        for number, (batch, domains) in enumerate(batches.items())
        if domains
    ]
    with open_uploads(store, 2) as uploads:
        held = {batch: BatchEntry("x", 5) for batch in batches}
        segment, ranges = write_segment(
            store,
            sources,
            uploads,
            base=Current(None, None),
            bucket=0,
            name="new",
            batches=held,
            options=options,
        )
    entries = read_entries(store, segment)
    assert ranges["records"].sum() == entries["records"].sum()
    assert set(ranges["timestamp"]) == {5}
    lines: list[str] = []
    for domain, batch, file, offset, length, records in entries.select(
        "domain", "batch", "file", "offset", "length", "records"
    ).iter_rows():
        body = store.read_range(segment.files[file].path, offset, length)
        found = [line.decode() for line in iter_lines(iter_inflated([body]))]
        assert found == [f"{domain} {batch} {n}" for n in range(records)]
        lines += found
    assert [store.head(f.path).size_bytes for f in segment.files] == [
        f.size_bytes for f in segment.files
    ]
    return lines


@pytest.mark.parametrize(
    ("memory_bytes", "file_bytes"), [(1, 150), (1 << 30, 1), (1 << 30, 1 << 30)]
)
def test_every_record_arrives_by_domain_then_batch(
    root: ObjectStore, memory_bytes: int, file_bytes: int
) -> None:
    batches = {
        "d1": {"a.org": 3, "c.org": 1},
        "d2": {"a.org": 1, "b.org": 40},
        "d3": {"c.org": 2, "d.org": 1},
    }
    lines = _merged(root, batches, memory_bytes=memory_bytes, file_bytes=file_bytes)
    expected = [
        f"{domain} {batch} {n}"
        for domain in ("a.org", "b.org", "c.org", "d.org")
        for batch, domains in batches.items()
        for n in range(domains.get(domain, 0))
    ]
    assert lines == expected


LENGTHS = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 50), min_size=1)


@settings(max_examples=40, deadline=None)
@given(st.lists(LENGTHS, min_size=1, max_size=5), st.integers(1, 200))
def test_a_plan_fills_files_without_gap_or_overlap(
    sources: list[dict[str, int]], file_bytes: int
) -> None:
    frames = []
    for number, lengths in enumerate(sources):
        offset = 0
        rows = []
        for domain in sorted(lengths):
            rows.append((domain, f"d{number}", offset, lengths[domain], 1, ["en"], DAY, DAY))
            offset += lengths[domain]
        frames.append(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    plan = copy_plan(frames, file_bytes=file_bytes)
    assert plan.height == sum(map(len, sources))
    ends: dict[int, int] = {}
    for file, offset, length in plan.select("file", "offset", "length").iter_rows():
        assert offset == ends.get(file, 0)
        ends[file] = offset + length
    assert list(ends) == list(range(len(ends)))
    for _, part in plan.group_by("domain"):
        is_large = part["length"].sum() > file_bytes
        assert part["file"].n_unique() == 1 or is_large
    assert plan["domain"].is_sorted()


def test_two_files_of_one_batch_become_one_entry() -> None:
    first = [("a", "d1", 0, 10, 2, ["de"], DAY, DAY)]
    second = [("a", "d1", 0, 20, 3, ["en"], DAY, date(2025, 11, 2))]
    frames = [pl.DataFrame(rows, schema=SCHEMA, orient="row") for rows in (first, second)]
    (entry,) = merged_entries(copy_plan(frames, file_bytes=1000)).to_dicts()
    assert (entry["offset"], entry["length"], entry["records"]) == (0, 30, 5)
    assert entry["languages"] == ["de", "en"]
    assert entry["last_seen"] == date(2025, 11, 2)


@pytest.mark.parametrize("is_cut", [True, False], ids=["cut off", "other bytes"])
def test_a_source_that_is_not_what_it_says_is_named(root: ObjectStore, is_cut: bool) -> None:
    source = _source(root, 0, "d1", {"a.org": 3})
    body = root.read(source.path)
    root.put(source.path, body[:-1] if is_cut else b"x" * len(body))
    reason = "" if is_cut else ": no gzip member at byte 0"
    with (
        pytest.raises(StorageError, match=rf"in/0\.jsonl\.gz.*{reason}"),
        open_uploads(root, 2) as uploads,
    ):
        write_segment(
            root,
            [source],
            uploads,
            base=Current(None, None),
            bucket=0,
            name="new",
            batches={},
            options=BuildOptions(),
        )
