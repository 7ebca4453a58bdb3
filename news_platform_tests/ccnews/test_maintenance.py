"""Every night: changed sources are found, old months combined, expired files deleted."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from news_platform.ccnews.maintenance import (
    accept_broken,
    check_sources,
    combine_old_months,
    list_republished,
    maintain_crawl,
    note_failure,
    read_broken,
)
from news_platform.ccnews.scan import scan_news
from news_platform.storage.commit.collected import (
    list_collected,
    read_collected,
    write_collected,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.ccnews.archive import gzipped
from news_platform_tests.ccnews.crawl import (
    DAY,
    NOW,
    collect_here,
    mixed_pages,
    warc_name,
    warc_path,
    write_crawl,
)
from news_platform_tests.collected import MARKER

PATH, NAME = warc_path(DAY), warc_name(DAY)


@pytest.fixture
def crawl(tmp_path: Path) -> ObjectStore:
    return write_crawl(tmp_path / "crawl", {PATH: mixed_pages(3)})


def test_an_unchanged_source_is_not_noted(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "s")
    crawl.put(PATH, crawl.read(PATH))  # another inode, the same bytes
    assert check_sources(local_store, crawl=(crawl,), days=[DAY]) == []
    assert list_republished(local_store) == {}


def test_a_source_of_the_same_size_but_another_tag_is_noted(
    s3_store: ObjectStore, local_store: ObjectStore, tmp_path: Path, crawl: ObjectStore
) -> None:
    listing = f"{PATH.rpartition('/')[0]}/warc.paths.gz"
    for path in (PATH, listing):
        s3_store.put(path, crawl.read(path))
    collect_here(PATH, source=s3_store, root=local_store, scratch=tmp_path / "s")
    assert check_sources(local_store, crawl=(s3_store,), days=[DAY]) == []
    body = bytearray(crawl.read(PATH))
    body[4] ^= 1  # the time in the gzip header
    s3_store.put(PATH, bytes(body))
    (changed,) = check_sources(local_store, crawl=(s3_store,), days=[DAY])
    assert (changed.warc, changed.source_bytes) == (NAME, changed.collected_bytes)
    assert list_republished(local_store) == {"2025-11-01": frozenset({NAME})}


def test_only_months_long_past_are_combined(local_store: ObjectStore) -> None:
    recent = replace(MARKER, day=NOW.date() - timedelta(days=20))
    old = replace(MARKER, day=NOW.date() - timedelta(days=150))
    for marker in (recent, old):
        write_collected(local_store, marker)
    assert combine_old_months(local_store, today=NOW.date()) == 1
    assert combine_old_months(local_store, today=NOW.date()) == 0
    assert [unit.is_combined for unit in list_collected(local_store)] == [True, False]
    assert read_collected(local_store) == [old, recent]


def test_expired_drops_are_deleted_and_their_day_stays_complete(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    marker = collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "s")
    (dropped,) = local_store.list("news/dropped")
    for later, left in ((timedelta(days=9), 1), (timedelta(days=11), 0)):
        now = dropped.modified_at + later
        maintain_crawl(local_store, crawl=(crawl,), now=now, recheck_days=60, dropped_days=10)
        assert len(list(local_store.list("news/dropped"))) == left
    assert not any(path.startswith("news/dropped") for path in marker.paths())


def test_failures_count_only_while_size_tag_and_reason_are_the_same(
    crawl: ObjectStore, local_store: ObjectStore
) -> None:
    def fail(reason: str) -> int:
        info, known = crawl.head(PATH), read_broken(local_store).get(NAME)
        note = note_failure(local_store, NAME, info=info, reason=reason, known=known)
        assert read_broken(local_store) == {NAME: note}
        return note.failures

    assert [fail("cut"), fail("cut"), fail("empty"), fail("empty")] == [1, 2, 1, 2]
    crawl.put(PATH, gzipped(mixed_pages(2)))
    assert fail("empty") == 1
    accept_broken(local_store, NAME, info=crawl.head(PATH))
    note = read_broken(local_store)[NAME]
    assert note.accepts(crawl.head(PATH), after=0)
    crawl.put(PATH, gzipped(mixed_pages(1)))
    assert not note.accepts(crawl.head(PATH), after=1)


def test_scanning_days_of_several_recipes_is_possible_and_visible(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "s")
    assert scan_news(local_store).collect().height == 3
    assert not caplog.messages
    write_collected(local_store, replace(MARKER, extractor_version="1", warc="old"))
    assert scan_news(local_store).collect().height == 3
    assert "collected in several ways" in caplog.text
    assert "version 1" in caplog.text
