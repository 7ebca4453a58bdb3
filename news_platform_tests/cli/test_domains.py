"""`news-platform domains`: import, fetch, show and status over the sample's sites."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.domain_metadata.queue import QUEUE
from news_platform.errors import InputError
from news_platform.storage.commit.root import SAMPLE, claim_root
from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import open_engine
from news_platform_tests.cli.runner import Commands

DOMAINS = Commands("domains")
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


def test_from_import_to_facts(root: str, research: Path) -> None:
    imported = DOMAINS.json(root, "import", str(research), *WHERE)
    path = "raw/country=gb/category=news/date=2025-11-01/raw_0001.json"
    assert imported["imported"] == {str(research): path} and imported["failed"] == {}
    again = DOMAINS.json(root, "import", str(research), *WHERE)
    assert again["imported"] == {str(research): path}
    waiting = DOMAINS.json(root, "status")
    assert waiting == {"batches": {}, "not_queued": ["gb|news|2025-11-01"], "not_read": {}}

    fetched = DOMAINS.json(root, "fetch")
    [surveyed] = fetched["surveyed"]
    assert surveyed["outcomes"]["ok"] >= 1

    status = DOMAINS.json(root, "status")
    assert list(status["batches"]) == ["gb|news|2025-11-01"]
    assert status["not_queued"] == []

    domain = json.loads(research.read_text())["records"][0]["normalized_domain"]
    facts = DOMAINS.json(root, "show", domain)
    assert facts["registrable_domain"] == domain and facts["outcome"]

    second = DOMAINS.json(root, "fetch", "--batch", "gb|news|2025-11-01")
    assert second["queued"] == []


def test_text_for_people(root: str, research: Path) -> None:
    assert "start with `news-platform domains import`" in DOMAINS.text(root, "status")
    assert "start with `news-platform domains import`" in DOMAINS.text(root, "fetch")
    assert "-> raw/country=gb" in DOMAINS.text(root, "import", str(research), *WHERE)
    assert "new research files" in DOMAINS.text(root, "status")
    assert "surveyed gb|news|2025-11-01: " in DOMAINS.text(root, "fetch")
    assert "ok " in DOMAINS.text(root, "status")
    domain = json.loads(research.read_text())["records"][0]["normalized_domain"]
    shown = DOMAINS.text(root, "show", domain).splitlines()
    assert shown[0].startswith(f"{domain} (gb, news): ") and len(shown) < 12
    assert shown[-1].startswith("  ") and "disallow_all" not in "".join(shown)
    bad = Path(root) / "raw/country=gb/category=news/date=2025-11-02/raw_0001.json"
    bad.parent.mkdir(parents=True)
    bad.write_text('{"records": [{"raw_url": "localhost"}]}')
    assert "0 new domains, records in quarantine: not_a_domain 1" in DOMAINS.text(root, "fetch")


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
    assert isinstance(DOMAINS.run(root, "fetch").exception, InputError)
    not_read = DOMAINS.json(root, "status")["not_read"]
    expected = {
        "raw/country=gb/category=news/date=2025-11-01/raw_0001.json": "invalid JSON",
        "raw/country=gb/category=news/date=2025-11-01/backup/raw_0002.json": "not in a batch",
        "raw/country=gbr/category=news/date=2025-11-01/raw_0001.json": "invalid batch",
    }
    assert not_read.keys() == expected.keys()
    assert all(not_read[path].startswith(reason) for path, reason in expected.items())
    shown = DOMAINS.text(root, "status")
    assert shown.count("not read: raw/") == 3


def test_a_bad_file_fails_alone_and_the_command_says_so(
    root: str, research: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    done = DOMAINS.run(root, "import", str(bad), str(research), *WHERE, "--json")
    assert "bad.json" in str(done.exception)
    assert list(json.loads(done.stdout)["imported"]) == [str(research)]


def test_a_batch_and_a_domain_can_be_surveyed_again_on_a_later_day(
    root: str, research: Path
) -> None:
    DOMAINS.json(root, "import", str(research), *WHERE)
    DOMAINS.json(root, "fetch")
    domain = json.loads(research.read_text())["records"][0]["normalized_domain"]
    one = DOMAINS.json(root, "resurvey", domain, "--date", "2025-11-02")
    assert [report["new_domains"] for report in one["queued"]] == [1]
    assert [report["batch"] for report in one["surveyed"]] == ["gb|news|2025-11-02"]
    assert DOMAINS.json(root, "show", domain)["date"] == "2025-11-02"
    twice = DOMAINS.json(root, "resurvey", domain, "--date", "2025-11-02")
    assert twice == {"queued": [], "surveyed": []}
    back = DOMAINS.run(root, "resurvey", domain, "--date", "2025-11-01")
    assert isinstance(back.exception, InputError) and "a later day" in str(back.exception)

    # Without a day it is today, which in the sample is the last day of its world.
    whole = DOMAINS.json(root, "resurvey", "--batch", "gb|news|2025-11-01")
    assert [report["batch"] for report in whole["surveyed"]] == ["gb|news|2025-11-03"]
    batches = DOMAINS.json(root, "status")["batches"]
    assert batches["gb|news|2025-11-03"] == batches["gb|news|2025-11-01"]


def test_what_is_due_is_surveyed_again_once_and_its_tables_are_built(
    root: str, research: Path
) -> None:
    DOMAINS.json(root, "import", str(research), *WHERE)
    DOMAINS.json(root, "fetch")
    count = DOMAINS.json(root, "due")
    assert count["due"] == 0 and count["domains"] > 1
    old = datetime(2025, 10, 1, tzinfo=UTC).timestamp()
    engine = open_engine(f"sqlite:///{root}/ledger.sqlite")
    with engine.begin() as connection:
        values = {"accepted_at": old, "finished_at": old}
        connection.execute(sa.update(QUEUE).values(**values))
    engine.dispose()
    assert DOMAINS.json(root, "due")["next"] == {"gb": count["domains"]}
    surveyed = DOMAINS.json(root, "resurvey", "--due")["surveyed"]
    assert [report["batch"] for report in surveyed] == ["gb|news|2025-11-03"]
    assert DOMAINS.json(root, "resurvey", "--due") == {"queued": [], "surveyed": []}
    store = open_store(root)
    for table in ("domain_surveys", "usage_signals", "survey_verdicts", "ai_policy_changes"):
        assert store.exists(f"{table}/date=2025-11-03/part-0.parquet"), table
    domain = json.loads(research.read_text())["records"][0]["normalized_domain"]
    days = [row["date"] for row in DOMAINS.json(root, "history", domain)["surveys"]]
    assert days == ["2025-11-01", "2025-11-03"]
    shown = DOMAINS.text(root, "verdicts", "--domain", domain, "--bot", "*", "--csv").splitlines()
    assert shown[0].startswith("domain,country,bot,operator,purpose,verdict,statement")
    assert len(shown) == 5 and all(line.endswith(",2025-11-01") for line in shown[1:])
    assert domain in DOMAINS.text(root, "verdicts", "--bot", "AI2Bot", "--purpose", "index")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fetch", "--batch", "gb|news|2025-11-09"], "domains import"),
        (["show", "nobody.example"], "nobody.example"),
        (["resurvey", "nowhere.example"], "is in no research file"),
        (["verdicts", "--bot", "GTPBot"], "unknown crawler 'GTPBot': did you mean 'gptbot'?"),
        (["resurvey", "--batch", "gb|news|2025-11-01"], "no such batch"),
        (["import", __file__, *WHERE[:3], "../x", *WHERE[4:]], "invalid batch"),
    ],
    ids=lambda it: it if isinstance(it, str) else it[0],
)
def test_what_is_unknown_is_a_clear_error(words: list[str], message: str, root: str) -> None:
    assert message in DOMAINS.error(root, *words)


@pytest.mark.parametrize(
    "words", [("import",), ("resurvey",), ("resurvey", "--due", "a.example")], ids=" ".join
)
def test_wrong_use_exits_with_2(words: tuple[str, ...], root: str) -> None:
    assert DOMAINS.run(root, *words).exit_code == 2
