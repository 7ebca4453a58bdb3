"""A takedown rebuilds the indexes that hold the article, and nothing of it stays in any build."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from news_platform.datasets.corpus import CRAWL_ARTICLES, SEARCH_INDEX
from news_platform.datasets.dataset import Role
from news_platform.errors import Conflict
from news_platform.search.index_engine import IndexEngine, iter_hits
from news_platform.search.pipeline import build_month
from news_platform.search.publish import publish_index, stored_builds
from news_platform.search.reading import delete_old_copies
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import built_inputs, wanted_inputs
from news_platform.takedowns.rows import TakedownTarget
from news_platform_tests.search.articles import made_articles
from news_platform_tests.search.indexes import build_stale, found, write_day
from news_platform_tests.takedowns.asked import ask, target

NOW = datetime.now(UTC)
DAYS = ("2025-11-01", "2025-11-02")


def traces(store: ObjectStore, down: TakedownTarget) -> int:
    hits = (hit for place in stored_builds(store) for hit in iter_hits(store, place))
    return sum(down.covers(Role.url, hit.url) for hit in hits)


def test_an_index_built_while_a_request_came_is_not_published(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    articles = made_articles(5, seed=1, days=1)
    write_day(local_store, CRAWL_ARTICLES, articles, tmp_path / "scratch", day=DAYS[0])

    def changed() -> None:
        raise Conflict("takedowns changed during the build: try again")

    with pytest.raises(Conflict):
        publish_index(local_store, DAYS[0], articles, inputs="x", now=NOW, before_commit=changed)
    assert stored_builds(local_store) == [] and built_inputs(local_store, SEARCH_INDEX) == {}


def test_a_day_with_an_unfinished_build_is_built_again(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    write_day(local_store, CRAWL_ARTICLES, made_articles(5, seed=1, days=1), tmp_path, day=DAYS[0])
    build_stale(local_store)
    takedowns = target("url", "https://elsewhere.example/1")
    part = IndexEngine(local_store, NOW)
    assert part.find(takedowns) == {}
    local_store.put(f"search/day={DAYS[0]}/died/x.store", b"anything")
    assert part.find(takedowns) == {DAYS[0]: 0}
    part.remove_rows(DAYS[0], takedowns)
    assert not local_store.exists(f"search/day={DAYS[0]}/died/x.store")
    assert part.find(takedowns) == {} and len(stored_builds(local_store)) == 1


def test_copies_of_builds_that_are_gone_leave_this_machine(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    write_day(local_store, CRAWL_ARTICLES, made_articles(5, seed=1, days=1), tmp_path, day=DAYS[0])
    build_stale(local_store)
    found(local_store, tmp_path, f"day:{DAYS[0]}")
    folder = tmp_path / "cache"
    assert delete_old_copies(local_store, folder) == 0 and len(list(folder.iterdir())) == 1
    elsewhere = target("url", "https://elsewhere.example/1")
    IndexEngine(local_store, NOW).remove_rows(DAYS[0], elsewhere)
    assert delete_old_copies(local_store, folder) == 1 and list(folder.iterdir()) == []
    assert delete_old_copies(local_store, tmp_path / "none") == 0


def test_a_month_is_built_again_and_all_its_older_builds_go(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    for number, day in enumerate(DAYS):
        articles = made_articles(20, seed=number, days=1)
        write_day(local_store, CRAWL_ARTICLES, articles, tmp_path / "scratch", day=day)
    build_stale(local_store)
    build_month(local_store, "2025-11", now=NOW)  # the indexes of the days stay for their readers
    gone = articles[3]
    ask(local_store, "url", gone.canonical_url)
    takedowns, part = target("url", gone.canonical_url), IndexEngine(local_store, NOW)
    places = part.find(takedowns)
    assert {"2025-11", DAYS[1]} <= places.keys()
    for key in places:
        part.remove_rows(key, takedowns)
        assert part.remove_rows(key, takedowns).rows == 0
    assert traces(local_store, takedowns) == 0
    assert {one.key for one in stored_builds(local_store)} <= {"2025-11", DAYS[0]}
    assert built_inputs(local_store, SEARCH_INDEX) == wanted_inputs(local_store, SEARCH_INDEX)
    assert gone.url_hash not in found(local_store, tmp_path, "day:2025-11-02")
    assert len(found(local_store, tmp_path, "day:2025-11-02")) == 19
