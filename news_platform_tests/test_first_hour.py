"""What a new user meets: a root that downloads nothing unasked, and a Dagster home of its own."""

import json
from pathlib import Path

import pytest

from news_platform.cli.main import main
from news_platform.composition.home import find_home, make_home
from news_platform.errors import ConfigError
from news_platform.settings import Settings


def _say(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    main([*words, "--json"], standalone_mode=False)
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_a_new_root_is_paused_and_says_what_resuming_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    root = ("--root", str(tmp_path / "new"))
    main(["rss", "ensure", *root], standalone_mode=False)
    capsys.readouterr()
    status = _say(capsys, "status", *root)
    assert status["paused"] is True
    assert "news-platform resume" in str(status["pause"])
    assert "18 WARCs, 19.3 GB to read" in str(status["pause"])
    assert _say(capsys, "resume", *root)["paused"] is False
    assert _say(capsys, "status", *root)["pause"] == ""


@pytest.mark.parametrize("first", ["pause", "resume"])
def test_pause_and_resume_work_on_a_root_that_does_not_exist_yet(
    first: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ("--root", str(tmp_path / "new"))
    assert _say(capsys, first, *root)["paused"] is (first == "pause")
    assert _say(capsys, "status", *root)["paused"] is (first == "pause")


def test_a_local_root_has_a_home_of_its_own_unless_one_is_set(tmp_path: Path) -> None:
    local = Settings(root=str(tmp_path / "root"))
    assert find_home(local) is None
    home = make_home(local)
    assert find_home(local) == home == tmp_path / "root/.dagster"
    assert "run_retries" in (home / "dagster.yaml").read_text()
    given = local.model_copy(update={"dagster_home": str(tmp_path)})
    assert find_home(given) == make_home(given) == tmp_path
    for wrong in ({"root": "s3://bucket/root"}, {"dagster_home": str(tmp_path / "none")}):
        with pytest.raises(ConfigError, match="DAGSTER_HOME"):
            make_home(local.model_copy(update=wrong))


def test_the_home_under_a_root_is_no_trace_of_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its events name domains in previews; the verification of a takedown must not fail on them."""
    root = ("--root", str(tmp_path / "root"))
    main(["pause", *root], standalone_mode=False)
    words = ["takedown", "add", "--domain", "taken.example", "--reason", "a request"]
    main([*words, *root], standalone_mode=False)
    home = make_home(Settings(root=str(tmp_path / "root")))
    (home / "events.txt").write_text("| taken.example | 3 |")
    capsys.readouterr()
    assert _say(capsys, "takedown", "verify", *root)["findings"] == []
