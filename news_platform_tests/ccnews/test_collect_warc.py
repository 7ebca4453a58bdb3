"""Collecting one WARC: rows, marker, replacement, and nothing at all when the WARC is bad."""

import gzip
import hashlib
from datetime import date
from pathlib import Path

import pytest

from news_platform.ccnews.scan import scan_news
from news_platform.datasets.raw_news import (
    DROPPED_RESPONSES,
    side_path,
)
from news_platform.errors import InputError
from news_platform.storage.commit.collected import combine_month, find_table_units, read_collected
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import read_table
from news_platform_tests.ccnews.archive import Record, gzipped, http
from news_platform_tests.ccnews.crawl import (
    DAY,
    NOW,
    collect_here,
    mixed_pages,
    stored_paths,
    warc_name,
    warc_path,
    write_crawl,
)

PATH = warc_path(DAY)
NAME = warc_name(DAY)


@pytest.fixture
def crawl(tmp_path: Path) -> ObjectStore:
    others = [Record(b"x", "revisit"), Record(http("pdf", mime="application/pdf"))]
    return write_crawl(tmp_path / "crawl", {PATH: [*mixed_pages(6), *others]})


def test_a_warc_becomes_files_by_language_and_a_marker(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    marker = collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "s")
    raw = f"news/raw/year=2025/month=11/day=01/main_lang=%s/filename={NAME}/part-0.parquet"
    side = f"news/%s/year=2025/month=11/day=01/filename={NAME}/part-0.parquet"
    assert stored_paths(local_store) == {
        *(raw % language for language in ("fr", "en", "nl")),
        side % "captures",
        side % "page_metadata",
        side % "feed_candidates",
        side % "dropped",
        f"news/collected/2025/11/01/{NAME}@{marker.fingerprint}.json",
    }
    assert read_collected(local_store, [DAY]) == [marker]
    assert marker.rows == 6
    assert marker.languages == {"en": 2, "nl": 2, "fr": 2}
    assert marker.dropped == {"not_html": 1, "revisit_record": 1}
    assert marker.dropped_responses == 2
    dropped = read_table(local_store, side_path(DROPPED_RESPONSES, DAY, NAME), DROPPED_RESPONSES)
    assert sorted(dropped["reason"]) == ["not_html", "revisit_record"]
    assert dropped.filter(reason="not_html")["uri"].null_count() == 0
    assert marker.source_bytes == crawl.head(PATH).size_bytes
    assert marker.source_etag == hashlib.sha256(crawl.read(PATH)).hexdigest()
    assert (marker.attempt, marker.collected_at) == ("a-1", NOW.isoformat())
    assert marker.bytes == sum(
        info.size_bytes
        for info in local_store.list()
        if info.path.endswith(".parquet") and "/dropped/" not in info.path
    )
    parts = {path for path in stored_paths(local_store) if "part-" in path}
    assert set(marker.paths()) == parts - {side % "dropped"}


def test_a_second_attempt_replaces_and_leaves_no_stray(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "1")
    before = stored_paths(local_store)
    stray = f"news/raw/year=2025/month=11/day=01/main_lang=xx/filename={NAME}/part-0.parquet"
    other = f"news/raw/year=2025/month=11/day=01/main_lang=xx/filename=other-{NAME}/part-0.parquet"
    local_store.put(stray, b"left by an earlier version")
    local_store.put(other, b"of another WARC")
    collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "2")
    assert stored_paths(local_store) == before | {other}


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_a_bad_warc_fails_and_publishes_nothing(
    damage: str, crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    data = crawl.read(PATH)
    if damage == "missing":
        crawl.delete([PATH])
    else:
        crawl.put(PATH, data[:-10])
    with pytest.raises(Exception, match=r"truncated|cannot read"):
        collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "s")
    assert stored_paths(local_store) == set()


def test_repeated_pages_are_kept_and_counted(local_store: ObjectStore, tmp_path: Path) -> None:
    pages = mixed_pages(2)
    crawl = write_crawl(tmp_path / "crawl", {PATH: [*pages, pages[0], pages[0]]})
    marker = collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "s")
    assert (marker.rows, marker.captures) == (4, 4)


def test_the_day_comes_from_the_first_record_when_the_name_has_none(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    source = open_store(str(tmp_path / "in"))
    source.put("my pages=1.warc.gz", gzipped(mixed_pages(1)))
    marker = collect_here(
        "my pages=1.warc.gz", source=source, root=local_store, scratch=tmp_path / "s"
    )
    assert marker.day == date(2025, 11, 1)
    row = scan_news(local_store).select("filename", "day").collect().row(0)
    assert row == ("my pages=1.warc.gz", "01")
    # Another file of this name, whose first record is of another day, replaces the first.
    other = mixed_pages(1)[0].dumped().replace(b"2025-11-01T", b"2025-11-02T")
    source.put("my pages=1.warc.gz", gzip.compress(other))
    collect_here("my pages=1.warc.gz", source=source, root=local_store, scratch=tmp_path / "t")
    assert scan_news(local_store).select("day").collect().rows() == [("02",)]
    assert not [path for path in stored_paths(local_store) if "day=01" in path]


def test_a_warc_of_a_day_that_has_not_come_is_refused(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    path = warc_path(date(2099, 1, 1))
    crawl = write_crawl(tmp_path / "crawl", {path: mixed_pages(1)})
    with pytest.raises(InputError, match="of 2099-01-01, which has not come"):
        collect_here(path, source=crawl, root=local_store, scratch=tmp_path / "s")
    assert stored_paths(local_store) == set()


def test_a_warc_without_any_day_is_an_input_error(local_store: ObjectStore, tmp_path: Path) -> None:
    source = open_store(str(tmp_path / "in"))
    record = mixed_pages(1)[0].dumped().replace(b"WARC-Date", b"X-Date")
    source.put("pages.warc", record)
    with pytest.raises(InputError, match="has no day"):
        collect_here("pages.warc", source=source, root=local_store, scratch=tmp_path / "s")


def test_a_combined_marker_is_retracted_before_its_files_change(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    marker = collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "s")
    combine_month(local_store, DAY)
    crawl.put(PATH, gzipped(mixed_pages(3)))
    changed = collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "t")
    assert changed.fingerprint != marker.fingerprint
    assert find_table_units(local_store, DAY) == ()
    assert read_collected(local_store) == [changed]
