"""`news-platform rss` on the sample world: the commands in their usual order."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from news_platform.sample.world import place_inputs
from news_platform.storage.objects.store import open_store
from news_platform.web.opml import opml_feeds
from news_platform_tests.cli.runner import Commands

RSS = Commands("rss")


@pytest.fixture(scope="module")
def root(sample_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run ensure, discovery, poll and work once over a sample root."""
    folder = tmp_path_factory.mktemp("cli") / "root"
    place_inputs(sample_world, open_store(str(folder)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEWS_PLATFORM_SAMPLE", "1")
        patch.setenv("NEWS_PLATFORM_SAMPLE_WORLD", str(sample_world))
        assert "ready: sqlite:///" in RSS.text(folder, "ensure")
        assert RSS.json(folder, "discovery")["added"] >= 3
        assert RSS.json(folder, "poll")["new_articles"] >= 30
        assert RSS.json(folder, "work", "--worker-id", "w1")["stored"] >= 20
        # One feed lists more articles than one poll takes; the next poll takes the rest.
        RSS.text(folder, "poll")
        RSS.text(folder, "work", "--worker-id", "w1", "--max", "50")
        yield folder


def test_a_second_poll_and_work_find_nothing(root: Path) -> None:
    poll = RSS.json(root, "poll")
    assert poll["new_articles"] == 0
    assert set(poll["outcomes"]) <= {"not_modified", "same_body", "read"}
    assert RSS.json(root, "work", "--worker-id", "w2")["claimed"] == 0


def test_status_is_told_to_people_and_to_programs(root: Path) -> None:
    status = RSS.json(root, "status")
    assert status["articles"]["stored"] >= 20
    assert "pending" not in status["articles"]
    text = RSS.text(root, "status")
    assert f"stored {status['articles']['stored']}" in text


def test_export_selects_and_orders(root: Path) -> None:
    everything = RSS.json(root, "export")
    chosen = RSS.json(
        root, "export", "--category", "politics", "--lang", "en", "--order", "sources"
    )
    assert chosen and len(chosen) < len(everything)
    assert {row["category_guess"] for row in chosen} == {"politics"}
    counts = [row["popularity"] for row in chosen]
    assert counts == sorted(counts, reverse=True)
    assert RSS.json(root, "export", "--since", "2099-01-01") == []
    lines = RSS.text(root, "export", "--limit", "2").splitlines()
    assert [json.loads(line)["row_id"] for line in lines] == [r["row_id"] for r in everything[:2]]


def test_export_gives_deltas_daily_files_and_opml(root: Path) -> None:
    first = RSS.json(root, "export", "--delta", "0", "--limit", "5")
    rest = RSS.json(root, "export", "--delta", str(first["cursor"]))
    assert len(first["articles"]) + len(rest["articles"]) >= 20
    assert RSS.json(root, "export", "--delta", str(rest["cursor"]))["articles"] == []
    assert RSS.json(root, "export", "--daily")["days"] == ["2025-11-03"]
    assert RSS.json(root, "export", "--daily")["days"] == []
    opml = RSS.text(root, "export", "--opml")
    assert list(opml_feeds(opml.encode())) == RSS.json(root, "export", "--opml")


def test_a_named_feed_that_is_refused_fails_with_its_reason(root: Path) -> None:
    result = RSS.run(root, "discovery", "--feed", "https://nowhere.example/rss")
    assert (result.exit_code, "unreachable" in result.stdout) == (1, True)
