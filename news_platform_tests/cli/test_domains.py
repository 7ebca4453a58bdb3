"""`news-platform domains`: import, fetch, show and status over the sample's sites."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from news_platform.cli.domains import domains
from news_platform.domain_metadata.queue import QUEUE
from news_platform.errors import ConfigError, InputError
from news_platform.storage.commit.root import SAMPLE, claim_root
from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import open_engine

WHERE = ("--country", "gb", "--category", "news", "--date", "2025-11-01")


@pytest.fixture
def root(tmp_path: Path, sample_world: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an empty root of the sample world, whose sites answer on loopback."""
    monkeypatch.setenv("NEWS_PLATFORM_SAMPLE_WORLD", str(sample_world))
    folder = str(tmp_path / "root")
    assert claim_root(open_store(folder), sample=True) == SAMPLE
    return folder


@pytest.fixture
def research(sample_world: Path, tmp_path: Path) -> Path:
    """Return a research file of the sample that lists several sites."""
    found = max((sample_world / "research").rglob("raw_0001.json"), key=lambda p: p.stat().st_size)
    copy = tmp_path / "research.json"
    copy.write_bytes(found.read_bytes())
    return copy


def run(*words: str, root: str) -> Result:
    return CliRunner().invoke(domains, [*words, "--root", root, "--json"])


def document(*words: str, root: str) -> Any:
    done = run(*words, root=root)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_from_import_to_facts(root: str, research: Path) -> None:
    imported = document("import", str(research), *WHERE, root=root)
    path = "raw/country=gb/category=news/date=2025-11-01/raw_0001.json"
    assert imported["imported"] == {str(research): path} and imported["failed"] == {}
    again = document("import", str(research), *WHERE, root=root)
    assert again["imported"] == {str(research): path}
    waiting = document("status", root=root)
    assert waiting == {"batches": {}, "not_queued": ["gb|news|2025-11-01"], "not_read": {}}

    fetched = document("fetch", root=root)
    [surveyed] = fetched["surveyed"]
    assert surveyed["outcomes"]["ok"] >= 1

    status = document("status", root=root)
    assert list(status["batches"]) == ["gb|news|2025-11-01"]
    assert status["not_queued"] == []

    domain = json.loads(research.read_text())["records"][0]["normalized_domain"]
    facts = document("show", domain, root=root)
    assert facts["registrable_domain"] == domain and facts["outcome"]

    second = document("fetch", "--batch", "gb|news|2025-11-01", root=root)
    assert second["queued"] == []


def test_text_for_people(root: str, research: Path) -> None:
    def shown(*words: str) -> str:
        return CliRunner().invoke(domains, [*words, "--root", root]).stdout

    assert "start with `news-platform domains import`" in shown("status")
    assert "start with `news-platform domains import`" in shown("fetch")
    assert "-> raw/country=gb" in shown("import", str(research), *WHERE)
    assert "new research files" in shown("status")
    assert "surveyed gb|news|2025-11-01: " in shown("fetch")
    assert "ok " in shown("status")
    bad = Path(root) / "raw/country=gb/category=news/date=2025-11-02/raw_0001.json"
    bad.parent.mkdir(parents=True)
    bad.write_text('{"records": [{"raw_url": "localhost"}]}')
    assert "0 new domains, records in quarantine: not_a_domain 1" in shown("fetch")
    assert "surveyed gb|news|2025-11-02: no domains" in shown(
        "fetch", "--batch", "gb|news|2025-11-02"
    )


def test_status_names_every_file_that_is_not_read(root: str, research: Path) -> None:
    raw = Path(root) / "raw/country=gb/category=news/date=2025-11-01"
    raw.mkdir(parents=True)
    (raw / "raw_0001.json").write_text("{")
    elsewhere = Path(root) / "raw/country=gbr/category=news/date=2025-11-01/raw_0001.json"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(research.read_bytes())
    below = raw / "backup" / "raw_0002.json"
    below.parent.mkdir()
    below.write_bytes(research.read_bytes())
    assert isinstance(run("fetch", root=root).exception, InputError)
    not_read = document("status", root=root)["not_read"]
    expected = {
        "raw/country=gb/category=news/date=2025-11-01/raw_0001.json": "invalid JSON",
        "raw/country=gb/category=news/date=2025-11-01/backup/raw_0002.json": "not in a batch",
        "raw/country=gbr/category=news/date=2025-11-01/raw_0001.json": "invalid batch",
    }
    assert not_read.keys() == expected.keys()
    assert all(not_read[path].startswith(reason) for path, reason in expected.items())
    shown = CliRunner().invoke(domains, ["status", "--root", root]).stdout
    assert shown.count("not read: raw/") == 3


def test_a_batch_that_is_named_is_looked_through(root: str, research: Path) -> None:
    document("import", str(research), *WHERE, root=root)
    document("fetch", root=root)
    [lost, *_] = sorted((Path(root) / "prod").rglob("robots.txt"))
    lost.unlink()
    assert document("fetch", root=root)["surveyed"] == [] and not lost.exists()
    document("fetch", "--batch", "gb|news|2025-11-01", root=root)
    assert lost.exists()


def test_an_unknown_batch_is_a_clear_error(root: str) -> None:
    done = run("fetch", "--batch", "gb|news|2025-11-09", root=root)
    assert isinstance(done.exception, InputError) and "domains import" in str(done.exception)


def test_the_latest_day_is_shown_whatever_was_imported_last(root: str, research: Path) -> None:
    later = ("--country", "GB", "--category", "news", "--date", "2025-11-02")
    document("import", str(research), *later, root=root)
    document("fetch", root=root)
    document("import", str(research), *WHERE, root=root)
    document("fetch", root=root)
    domain = json.loads(research.read_text())["records"][0]["normalized_domain"]
    shown = document("show", domain, root=root)
    assert (shown["date"], shown["country"]) == ("2025-11-02", "gb")


def test_a_bad_file_fails_alone_and_the_command_says_so(
    root: str, research: Path, tmp_path: Path
) -> None:
    bad, worse = tmp_path / "bad.json", tmp_path / "worse.json"
    bad.write_text("[]")
    worse.write_text("{")
    words = ("import", str(bad), str(worse), str(research), *WHERE)
    done = run(*words, root=root)
    assert isinstance(done.exception, InputError) and "bad.json" in str(done.exception)
    assert list(json.loads(done.stdout)["imported"]) == [str(research)]
    shown = CliRunner().invoke(domains, [*words, "--root", root]).stdout
    assert f"{bad} failed: 'bad.json' is not a research file" in shown
    assert f"{worse} failed: invalid JSON in 'worse.json'" in shown


@pytest.mark.parametrize(
    "where",
    [
        ("--country", "gbr", "--category", "news", "--date", "2025-11-01"),
        ("--country", "gb", "--category", "../x", "--date", "2025-11-01"),
        ("--country", "gb", "--category", "news", "--date", "yesterday"),
    ],
)
def test_a_batch_that_cannot_be_is_refused(
    where: tuple[str, ...], root: str, research: Path
) -> None:
    done = run("import", str(research), *where, root=root)
    assert isinstance(done.exception, InputError) and "invalid batch" in str(done.exception)


def test_a_domain_that_was_not_surveyed_is_a_clear_error(root: str) -> None:
    done = run("show", "nobody.example", root=root)
    assert isinstance(done.exception, InputError) and "nobody.example" in str(done.exception)


def test_a_missing_file_or_option_is_wrong_use(root: str) -> None:
    assert run("import", "/no/such/file", *WHERE, root=root).exit_code == 2
    assert run("import", root=root).exit_code == 2


def test_a_real_root_is_not_taken_for_the_sample(tmp_path: Path) -> None:
    folder = str(tmp_path / "real")
    assert claim_root(open_store(folder), sample=False) == "real"
    with pytest.raises(ConfigError):
        claim_root(open_store(folder), sample=True)
    assert document("fetch", root=folder) == {"queued": [], "surveyed": []}


def test_a_batch_and_a_domain_can_be_surveyed_again_on_a_later_day(
    root: str, research: Path
) -> None:
    document("import", str(research), *WHERE, root=root)
    document("fetch", root=root)
    domain = json.loads(research.read_text())["records"][0]["normalized_domain"]
    one = document("resurvey", domain, "--date", "2025-11-02", root=root)
    assert [report["new_domains"] for report in one["queued"]] == [1]
    assert [report["batch"] for report in one["surveyed"]] == ["gb|news|2025-11-02"]
    assert document("show", domain, root=root)["date"] == "2025-11-02"
    twice = document("resurvey", domain, "--date", "2025-11-02", root=root)
    assert twice == {"queued": [], "surveyed": []}
    back = run("resurvey", domain, "--date", "2025-11-01", root=root)
    assert isinstance(back.exception, InputError) and "a later day" in str(back.exception)

    # Without a day it is today, which in the sample is the last day of its world.
    whole = document("resurvey", "--batch", "gb|news|2025-11-01", root=root)
    assert [report["batch"] for report in whole["surveyed"]] == ["gb|news|2025-11-03"]
    batches = document("status", root=root)["batches"]
    assert batches["gb|news|2025-11-03"] == batches["gb|news|2025-11-01"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.example"], "is in no research file"),
        (["--batch", "gb|news|2025-11-01"], "no such batch"),
    ],
)
def test_only_what_was_researched_can_be_surveyed_again(
    words: list[str], message: str, root: str
) -> None:
    done = run("resurvey", *words, root=root)
    assert isinstance(done.exception, InputError) and message in str(done.exception)


def test_a_survey_again_must_name_something(root: str) -> None:
    assert run("resurvey", root=root).exit_code == 2


def test_what_is_due_is_surveyed_again_once_and_its_tables_are_built(
    root: str, research: Path
) -> None:
    document("import", str(research), *WHERE, root=root)
    document("fetch", root=root)
    count = document("due", root=root)
    assert count["due"] == 0 and count["domains"] > 1
    old = datetime(2025, 10, 1, tzinfo=UTC).timestamp()
    engine = open_engine(f"sqlite:///{root}/ledger.sqlite")
    with engine.begin() as connection:
        values = {"accepted_at": old, "finished_at": old}
        connection.execute(sa.update(QUEUE).values(**values))
    engine.dispose()
    assert document("due", root=root)["next"] == {"gb": count["domains"]}
    surveyed = document("resurvey", "--due", root=root)["surveyed"]
    assert [report["batch"] for report in surveyed] == ["gb|news|2025-11-03"]
    assert document("resurvey", "--due", root=root) == {"queued": [], "surveyed": []}
    store = open_store(root)
    for table in ("domain_surveys", "usage_signals", "ai_policy_changes"):
        assert store.exists(f"{table}/date=2025-11-03/part-0.parquet"), table
    domain = json.loads(research.read_text())["records"][0]["normalized_domain"]
    days = [row["date"] for row in document("history", domain, root=root)["surveys"]]
    assert days == ["2025-11-01", "2025-11-03"]


def test_what_is_due_cannot_be_mixed_with_names(root: str) -> None:
    assert run("resurvey", "--due", "a.example", root=root).exit_code == 2
