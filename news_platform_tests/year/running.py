"""Run simulations in a process of their own: three days, a month for the benchmark, and a year."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from news_platform_tests.year.daemon import write_home
from news_platform_tests.year.plan import Trouble, YearOptions
from news_platform_tests.year.simulated import Place

THREE_DAYS = YearOptions(
    days=3,
    warcs=8,
    backfill_days=1,
    backfill_on=1,
    backfill_warcs=2,
    late_hours=8,
    step_minutes=120,
    trouble=Trouble(
        outages=(("crawl", 28, 5), ("root", 56, 1)),
        kill_days=(1,),
        republished_days=(0,),
        republished_after=1.5,
        broken_day=1,
    ),
)
YEAR = YearOptions(
    days=365,
    backfill_days=90,
    backfill_on=40,
    trouble=Trouble(
        outages=(("crawl", 20 * 24 + 7, 8), ("crawl", 150 * 24, 72), ("root", 200 * 24 + 3, 1)),
        kill_days=tuple(range(3, 365, 7)),
        republished_days=(60, 240),
        broken_day=100,
    ),
)
# Realistic arrivals without trouble, and sensors that tick often enough to measure an hour.
CALM_MONTH = YearOptions(
    days=30, backfill_days=0, step_minutes=30, trouble=Trouble(failing_share=0.0)
)


@dataclass(frozen=True)
class Simulation:
    """A finished simulation: its place and its figures."""

    place: Place
    figures: Mapping[str, Any]


def simulate(folder: Path, options: YearOptions) -> Simulation:
    """Run a simulation to its end, from where it was if it was begun before."""
    place = Place(folder)
    if not place.home.exists():
        place.write_options(options)
        write_home(place)
    environ = {name: text for name, text in os.environ.items() if name != "DAGSTER_HOME"}
    command = [sys.executable, "-m", "news_platform_tests.year", str(folder)]
    with (folder / "log").open("ab") as log:
        done = subprocess.run(
            command, env=environ, cwd=Path(__file__).parents[2], stdout=log, stderr=log, check=False
        )
    assert done.returncode == 0, (folder / "log").read_text(errors="replace")[-3000:]
    return Simulation(place, json.loads((folder / "figures.json").read_text()))
