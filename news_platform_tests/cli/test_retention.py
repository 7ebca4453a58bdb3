"""`news-platform retention plan` and `apply`, as a person or a schedule calls them."""

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from news_platform.cli.retention import retention
from news_platform.cli.store import store as store_group
from news_platform.domain_store.lookup import DomainStore
from news_platform.errors import ConfigError, InputError
from news_platform.resources import open_resources
from news_platform.rss.article_files import WorkPlaces, full_text_path
from news_platform.rss.ledger.tables import RAW
from news_platform.settings import load_settings
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.urls import url_hash
from news_platform_tests.domain_store.pages import collect
from news_platform_tests.rss.test_export import add_stored

DAYS = {
    "2025-11-01": ["uk.co.bbc", "org.a", "uk.co.bbc"],
    "2025-11-02": ["org.a", "com.c"],
}
STAGE_1 = {"NEWS_PLATFORM_RETAIN_STAGE_1_DAYS": "0"}


def _call(root: ObjectStore, *words: str, env: Mapping[str, str] = STAGE_1) -> Result:
    command = [words[0], "--root", root.url, *words[1:]]
    environ = {"NEWS_PLATFORM_BUCKETS": "8", **env}
    return CliRunner().invoke(retention, command, env=environ)


def _json(root: ObjectStore, *words: str, env: Mapping[str, str] = STAGE_1) -> dict[str, dict]:  # type: ignore[type-arg] # JSON
    result = _call(root, *words, "--json", env=env)
    assert result.exception is None, result.output
    return {one["dataset"]: one for one in json.loads(result.stdout)}


@pytest.fixture
def built(local_store: ObjectStore) -> ObjectStore:
    """Return a root with two collected days in the store."""
    collect(local_store, DAYS)
    build_store(local_store)
    return local_store


def build_store(root: ObjectStore) -> Sequence[str]:
    """Run `store build`; return the days that it staged."""
    words = ["build", "--root", root.url, "--json"]
    result = CliRunner().invoke(store_group, words, env={"NEWS_PLATFORM_BUCKETS": "8"})
    assert result.exception is None, result.output
    return list(json.loads(result.stdout)["staged"])


def test_plan_counts_what_apply_deletes_and_changes_nothing(built: ObjectStore) -> None:
    before = {info.path: info.etag for info in built.list()}
    planned = _json(built, "plan")
    assert {info.path: info.etag for info in built.list()} == before
    assert planned["domain_buckets"]["keys"] == sorted(DAYS)
    assert "2: 2025-11-01 to 2025-11-02\n" in _call(built, "plan").stdout
    _json(built, "apply", env={})  # without a policy only old generations go
    assert {info.path: info.etag for info in built.list()} == before
    done = _json(built, "apply")
    assert done["domain_buckets"] == planned["domain_buckets"]
    assert list(built.list("domain_buckets")) == []
    assert _json(built, "apply")["domain_buckets"]["objects"] == 0


@pytest.mark.parametrize(
    ("variable", "days"),
    [
        ("NEWS_PLATFORM_RETAIN_STAGE_1_DAYS", "-1"),
        ("NEWS_PLATFORM_FULLTEXT_KEEP_DAYS", "99999999999"),
    ],
)
def test_a_policy_that_is_not_a_number_of_days_is_refused(
    built: ObjectStore, variable: str, days: str
) -> None:
    before = {info.path: info.etag for info in built.list()}
    result = _call(built, "apply", env={**STAGE_1, variable: days})
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception) == f"{variable} is {days}: expected 0 to 36500 days"
    assert {info.path: info.etag for info in built.list()} == before


def test_full_texts_go_by_age_and_so_does_what_a_dead_process_left(
    built: ObjectStore,
) -> None:
    env = {"NEWS_PLATFORM_FULLTEXT_KEEP_DAYS": "30"}
    assert _json(built, "plan", env=env)["full_texts"]["objects"] == 0
    assert not built.exists("ledger.sqlite")
    resources = open_resources(load_settings({"NEWS_PLATFORM_ROOT": built.url}))
    engine, texts = resources.ledger.engine, built.child("articles/full_text")
    now = datetime.now(UTC)
    for name, days in (("old", 40), ("left", 40), ("new", 1)):
        reference = WorkPlaces(texts).write_full_text(
            url_hash(f"https://post.example/{name}"), "text"
        )
        add_stored(engine, name, at=now - timedelta(days=days), full_text_ref=reference)
    with engine.begin() as connection:  # as a process that died before it deleted the file
        left = RAW.c.url_hash == url_hash("https://post.example/left")
        connection.execute(
            RAW.update().where(left).values(full_text_ref="", full_text_expired_at=now)
        )
    resources.ledger.close()
    assert _json(built, "apply", env=env)["full_texts"]["objects"] == 1
    assert len(list(texts.list())) == 2
    WorkPlaces(texts).write_full_text("ab" * 32, "its row is still to be written")
    assert _swept(built, texts, full_text_path(url_hash("https://post.example/left"))) == 1
    # Most of the files at once may be those of another ledger.
    WorkPlaces(texts).write_full_text("cd" * 32, "text")
    assert _swept(built, texts, full_text_path("ab" * 32), full_text_path("cd" * 32)) == 0
    assert len(list(texts.list())) == 3


def _swept(root: ObjectStore, texts: ObjectStore, *orphans: str) -> int:
    """Return how many files without a row are deleted once they are two days old."""
    old = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    for path in orphans:
        os.utime(Path(texts.url) / path, (old, old))
    return int(_json(root, "apply")["full texts of no article"]["objects"])


RAW_NEWS = {"NEWS_PLATFORM_RETAIN_RAW_NEWS_DAYS": "10"}


def test_raw_news_goes_and_a_day_that_nothing_else_holds_is_one_line_and_no_change(
    built: ObjectStore,
) -> None:
    collect(built, {"2025-10-20": ["org.older"]})
    before = {info.path: info.etag for info in built.list()}
    refused = _json(built, "plan", env=RAW_NEWS)["raw_news"]["refused"]
    assert list(refused) == ["2025-10-20"]
    result = _call(built, "apply", env={**RAW_NEWS, **STAGE_1})
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == (
        "refused to delete raw_news 2025-10-20: the domain store does not hold it: run "
        "`news-platform store build`, or raise NEWS_PLATFORM_RETAIN_RAW_NEWS_DAYS; "
        "nothing was deleted"
    )
    assert {info.path: info.etag for info in built.list()} == before
    build_store(built)
    done = _json(built, "apply", env={**RAW_NEWS, **STAGE_1})
    assert done["raw_news"]["keys"] == ["2025-10-20", *sorted(DAYS)]
    assert list(built.list("news/raw")) == []
    assert build_store(built) == []
    assert DomainStore(built).count("bbc.co.uk") == 2
