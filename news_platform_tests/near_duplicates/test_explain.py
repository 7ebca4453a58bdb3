"""The cluster of an article is found by its hash and day, and explained with its members."""

from pathlib import Path

import pytest

from news_platform.near_duplicates.pipeline import build_day
from news_platform.near_duplicates.reading import cluster_names, explain_clusters
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.urls import url_hash
from news_platform_tests.corpus.articles import article, store_articles
from news_platform_tests.near_duplicates.stories import story

DAYS = ("2025-11-01", "2025-11-02")
FIRST, COPY, OTHER = (f"https://{name}.example/" for name in ("first", "copy", "other"))


@pytest.fixture
def store(local_store: ObjectStore, tmp_path: Path) -> ObjectStore:
    """Return a root with a copy of the first day's article on the second day."""
    store_articles(local_store, DAYS[0], [article(FIRST, story(1))], tmp_path)
    later = [article(COPY, story(1)), article(OTHER, story(2))]
    store_articles(local_store, DAYS[1], later, tmp_path)
    for day in DAYS:
        build_day(local_store, day, days=14)
    return local_store


def test_an_article_is_explained_with_the_other_members(store: ObjectStore) -> None:
    names = cluster_names(store, DAYS, [url_hash(url) for url in (FIRST, COPY, OTHER)])
    assert names[url_hash(FIRST)] == names[url_hash(COPY)] != names[url_hash(OTHER)]
    whole, member = explain_clusters(store, [DAYS[0]], [url_hash(FIRST)])
    assert (whole.state, whole.details["members"]) == ("clustered", "2")
    assert (member.state, member.details["url"]) == ("duplicate", COPY)
    (single,) = explain_clusters(store, [DAYS[1]], [url_hash(OTHER)])
    assert single.state == "single" and single.text.startswith("No other article")
    (absent,) = explain_clusters(store, [DAYS[1]], ["0" * 64])
    assert absent.state == "absent" and not absent.is_known
