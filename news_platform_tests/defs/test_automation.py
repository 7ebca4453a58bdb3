"""What starts by itself is what the README says, and nothing is left undescribed."""

import re
from pathlib import Path

import dagster as dg
import pytest

from news_platform.definitions import build_definitions
from news_platform.resources import Resources
from news_platform.settings import Settings

README = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
REPOSITORY = build_definitions(Resources(Settings(root="no-such-root"))).get_repository_def()
AUTOMATA: dict[str, dg.SensorDefinition | dg.ScheduleDefinition] = {
    **{one.name: one for one in REPOSITORY.sensor_defs},
    **{one.name: one for one in REPOSITORY.schedule_defs},
}
RUNNING = (dg.DefaultSensorStatus.RUNNING, dg.DefaultScheduleStatus.RUNNING)


def _stated() -> dict[str, str]:
    """Return each name of the README's table with how it says that it starts."""
    table = README.partition("| sensor or schedule |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {name: starts for first, _, starts in rows for name in re.findall(r"`(\w+)`", first)}


def test_the_readme_states_how_every_sensor_and_schedule_starts() -> None:
    actual = {
        name: "running" if one.default_status in RUNNING else "stopped"
        for name, one in AUTOMATA.items()
    }
    assert _stated() == actual


@pytest.mark.parametrize("name", sorted(AUTOMATA))
def test_a_sensor_or_schedule_says_in_a_sentence_what_it_does(name: str) -> None:
    assert re.match(r"[A-Z].{20,}\.$", (AUTOMATA[name].description or "").strip(), re.DOTALL)


def test_every_job_that_people_see_says_what_it_is_for() -> None:
    shown = [job for job in REPOSITORY.get_all_jobs() if not job.name.startswith("__")]
    assert len(shown) > 5
    assert [job.name for job in shown if not job.description] == []
