"""`news-platform rss` on the sample world: the commands in their usual order."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import Result

from news_platform.rss.ledger.feed_rows import upsert_feed
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.sample.world import place_inputs
from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import ledger_url, open_engine
from news_platform.web.opml import opml_feeds
from news_platform_tests.cli.runner import Commands

RSS = Commands("rss")


@dataclass(frozen=True)
class Shell:
    """Runs commands over one sample root."""

    root: Path

    def run(self, *arguments: str) -> Result:
        return RSS.run(self.root, *arguments)

    def text(self, *arguments: str) -> str:
        return RSS.text(self.root, *arguments)

    def json(self, *arguments: str) -> Any:
        return RSS.json(self.root, *arguments)


@pytest.fixture(scope="module")
def shell(sample_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Run ensure, discovery, poll and work once over a sample root."""
    root = tmp_path_factory.mktemp("cli") / "root"
    place_inputs(sample_world, open_store(str(root)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEWS_PLATFORM_SAMPLE", "1")
        patch.setenv("NEWS_PLATFORM_SAMPLE_WORLD", str(sample_world))
        made = Shell(root)
        assert "ready: sqlite:///" in made.text("ensure")
        assert made.json("discovery")["added"] >= 3
        assert made.json("poll")["new_articles"] >= 30
        assert made.json("work", "--worker-id", "w1")["stored"] >= 20
        # One feed lists more articles than one poll takes; the next poll takes the rest.
        made.text("poll")
        made.text("work", "--worker-id", "w1", "--max", "50")
        yield made


def test_a_second_poll_and_work_find_nothing(shell: Shell) -> None:
    poll = shell.json("poll")
    assert poll["new_articles"] == 0
    assert set(poll["outcomes"]) <= {"not_modified", "same_body", "read"}
    assert shell.json("work", "--worker-id", "w2")["claimed"] == 0


def test_status_is_told_to_people_and_to_programs(shell: Shell) -> None:
    status = shell.json("status")
    assert status["articles"]["stored"] >= 20
    assert "pending" not in status["articles"]
    text = shell.text("status")
    assert f"stored {status['articles']['stored']}" in text


def test_export_selects_and_orders(shell: Shell) -> None:
    everything = shell.json("export")
    chosen = shell.json("export", "--category", "politics", "--lang", "en", "--order", "sources")
    assert chosen and len(chosen) < len(everything)
    assert {row["category_guess"] for row in chosen} == {"politics"}
    counts = [row["popularity"] for row in chosen]
    assert counts == sorted(counts, reverse=True)
    assert shell.json("export", "--since", "2099-01-01") == []
    lines = shell.text("export", "--limit", "2").splitlines()
    assert [json.loads(line)["row_id"] for line in lines] == [r["row_id"] for r in everything[:2]]


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_export_writes_files(shell: Shell, tmp_path: Path, suffix: str) -> None:
    output = tmp_path / f"articles{suffix}"
    document = shell.json("export", "--output", str(output))
    read = pl.read_parquet if suffix == ".parquet" else pl.read_ndjson
    assert read(output).height == document["articles"]


def test_export_gives_deltas_daily_files_and_opml(shell: Shell) -> None:
    first = shell.json("export", "--delta", "0", "--limit", "5")
    rest = shell.json("export", "--delta", str(first["cursor"]))
    assert len(first["articles"]) + len(rest["articles"]) >= 20
    assert shell.json("export", "--delta", str(rest["cursor"]))["articles"] == []
    assert shell.json("export", "--daily")["days"] == ["2025-11-03"]
    assert shell.json("export", "--daily")["days"] == []
    opml = shell.text("export", "--opml")
    assert list(opml_feeds(opml.encode())) == shell.json("export", "--opml")


def test_a_named_feed_that_is_refused_fails_with_its_reason(shell: Shell) -> None:
    result = shell.run("discovery", "--feed", "https://nowhere.example/rss")
    assert (result.exit_code, "unreachable" in result.stdout) == (1, True)


def test_a_rejected_feed_that_is_taken_after_all_is_not_passed_over_in_silence(
    shell: Shell,
) -> None:
    feed = "https://wire.meridian.example/rss.xml"
    engine = open_engine(ledger_url(str(shell.root), None))
    with write_transaction(engine) as change:
        upsert_feed(change, feed, status="rejected")
    engine.dispose()
    last = shell.text("discovery", "--feed", feed).splitlines()[-1]
    assert last == "1 candidates, 0 known, 0 added, 1 active again"
    assert shell.json("discovery", "--feed", feed)["revived"] == 0


@pytest.mark.parametrize(
    "arguments",
    [("work",), ("export", "--since", "soon"), ("export", "--order", "best"), ("discover",)],
)
def test_wrong_use_exits_with_2(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell.run(*arguments).exit_code == 2
