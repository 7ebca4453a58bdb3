"""The plan of resurveys: when a domain is due, who comes first, and what a wrong clock may do."""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from news_platform.datasets.research_datasets import DomainQueueMessage, PartitionInfo
from news_platform.domain_metadata.pipeline import queue_batch
from news_platform.domain_metadata.queue import DomainQueue, SettledClaim, earlier_batches
from news_platform.domain_metadata.raw_files import batch_files, import_file
from news_platform.domain_metadata.resurvey import (
    CLOCK_PATH,
    DueDomain,
    LastSurvey,
    ResurveyOptions,
    ResurveyPlan,
    due_times,
    fair_share,
    last_surveys,
    plan_resurvey,
    write_plan,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_metadata.test_pipeline import research

START = datetime(2025, 11, 3, 12, tzinfo=UTC)
DAY = timedelta(days=1)
WEEKLY = ResurveyOptions(interval_days=7, changed_days=2, per_day=100)


class Survey:
    """A root whose domains are surveyed in memory: whatever is queued gets an outcome at once."""

    def __init__(self, store: ObjectStore, queue: DomainQueue) -> None:
        self.store, self.queue = store, queue
        self.surveyed: list[tuple[datetime, str]] = []  # by the true time

    def add(self, country: str, *domains: str, now: datetime) -> None:
        batch = PartitionInfo.of(country, "media", now.date())
        import_file(self.store, batch, name="x", body=research(*domains))
        self.run(now=now, true=now)

    def plan(self, now: datetime, options: ResurveyOptions = WEEKLY) -> ResurveyPlan:
        return plan_resurvey(store=self.store, queue=self.queue, now=now, options=options)

    def tick(self, now: datetime, *, true: datetime | None = None) -> list[str]:
        """Plan, write and survey; return the domains that were surveyed."""
        write_plan(self.plan(now), store=self.store, queue=self.queue)
        return self.run(now=now, true=true or now)

    def run(self, *, now: datetime, true: datetime) -> list[str]:
        accepted = self.queue.accepted_paths()
        for key, infos in batch_files(self.store).items():
            if any(info.path not in accepted for info in infos):
                queue_batch(PartitionInfo.parse(key), store=self.store, queue=self.queue, now=now)
        found = sorted(self._settled(now.timestamp()))
        self.surveyed += [(true, domain) for domain in found]
        return found

    def _settled(self, now: float) -> Iterator[str]:
        for key in self.queue.states():
            claims = self.queue.claim(key, worker="w", limit=999, now=now, lease_seconds=60)
            self.queue.settle([SettledClaim(one, "ok", final=True) for one in claims], at=now)
            yield from (one.message.registrable_domain for one in claims)


@pytest.fixture
def survey(local_store: ObjectStore, queue: DomainQueue) -> Survey:
    return Survey(local_store, queue)


def last(domain: str, at: float, country: str = "de", day: str = "2025-11-01") -> LastSurvey:
    return LastSurvey(1, domain, f"{country}|media|{day}", at, is_open=False)


def test_a_domain_is_due_after_the_interval_and_sooner_after_a_change() -> None:
    known = [last("same.example", 0.0), last("changed.example", 0.0)]
    found = due_times(
        known,
        changed=frozenset({("changed.example", "2025-11-01"), ("same.example", "2025-10-01")}),
        offered=frozenset(),
        jumps=(),
        options=WEEKLY,
    )
    days = {one.last.domain: (one.due_at or 0.0) / 86_400 for one in found}
    assert days == {"same.example": 7, "changed.example": 2}


def test_countries_take_turns_and_the_longest_overdue_comes_first() -> None:
    ages = {"de": (1, 2, 3, 4), "fr": (9,), "gb": (5, 6)}
    due = [
        DueDomain(last(f"{country}{age}.example", 0.0, country), -float(age))
        for country, days in ages.items()
        for age in days
    ]
    chosen = [one.last.domain.partition(".")[0] for one in fair_share(due, limit=5)]
    assert chosen == ["de4", "fr9", "gb6", "de3", "gb5"]
    assert len(fair_share(due, limit=99)) == 7 and fair_share(due, limit=0) == []


def test_nothing_is_due_before_its_time_and_everything_after(survey: Survey) -> None:
    survey.add("de", "a.example", "b.example", now=START)
    assert survey.tick(START + 7 * DAY - timedelta(seconds=1)) == []
    assert survey.tick(START + 7 * DAY) == ["a.example", "b.example"]
    assert survey.tick(START + 7 * DAY) == [] == survey.tick(START + 13 * DAY)
    assert len(survey.tick(START + 14 * DAY)) == 2


def test_the_budget_of_a_day_holds_over_several_plans(survey: Survey) -> None:
    names = [f"s{number}.example" for number in range(9)]
    survey.add("de", *names[:8], now=START)
    survey.add("fr", names[8], now=START)
    options = ResurveyOptions(per_day=4)
    later = START + 10 * DAY
    first = survey.plan(later, options)
    assert first.by_country == {"de": 3, "fr": 1} and (first.due, first.domains) == (9, 9)
    write_plan(first, store=survey.store, queue=survey.queue)
    survey.run(now=later, true=later)
    assert survey.plan(later, options).chosen == ()
    assert len(survey.plan(later + DAY, options).chosen) == 4


def test_a_plan_that_was_killed_is_not_made_twice(survey: Survey) -> None:
    survey.add("de", "a.example", now=START)
    later = START + 8 * DAY
    write_plan(survey.plan(later), store=survey.store, queue=survey.queue)
    # Killed before the file is queued, found by a plan of the same and of the next day.
    for now in (later, later + DAY):
        assert survey.plan(now).chosen == ()
    assert survey.run(now=later + DAY, true=later + DAY) == ["a.example"]
    assert survey.plan(later + 2 * DAY).chosen == ()


def test_a_file_that_is_never_accepted_does_not_hold_its_domains_for_ever(survey: Survey) -> None:
    survey.add("de", "a.example", now=START)
    later = START + 8 * DAY
    write_plan(survey.plan(later), store=survey.store, queue=survey.queue)
    assert [one.domain for one in survey.plan(later + 10 * DAY).chosen] == ["a.example"]


def test_a_domain_that_waits_in_the_queue_is_not_planned_and_is_late_after_a_while(
    survey: Survey,
) -> None:
    batch = PartitionInfo.of("de", "media", START.date())
    import_file(survey.store, batch, name="x", body=research("a.example"))
    queue_batch(batch, store=survey.store, queue=survey.queue, now=START)
    plan = survey.plan(START + 30 * DAY)
    assert (plan.due, plan.chosen, plan.late, plan.share_in_time) == (0, (), 1, 0.0)


def test_a_clock_that_was_ahead_delays_nobody_for_longer_than_the_interval(
    survey: Survey,
) -> None:
    survey.add("de", "a.example", now=START)
    ahead = START + 400 * DAY
    assert survey.tick(ahead, true=START + DAY) == ["a.example"]
    noticed = START + 2 * DAY
    assert survey.tick(noticed) == [] == survey.tick(noticed + 6 * DAY)
    assert survey.store.exists(CLOCK_PATH)
    assert survey.tick(noticed + 7 * DAY) == ["a.example"]
    # The survey in the future is now an old one, and the domain is back in its rhythm.
    assert survey.tick(noticed + 13 * DAY) == []
    assert survey.tick(noticed + 14 * DAY) == ["a.example"]
    assert not survey.store.exists(CLOCK_PATH)


def test_a_clock_that_was_behind_makes_nobody_due_twice(survey: Survey) -> None:
    survey.add("de", "a.example", now=START)
    behind = START - 300 * DAY
    survey.add("de", "b.example", now=behind)
    assert survey.tick(behind) == [] == survey.tick(behind + DAY, true=START + DAY)
    # Right again: what was queued meanwhile counts as being as old as what came before it.
    assert survey.tick(START + 2 * DAY) == []
    assert survey.tick(START + 7 * DAY) == ["a.example", "b.example"]


def test_whatever_is_killed_and_however_the_clock_jumps_nobody_is_asked_twice_or_forgotten(
    survey: Survey,
) -> None:
    dice = random.Random(22)
    names = [f"s{number}.example" for number in range(12)]
    survey.add("de", *names[:7], now=START)
    survey.add("fr", *names[7:], now=START)
    true, offset = START, timedelta()
    for _ in range(120):
        true += timedelta(hours=6)
        if dice.random() < 0.1:
            # Only backwards and back: a jump ahead makes domains due, which nothing here can know.
            offset = dice.choice([timedelta(), -40 * DAY, -3 * DAY])
        plan = survey.plan(true + offset)
        if dice.random() < 0.3:
            continue  # killed before anything was written
        write_plan(plan, store=survey.store, queue=survey.queue)
        if dice.random() < 0.3:
            continue  # killed before it was queued
        survey.run(now=true + offset, true=true)
    times: dict[str, list[datetime]] = {name: [] for name in names}
    for at, domain in survey.surveyed:
        times[domain].append(at)
    gaps = [b - a for found in times.values() for a, b in pairwise(found)]
    assert min(gaps) >= 7 * DAY - timedelta(hours=1)
    # A jump restarts the interval, and a plan may be killed several times in a row.
    assert Counter(map(len, times.values())).keys() <= {2, 3, 4, 5} and max(gaps) <= 24 * DAY


def test_both_kinds_of_ledger_agree_about_times(
    any_queue: DomainQueue, local_store: ObjectStore
) -> None:
    survey = Survey(local_store, any_queue)
    survey.add("de", "a.example", "b.example", now=START)
    survey.tick(START + 8 * DAY)
    found = last_surveys(any_queue.engine, now=(START + 8 * DAY).timestamp())
    assert [(one.domain, one.batch, one.at, one.is_open) for one in found] == [
        (name, "de|media|2025-11-11", (START + 8 * DAY).timestamp(), False)
        for name in ("a.example", "b.example")
    ]
    assert earlier_batches(any_queue.engine, "de|media|2025-11-11") == {
        name: ["de|media|2025-11-03"] for name in ("a.example", "b.example")
    }
    message = any_queue.messages_by_id([found[0].message_id])[0]
    assert isinstance(message, DomainQueueMessage) and message.registrable_domain == "a.example"
