"""`news-platform status` and `retry` over a root and the cursors of real sensors."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from news_platform.cli.main import main
from news_platform.definitions import build_definitions
from news_platform.defs.retry_requests import read_retry_requests
from news_platform.defs.runs import FAILURE_TAG, PERMANENT_TAG
from news_platform.defs.services.automation import read_automation_facts
from news_platform.errors import ConfigError, InputError
from news_platform.resources import open_resources
from news_platform.settings import load_settings
from news_platform.storage.commit.collected import write_collected
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.collected import MARKER
from news_platform_tests.defs.over import resumed

DAY = MARKER.day


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """Return a root with one collected day, a crawl without listings, and a Dagster home."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "crawl").mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("NEWS_PLATFORM_CRAWL_URL", str(tmp_path / "crawl"))
    store = open_store(str(tmp_path / "root"))
    monkeypatch.setenv("NEWS_PLATFORM_ROOT", store.url)
    resumed(store.url)
    write_collected(store, MARKER)
    yield store


def _status(root: ObjectStore, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    main(["status", "--root", root.url, "--json"], standalone_mode=False)
    document = json.loads(capsys.readouterr().out)
    return {one["asset"]: one for one in document["assets"]}


@pytest.mark.parametrize("body", [b'{"commitInfo": {"timesta', None], ids=["damaged", "gone"])
def test_status_names_a_damaged_log_of_a_table_and_its_cure(
    root: ObjectStore, capsys: pytest.CaptureFixture[str], body: bytes | None
) -> None:
    write_marker(root, "crawl_articles", str(DAY), inputs="pages", report={})
    if body is not None:
        root.put("crawl_articles/_delta_log/00000000000000000000.json", body)
    found = _status(root, capsys)
    text = str(found["crawl_articles"]["text"])
    assert text.startswith("unknown: ") and "markers/crawl_articles" in text
    assert found["feed_articles"]["text"] == "nothing is stale"


@pytest.mark.parametrize("name", ["missing", "home"])
def test_status_says_why_runs_are_not_known(
    root: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    home = tmp_path / name
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    # Permissions do not stop root.
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != home)
    main(["status", "--root", root.url], standalone_mode=False)
    text = capsys.readouterr().out
    assert ("there is no Dagster home: runs" in text) is (name == "missing")
    assert (f"{str(home)!r} cannot be read" in text) is (name == "home")


def test_status_shows_every_asset_with_its_state(
    root: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _status(root, capsys)
    assert {"raw_news", "domain_buckets", "articles", "source_records"} <= found.keys()
    assert found["domain_buckets"]["behind"] == 1
    assert found["domain_buckets"]["text"] == "1 stale: 1 behind"
    # The WARC was collected with other options than the settings name.
    assert found["raw_news"]["text"] == "nothing is stale; 1 outdated"
    assert found["raw_news"]["outdated"] == 1
    main(["status", "--root", root.url], standalone_mode=False)
    assert "domain_buckets         1 stale: 1 behind\n" in capsys.readouterr().out


def test_a_retry_is_requested_in_the_root(
    root: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["retry", "domain_buckets", DAY.isoformat(), "--root", root.url], standalone_mode=False)
    assert "follow_domain_buckets starts it at its next tick" in capsys.readouterr().out
    assert list(read_retry_requests(root, "domain_buckets")) == [DAY.isoformat()]


def test_a_retry_of_what_is_not_stale_or_not_followed_is_refused(root: ObjectStore) -> None:
    with pytest.raises(InputError, match="nothing to retry: domain_buckets 2020-01-01"):
        main(["retry", "domain_buckets", "2020-01-01", "--root", root.url], standalone_mode=False)
    with pytest.raises(ConfigError, match="no sensor follows 'nonsense': expected one of"):
        main(["retry", "nonsense", "--root", root.url], standalone_mode=False)
    assert not list(root.list("automation"))


def test_a_stop_is_shown_with_its_reason_as_its_run_says(
    root: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    # The daemon runs elsewhere: its home, log, addresses and workers are not those of the command.
    daemon = {"NEWS_PLATFORM_LOG_FORMAT": "json", "NEWS_PLATFORM_WORKERS": "7"}
    crawl = {"NEWS_PLATFORM_CRAWL_URL": os.environ["NEWS_PLATFORM_CRAWL_URL"]}
    resources = open_resources(load_settings({**crawl, **daemon, "NEWS_PLATFORM_ROOT": root.url}))
    repository = build_definitions(resources).get_repository_def()
    sensor = repository.get_sensor_def("follow_domain_buckets")
    with dg.DagsterInstance.get() as instance:
        context = dg.build_sensor_context(instance=instance, resources={"platform": resources})
        tick = sensor(context)
        assert isinstance(tick, dg.SensorResult)
        (request,) = tick.run_requests or ()
        assert request.partition_key == DAY.isoformat()
        assert [key.to_user_string() for key in request.asset_selection or ()] == ["domain_buckets"]
        create_run_for_test(
            instance,
            status=dg.DagsterRunStatus.FAILURE,
            tags={
                **request.tags,
                FAILURE_TAG: "InputError: not a page",
                PERMANENT_TAG: "domain_buckets",
            },
        )
    found = _status(root, capsys)["domain_buckets"]
    assert found["text"] == f"1 stale: 1 stopped ({DAY}): InputError: not a page"
    assert found["stopped"] == 1
    facts = read_automation_facts(open_resources(load_settings(dict(os.environ))))
    (stopped,) = [one.stopped for one in facts.stale if one.asset == "domain_buckets"]
    assert stopped == ((DAY.isoformat(), "InputError: not a page"),)
