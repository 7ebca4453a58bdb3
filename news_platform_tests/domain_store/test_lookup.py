"""Reading by domain: what is found, how much is asked of the store, and how damage shows."""

import json
import shutil
import tracemalloc
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from news_platform.domain_store import fragments
from news_platform.domain_store.layout import BuildOptions
from news_platform.domain_store.lookup import DomainStore, read_rows_from_offset
from news_platform.domain_store.staging.stage import stage_batch
from news_platform.errors import InputError, StorageError
from news_platform.storage.objects.store import (
    NotFound,
    ObjectStore,
    open_store,
)
from news_platform_tests.domain_store.pages import NOW, SMALL, build, news_rows, stage
from news_platform_tests.storage.counted import Counted

DAYS = {f"2025-11-{day:02d}": ["org.a", "org.b"] for day in range(1, 5)}


@pytest.fixture(scope="module")
def four_days(tmp_path_factory: pytest.TempPathFactory) -> ObjectStore:
    """Return a store of four days, each built by itself, that tests only read."""
    store = open_store(str(tmp_path_factory.mktemp("four_days")))
    for day, hosts in DAYS.items():
        stage(store, {day: hosts})
        build(store)
    return store


def test_records_come_oldest_first(four_days: ObjectStore) -> None:
    reader = DomainStore(four_days)
    assert [row["uri"] for row in reader.records("a.org")] == [f"https://org.a/{d}/0" for d in DAYS]
    assert reader.count("a.org") == 4


def test_a_warm_lookup_is_one_request_a_fragment_and_a_cold_one_three_more(
    four_days: ObjectStore,
) -> None:
    counted = Counted(four_days)
    reader = DomainStore(counted)
    entry = DomainStore(four_days).entry("a.org")
    assert entry is not None
    assert len(list(reader.records("a.org"))) == 4
    assert len(counted.gets) <= len(entry.fragments) + 3
    counted.gets.clear()
    assert len(list(reader.records("a.org"))) == 4
    assert len(counted.gets) == len(entry.fragments)
    counted.gets.clear()
    assert reader.count("a.org") == 4
    assert counted.gets == []


@pytest.mark.parametrize("domain", ["nowhere.org", "", "www.a.org", "a\udcff.org", "a.or"])
def test_an_unknown_domain_is_empty(four_days: ObjectStore, domain: str) -> None:
    reader = DomainStore(four_days)
    assert list(reader.records(domain)) == []
    assert reader.count(domain) == 0
    assert reader.entry(domain) is None


def test_a_domain_in_its_own_letters_is_found_by_them(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": ["de.xn--bcher-kva"]})
    build(root)
    assert DomainStore(root).count("Bücher.de") == 1
    assert [row["domain"] for row in DomainStore(root).records("bücher.de")] == ["xn--bcher-kva.de"]


@pytest.mark.parametrize(
    "since",
    [
        date(2025, 11, 3),
        datetime(2025, 11, 3, 23),  # noqa: DTZ001 - what a notebook gives
        datetime(2025, 11, 4, 1, tzinfo=timezone(timedelta(hours=3))),
        "2025-11-03",
    ],
)
def test_since_is_a_day_or_an_instant_of_it(four_days: ObjectStore, since: date | str) -> None:
    assert len(list(DomainStore(four_days).records("a.org", since=since))) == 2


def test_a_bad_limit_or_day_is_told_at_once(root: ObjectStore) -> None:
    reader = DomainStore(root)
    with pytest.raises(InputError, match="invalid limit -1"):
        reader.records("a.org", limit=-1)
    with pytest.raises(InputError, match="invalid since 'yesterday'"):
        reader.records("a.org", since="yesterday")


def test_since_leaves_files_of_older_days_unread(four_days: ObjectStore) -> None:
    counted = Counted(four_days)
    reader = DomainStore(counted)
    reader.count("a.org")
    counted.gets.clear()
    assert len(list(reader.records("a.org", since="2025-11-04"))) == 1
    assert len(counted.gets) == 1


def test_rows_are_read_from_an_offset_as_the_index_gives_it(four_days: ObjectStore) -> None:
    for view in four_days.list("domain_store/metadata"):
        for line in four_days.read(view.path).splitlines():
            document = json.loads(line)
            for file in document["files"]:
                rows = list(
                    read_rows_from_offset(
                        file["filepath"], offset=file["offset"], limit=file["record_count"]
                    )
                )
                assert len(rows) == file["record_count"]
                assert {row["domain"] for row in rows} == {document["domain"]}


def test_a_place_that_no_file_has_is_an_error_not_nothing(four_days: ObjectStore) -> None:
    entry = DomainStore(four_days).entry("a.org")
    assert entry is not None
    path = four_days.uri(entry.fragments[0].path)
    with pytest.raises(InputError, match="invalid offset -5"):
        read_rows_from_offset(path, -5, 1)
    with pytest.raises(InputError, match="invalid limit -1"):
        read_rows_from_offset(path, 0, -1)
    with pytest.raises(StorageError, match="is beyond the end"):
        list(read_rows_from_offset(path, 10**9, 1))
    with pytest.raises(StorageError, match="from byte 3"):
        list(read_rows_from_offset(path, 3, 1))
    with pytest.raises(NotFound, match=r"cannot read '/+no-such-file"):
        list(read_rows_from_offset("/no-such-file.gz", 0, 1))


def test_a_store_that_moved_is_read_at_its_new_place(
    four_days: ObjectStore, tmp_path: Path
) -> None:
    assert four_days.local_folder is not None
    moved = shutil.copytree(four_days.local_folder, tmp_path / "moved")
    assert len(list(DomainStore(moved).records("a.org"))) == 4


def test_a_reader_older_than_the_grace_period_finds_the_new_generation(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": ["org.a"]})
    build(root)
    reader = DomainStore(root)
    assert reader.count("a.org") == 1
    stage(root, {"2025-11-01": ["org.a", "org.a"]})
    build(root)
    stage(root, {"2025-11-02": ["org.a"]})
    build(root, now=NOW + 2 * SMALL.grace)
    assert len(list(reader.records("a.org"))) == 3


def test_an_index_that_is_not_its_manifests_fails_the_lookup_and_is_named(
    root: ObjectStore,
) -> None:
    stage(root, {"2025-11-01": ["org.a"]})
    build(root)
    for info in root.list("domain_store/index"):
        root.put(info.path, b"x" * info.size_bytes)
    with pytest.raises(StorageError, match=r"index/\d/\w+\.jsonl' does not match its manifest"):
        DomainStore(root).count("a.org")


@pytest.mark.parametrize("damage", ["a wrong byte", "a cut"])
def test_a_damaged_file_fails_the_lookup_and_is_named(root: ObjectStore, damage: str) -> None:
    stage(root, {"2025-11-01": ["org.a"] * 50})
    build(root)
    entry = DomainStore(root).entry("a.org")
    assert entry is not None
    path = entry.fragments[0].path
    body = bytearray(root.read(path))
    body[len(body) // 2] ^= 0xFF
    root.put(path, bytes(body) if damage == "a wrong byte" else root.read(path)[:-20])
    with pytest.raises(StorageError, match=path):
        list(DomainStore(root).records("a.org"))


def test_a_file_deleted_under_an_open_iterator_is_an_error_not_an_end(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": ["org.a"] * 3})
    build(root)
    entry = DomainStore(root).entry("a.org")
    assert entry is not None
    lines = fragments.iter_lines_of_fragments(root, entry.fragments * (fragments.READ_AHEAD + 2))
    next(lines)
    root.delete([entry.fragments[0].path])
    with pytest.raises(NotFound, match=entry.fragments[0].path):
        list(lines)


HOSTILE = {
    "253 characters": ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61]),
    "punycode": "xn--p1ai.xn--e1afmkfd",
    "unicode": "рф.пример",
    "empty": "",
    "address": "1.0.0.127",
    "quotes": 'org.a"b\\c',
    "control characters": "org.a\x00\x1f\x7f\u2028",
    "dots": "...",
    "slash": "org.a/../../b",
}


def test_hostile_domains_are_stored_and_found(root: ObjectStore) -> None:
    hosts = list(HOSTILE.values())
    stage(root, {"2025-11-01": [*hosts, "org.other", *hosts]})
    build(root)
    reader = DomainStore(root)
    for host in hosts:
        domain = ".".join(reversed(host.split(".")))
        assert reader.count(domain) == 2
        assert [row["host"] for row in reader.records(domain)] == [host, host]
        assert domain in set(reader.domains())


def test_a_record_of_10_megabytes_comes_back_whole(root: ObjectStore) -> None:
    tree = "<p>" + "wörd " * 1_800_000
    rows = news_rows(["org.a", "org.a"], trees=[tree, "small"])
    options = BuildOptions(buckets=1, memory_bytes=64 << 20)
    stage_batch([rows], store=root, batch="2025-11-01", inputs="x", options=options)
    build(root, options=options)
    found = [row["tree"] for row in DomainStore(root).records("a.org")]
    assert found == [tree, "small"]


def test_a_large_domain_is_read_in_bounded_memory(root: ObjectStore) -> None:
    options = BuildOptions(buckets=1, memory_bytes=64 << 20)
    frames = (
        news_rows(["org.a"] * 10, trees=[f"{n * 10 + m} " * 150_000 for m in range(10)])
        for n in range(10)
    )
    stage_batch(frames, store=root, batch="2025-11-01", inputs="x", options=options)
    build(root, options=options)
    reader = DomainStore(root)
    tracemalloc.start()
    try:
        sizes = [len(line) for line in reader.lines("a.org")]
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(sizes) == 100
    assert sum(sizes) > 40_000_000
    assert peak_bytes < 20_000_000
