"""Page sources that expire alone: raw_news keeps its rows, the domain store keeps the pages."""

import logging
from functools import partial

import pytest

from news_platform.ccnews.checks import (
    duplicate_problems,
    read_footers,
    row_problems,
    schema_problems,
)
from news_platform.ccnews.options import CollectOptions
from news_platform.ccnews.pipeline import damaged_warcs, outdated_days
from news_platform.ccnews.scan import scan_news
from news_platform.ccnews.tree_retention import expire_trees, plan_trees
from news_platform.domain_store.fragments import rows_by_warc
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.retention import stored_days
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.commit.expired import read_expired
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.retention import Expiry
from news_platform.takedowns.requests import list_pending
from news_platform_tests.ccnews.test_retention import DAYS, DOMAINS, NOW, OLD, _expire, _stage, root
from news_platform_tests.domain_store.faults import Crash, DyingStore, Fuse
from news_platform_tests.domain_store.pages import build, collect, collect_late, urls
from news_platform_tests.takedowns.asked import ask

__all__ = ["root"]


def _empty(root: ObjectStore) -> Expiry:
    plan = plan_trees(root, keep_days=10, now=NOW, stored_days=partial(stored_days, root))
    return expire_trees(root, plan, now=NOW, rows_by_warc=partial(rows_by_warc, root))


def _trees(root: ObjectStore) -> list[str]:
    """Return the page sources of the old day in the store."""
    rows = (row for name in DOMAINS for row in DomainStore(root).records(name))
    return sorted(str(row["tree"]) for row in rows if "2025-11-01" in str(row["uri"]))


def test_rows_stay_without_trees_and_the_store_keeps_the_trees(root: ObjectStore) -> None:
    before, trees = scan_news(root).drop("tree").collect(), _trees(root)
    done = _empty(root)
    assert sorted(done.objects) == ["2025-11-01"]
    assert done.bytes > 0
    assert scan_news(root).drop("tree").collect().equals(before)
    nulls = scan_news(root, columns=["day", "tree"]).collect().filter(day="01")["tree"]
    assert nulls.null_count() == 3 == len(nulls)
    assert _trees(root) == trees and None not in trees
    assert _empty(root).objects == {}


def test_a_day_that_is_emptied_while_a_request_waits_is_cleaned_later(root: ObjectStore) -> None:
    ask(root, "domain", "gone.example")
    _empty(root)
    assert ("raw_news", "2025-11-01") in list_pending(root)


def test_a_day_without_trees_is_sound_and_neither_stale_nor_outdated(root: ObjectStore) -> None:
    # The rows of this test were not written by ccnews, so their types differ from the start.
    before = schema_problems(read_footers(root, day=OLD))
    _empty(root)
    footers = read_footers(root, day=OLD)
    assert row_problems(root, footers, day=OLD) == []
    assert schema_problems(footers) == before
    assert duplicate_problems(root, day=OLD) == []
    assert damaged_warcs(root, day=OLD) == frozenset()
    assert sorted(outdated_days(root, CollectOptions())) == ["2025-11-02"]
    assert _stage(root) == []


def test_a_late_warc_is_staged_beside_rows_of_the_store(root: ObjectStore) -> None:
    trees = _trees(root)
    _empty(root)
    collect_late(root, "2025-11-01", ["org.a"])
    assert _stage(root) == ["2025-11-01"]
    build(root)
    assert set(trees) <= set(_trees(root))
    assert len(_trees(root)) == len(trees) + 1
    assert "None" not in _trees(root)


def test_a_scan_says_that_trees_are_expired(
    root: ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    _empty(root)
    with caplog.at_level(logging.WARNING):
        scan_news(root, columns=["uri"]).collect()
        assert caplog.text == ""
        scan_news(root, columns=["tree"]).collect()
    assert "the trees of raw_news of 1 days from 2025-11-01 on are expired" in caplog.text


def test_a_day_that_the_store_does_not_hold_is_refused(root: ObjectStore) -> None:
    collect(root, {"2025-10-20": ["org.older"]})
    assert list(_empty(root).refused) == ["2025-10-20"]
    assert not read_collected(root, [OLD.replace(month=10, day=20)])[0].is_tree_expired


def test_the_whole_day_may_expire_later(root: ObjectStore) -> None:
    before = urls(root, DOMAINS)
    _empty(root)
    assert sorted(_expire(root).objects) == ["2025-11-01"]
    (marker,) = read_collected(root, [OLD])
    assert marker.is_expired and not marker.is_tree_expired
    assert urls(root, DOMAINS) == before


@pytest.mark.parametrize("at", range(1, 40, 3))
def test_an_interrupted_run_is_finished_by_the_next(root: ObjectStore, at: int) -> None:
    trees = _trees(root)
    dying = DyingStore(root, Fuse(at, is_after=True))
    try:
        _empty(dying)
    except Crash:
        # Whatever is staged now must not lose a page source.
        collect_late(root, "2025-11-01", ["org.a"])
        _stage(root)
        build(root)
        assert set(trees) <= set(_trees(root))
    _empty(root)
    assert all(record.is_done for record in read_expired(root, DAYS).values())
    rows = scan_news(root, columns=["day", "tree"]).collect().filter(day="01")
    assert rows["tree"].null_count() == rows.height
    assert set(trees) <= set(_trees(root))
