"""A year without a person: what the simulation must hold, in three days and at full length."""

import json
import os
from pathlib import Path

import dagster as dg
import pytest

from news_platform.cluster.launcher import HEAVY_ASSETS, LiveCeleryRunLauncher
from news_platform.cluster.queues import HEAVY, LIGHT
from news_platform.defs.runs import run_assets
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.objects.store import open_store
from news_platform_tests.year.figures import ASSETS
from news_platform_tests.year.running import THREE_DAYS, YEAR, Simulation, simulate

PROJECT = Path(__file__).parents[2]
NIGHTLY = ("maintain_crawl", "check_newest_data")


def judge(year: Simulation, *, most_runs: float) -> None:
    """Compare all figures with what must hold; `most_runs` is per run that is needed."""
    figures, plan = year.figures, year.place.plan
    assert figures["different"] == [], "every dataset equals an undisturbed build"
    assert not any(figures["stale"].values()), "nothing was given up"
    assert figures["unexplained"] == [], "the log of ticks explains every run"
    assert figures["broken_ticks"] == []
    assert figures["run_ratio"] <= most_runs, (figures["runs"], figures["ideal"])
    assert figures["byte_ratio"] <= 1.5
    assert figures["longest_wait"] <= 2 * 3600, figures["waits"]
    assert figures["failed"] >= len(plan.kills), "there was trouble"
    assert figures["kills"] == len(plan.kills)
    _judge_alerts(figures["alerts"])
    assert plan.broken is not None
    markers = read_collected(open_store(str(year.place.root)), [plan.broken.day])
    truncated = {one.warc for one in markers if one.truncated_at is not None}
    assert truncated == {plan.broken.name}, "what can be read of the broken WARC is published"


def _judge_alerts(alerts: list[str]) -> None:
    """An outage of the crawl or the store is told when it begins and when it heals."""
    begun = [text for text in alerts if "cannot read what is stale" in text]
    healed = [text for text in alerts if "healed: nothing fails with reading its inputs" in text]
    assert len(begun) == len(healed) >= 2, alerts


@pytest.fixture(scope="module")
def three_days(tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    return simulate(tmp_path_factory.mktemp("three_days"), THREE_DAYS)


def test_three_days_of_trouble_end_as_if_there_had_been_none(three_days: Simulation) -> None:
    judge(three_days, most_runs=1.5)


def test_runs_of_sensors_go_to_the_queues_of_their_assets(three_days: Simulation) -> None:
    """The Celery launcher of a cluster chooses by the assets that a run names."""
    launcher = LiveCeleryRunLauncher(broker="redis://127.0.0.1:1")
    with dg.DagsterInstance.from_config(str(three_days.place.home)) as instance:
        made = [run for run in instance.get_runs() if "dagster/sensor_name" in run.tags]
    queues = {
        (asset, launcher.queue_of(run)) for run in made for asset in run_assets(run) & set(ASSETS)
    }
    assert queues == {(asset, HEAVY if asset in HEAVY_ASSETS else LIGHT) for asset in ASSETS}


def test_alerts_about_runs_of_sensors_name_their_assets(three_days: Simulation) -> None:
    told = [json.loads(line) for line in three_days.place.alerts.read_text().splitlines()]
    about_runs = [one for one in told if one["run_id"]]
    assert about_runs
    for one in about_runs:
        assert one["assets"] or one["job"] in NIGHTLY, one
        assert one["partition"] or "raw_news" not in one["assets"], one


@pytest.mark.soak
def test_a_year_of_trouble_ends_as_if_there_had_been_none(tmp_path: Path) -> None:
    """At most about an hour on an idle machine; SIMULATED_YEAR names a folder to go on in."""
    folder = Path(os.environ.get("SIMULATED_YEAR", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    judge(simulate(folder, YEAR), most_runs=1.3)
