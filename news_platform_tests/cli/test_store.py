"""`news-platform store ...`, as a person or a script calls it."""

import json
from pathlib import Path

import pytest

from news_platform.domain_store.lookup import DomainStore
from news_platform.errors import NewsPlatformError
from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.cli.runner import Commands
from news_platform_tests.domain_store.pages import collect, news_rows

DAYS = {
    "2025-11-01": ["uk.co.bbc", "org.a", "uk.co.bbc"],
    "2025-11-02": ["org.a", "com.c"],
}
STORE = Commands("store", {"NEWS_PLATFORM_BUCKETS": "8"})


@pytest.fixture
def built(local_store: ObjectStore) -> ObjectStore:
    """Return a root with two days built by the command."""
    collect(local_store, DAYS)
    assert STORE.run(local_store, "build").exit_code == 0
    return local_store


def test_build_stages_collected_days_builds_the_store_and_writes_the_catalog(
    local_store: ObjectStore,
) -> None:
    collect(local_store, DAYS)
    document = STORE.json(local_store, "build")
    assert document["staged"] == sorted(DAYS)
    assert (document["records"], document["domains"]) == (5, 3)
    assert local_store.exists("domain_catalog/part-0.parquet")
    again = STORE.json(local_store, "build")
    assert (again["staged"], again["bytes_written"]) == ([], 0)


def test_get_shows_what_people_read_and_prints_whole_records_if_asked(built: ObjectStore) -> None:
    shown = STORE.text(built, "get", "BBC.co.uk").splitlines()
    assert "records     2" in shown and "first_seen  2025-11-01" in shown
    assert shown[-2:] == ["2025-11-01  fr  https://uk.co.bbc/2025-11-01/2", "    page 2"]
    result = STORE.run(built, "get", "bbc.co.uk", "--lines")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["uri"] for row in rows] == [f"https://uk.co.bbc/2025-11-01/{n}" for n in (0, 2)]
    assert {row["domain"] for row in rows} == {"bbc.co.uk"}


@pytest.mark.parametrize("words", [("--limit", "1"), ("--since", "2025-11-02")])
def test_get_can_be_narrowed(built: ObjectStore, words: tuple[str, str]) -> None:
    assert STORE.json(built, "get", "a.org")["count"] == 2
    assert len(STORE.run(built, "get", "a.org", "--lines", *words).stdout.splitlines()) == 1


def test_an_unknown_domain_is_a_reported_failure(built: ObjectStore) -> None:
    result = STORE.run(built, "get", "nowhere.org")
    assert result.stdout == ""
    assert isinstance(result.exception, NewsPlatformError)
    assert "no records of 'nowhere.org'" in str(result.exception)


def test_stats_say_what_the_store_holds(built: ObjectStore) -> None:
    document = STORE.json(built, "stats")
    assert (document["buckets"], document["records"], document["domains"]) == (8, 5, 3)
    assert "5 records of 3 domains in 8 buckets" in STORE.run(built, "stats").stdout


def test_verify_is_silent_about_a_sound_store_and_names_a_broken_file(built: ObjectStore) -> None:
    assert STORE.json(built, "verify")["problems"] == []
    entry = DomainStore(built).entry("a.org")
    assert entry is not None
    path = entry.fragments[0].path
    body = bytearray(built.read(path))
    body[len(body) // 2] ^= 0xFF
    built.put(path, bytes(body))
    result = STORE.run(built, "verify")
    assert isinstance(result.exception, NewsPlatformError)
    assert path in result.stdout


def test_repair_builds_a_lost_file_again_and_nothing_else(built: ObjectStore) -> None:
    assert STORE.json(built, "repair")["batches"] == 0
    entry = DomainStore(built).entry("a.org")
    assert entry is not None
    built.delete([entry.fragments[0].path])
    assert STORE.json(built, "repair")["batches"] == 2
    assert len(list(DomainStore(built).records("a.org"))) == 2
    assert STORE.json(built, "verify")["problems"] == []


def test_compact_leaves_the_same_records(built: ObjectStore) -> None:
    collect(built, {"2025-11-03": ["org.a"]})
    STORE.run(built, "build")
    assert STORE.json(built, "compact")["bytes_written"] != 0
    assert len(list(DomainStore(built).records("a.org"))) == 3
    assert STORE.json(built, "compact")["bytes_written"] == 0


def test_rows_of_another_crawl_join_under_their_own_name(
    built: ObjectStore, tmp_path: Path
) -> None:
    news_rows(["org.a", "net.z"], day="2013-05-20").write_parquet(tmp_path / "rows-1.parquet")
    words = ["--batch", "CC-MAIN-2013-20", "--rows", str(tmp_path / "rows-*.parquet")]
    assert STORE.json(built, "build", *words)["staged"] == ["CC-MAIN-2013-20"]
    assert DomainStore(built).count("a.org") == 3
    assert DomainStore(built).count("z.net") == 1
    assert STORE.json(built, "build")["staged"] == []
    assert DomainStore(built).count("z.net") == 1


def test_a_refused_replacement_of_a_batch_leaves_it_staged(
    built: ObjectStore, tmp_path: Path
) -> None:
    words = ["--batch", "CC-MAIN-2013-20", "--rows", str(tmp_path / "rows.parquet")]
    news_rows(["org.a", "net.z"] * 20, day="2013-05-20").write_parquet(tmp_path / "rows.parquet")
    STORE.json(built, "build", *words)
    before = {info.path: info.etag for info in built.list("domain_buckets")}
    news_rows(["net.z"], day="2013-05-20").write_parquet(tmp_path / "rows.parquet")
    assert STORE.run(built, "build", *words).exit_code != 0
    assert {info.path: info.etag for info in built.list("domain_buckets")} == before
    assert STORE.json(built, "build", *words, "--allow-removal")["staged"] == ["CC-MAIN-2013-20"]
    assert DomainStore(built).count("z.net") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("repair", "--bucket", "8"),
        ("verify", "--bucket", "-1"),
        ("build", "--batch", "x"),
        ("build", "--rows", "*.parquet"),
    ],
    ids=" ".join,
)
def test_wrong_use_exits_with_2_and_changes_nothing(
    built: ObjectStore, words: tuple[str, ...]
) -> None:
    before = [info.path for info in built.list()]
    assert STORE.run(built, *words).exit_code == 2
    assert [info.path for info in built.list()] == before


@pytest.mark.parametrize("command", ["compact", "repair", "stats", "verify"])
def test_looking_after_no_store_begins_none(local_store: ObjectStore, command: str) -> None:
    claim_root(local_store, sample=False)
    result = STORE.run(local_store, command)
    assert "no domain store at" in str(result.exception)
    assert not local_store.exists("domain_store/store.json")


def test_who_asks_for_a_host_is_told_its_domain(built: ObjectStore) -> None:
    told = str(STORE.run(built, "get", "www.bbc.co.uk").exception)
    assert told == "the store has no records of 'www.bbc.co.uk', but it has records of 'bbc.co.uk'"


def test_a_build_without_its_inputs_is_refused_and_changes_nothing(built: ObjectStore) -> None:
    built.delete([info.path for info in built.list("news")])
    before = [(info.path, info.etag) for info in built.list()]
    result = STORE.error(built, "build")
    assert "refused to remove 5 of 5 records" in result
    assert "'2025-11-01'" in result
    assert [(info.path, info.etag) for info in built.list()] == before
    assert DomainStore(built).count("a.org") == 2
    assert STORE.json(built, "build", "--allow-removal")["records"] == 0
