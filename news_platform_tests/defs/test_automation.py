"""Sensors and schedules start by themselves, and nothing is left undescribed."""

import re

import dagster as dg
import pytest

from news_platform.definitions import build_definitions
from news_platform.resources import Resources
from news_platform.settings import Settings

REPOSITORY = build_definitions(Resources(Settings(root="no-such-root"))).get_repository_def()
AUTOMATA: dict[str, dg.SensorDefinition | dg.ScheduleDefinition] = {
    **{one.name: one for one in REPOSITORY.sensor_defs},
    **{one.name: one for one in REPOSITORY.schedule_defs},
}
RUNNING = (dg.DefaultSensorStatus.RUNNING, dg.DefaultScheduleStatus.RUNNING)


def test_every_sensor_and_schedule_starts_by_itself() -> None:
    # A new root is paused instead, so that one command starts all of them.
    assert [name for name, one in AUTOMATA.items() if one.default_status not in RUNNING] == []


@pytest.mark.parametrize("name", sorted(AUTOMATA))
def test_a_sensor_or_schedule_says_in_a_sentence_what_it_does(name: str) -> None:
    assert re.match(r"[A-Z].{20,}\.$", (AUTOMATA[name].description or "").strip(), re.DOTALL)


def test_every_job_that_people_see_says_what_it_is_for() -> None:
    shown = [job for job in REPOSITORY.get_all_jobs() if not job.name.startswith("__")]
    assert len(shown) > 5
    assert [job.name for job in shown if not job.description] == []
