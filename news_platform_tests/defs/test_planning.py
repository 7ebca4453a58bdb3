"""The plan of a tick: what is requested, what waits and why, and what is tried again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from news_platform.defs.planning import (
    EVERY,
    Hold,
    Limits,
    Plan,
    State,
    TickInput,
    plan_requests,
)
from news_platform.defs.sensor_state import (
    CANCELED,
    DAY,
    HOUR,
    MINUTE,
    Attempt,
    RunError,
    SensorState,
    dump_state,
    load_state,
    with_unreadable_inputs,
)
from news_platform.defs.sensors import run_priority

BROKEN = RunError("FetchError", "no route to host")
INVALID = RunError("InputError", "not a WARC", is_final=True)
RANGES = tuple(f"{number:04}" for number in range(63))


@dataclass
class Bench:
    """A sensor's surroundings: its runs, how they ended, and its cursor."""

    limits: Limits = field(default_factory=lambda: Limits(runs=3))
    state: SensorState = field(default_factory=SensorState)
    running: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, Attempt] = field(default_factory=dict)
    mended: dict[str, float] = field(default_factory=dict)
    order: Sequence[str] = ()
    now: float = 0.0
    plan: Plan = field(init=False)

    def tick(self, stale: Mapping[str, str], *, now: float = 0.0, **seen: object) -> list[str]:
        """Plan once, through the cursor's text as Dagster does; start what is requested."""
        self.now = now
        tick = TickInput(
            "toy",
            stale,
            now,
            attempts=dict(self.attempts),
            mended=dict(self.mended),
            running=dict(self.running),
            own=len(set(self.running.values())),
            order=self.order or sorted(stale),
        )
        tick = replace(tick, **seen)  # type: ignore[arg-type] # any field
        self.plan = plan_requests(tick, load_state(dump_state(self.state)), self.limits)
        self.state = self.plan.state
        for one in self.plan.requests:
            attempt = Attempt(
                one.run_key,
                one.inputs,
                now,
                number=one.number,
                previous=one.previous,
                settings=tick.settings,
            )
            self.attempts |= dict.fromkeys(one.inputs, attempt)
            self.running |= dict.fromkeys(one.partitions, one.run_key)
        return [",".join(request.partitions) for request in self.plan.requests]

    def end(self, key: str, error: RunError | None = None) -> None:
        """Let the run that builds a partition end, at the time of the last tick."""
        ended = replace(self.attempts[key], ended_at=self.now, error=error)
        self.attempts |= dict.fromkeys(ended.inputs, ended)
        for one in ended.inputs:
            del self.running[one]
        if error is None and ended.previous:
            self.mended[ended.previous] = self.now

    def states(self) -> dict[str, State]:
        return {key: one.state for key, one in self.plan.partitions.items()}


def test_nothing_stale_requests_nothing_and_leaves_nothing_in_the_cursor() -> None:
    bench = Bench()
    bench.tick({"d": "a"}, now=1.0)
    assert bench.state.stale_since == {"d": 1.0}
    bench.end("d")
    assert bench.tick({}, now=2.0) == []
    assert bench.state == SensorState()
    assert bench.plan.text() == "nothing is stale"


def test_inputs_that_change_right_after_the_request_are_requested_after_its_run() -> None:
    bench = Bench()
    bench.tick({"d": "a"})
    assert bench.tick({"d": "b"}) == [], "not beside the run that still goes on"
    bench.end("d")
    assert bench.tick({"d": "b"}) == ["d"]


def test_no_two_requests_share_a_run_key() -> None:
    bench, names = Bench(), set()
    for day in range(5):
        assert bench.tick({"d": "ab"[day % 2]}, now=DAY * day) == ["d"]
        names |= {request.run_key for request in bench.plan.requests}
        bench.end("d", BROKEN)
    assert len(names) == 5, "also where old inputs come back"


def test_a_partition_that_a_backfill_builds_is_left_alone() -> None:
    bench = Bench(running={"x": "run of a backfill"})
    assert bench.tick({"x": "a", "y": "a"}, own=0) == ["y"]


JUNE = datetime(2025, 6, 10, 12, tzinfo=UTC).timestamp()


def test_a_new_day_does_not_wait_for_the_history_that_a_backfill_made_stale() -> None:
    history = {f"2025-01-{day:02}": "a" for day in range(1, 20)}
    bench = Bench(Limits(runs=2))
    assert len(bench.tick(history, now=JUNE)) == 2
    assert bench.tick(history | {"2025-06-09": "a"}, now=JUNE + MINUTE) == ["2025-06-09"]
    assert bench.tick(history | {"2025-06-09": "a"}, now=JUNE + HOUR) == []
    new = dict.fromkeys(("2025-06-07", "2025-06-08", "2025-06-09", "2025-06-02"), "a")
    assert bench.tick(history | new, now=JUNE + HOUR) == ["2025-06-08"], "a few, not any number"


@pytest.mark.parametrize(
    ("key", "priority"),
    [("2025-06-10", "2"), ("2025-06-03", "2"), ("2025-06-02", ""), ("0000", "1"), ("all", "1")],
)
def test_runs_of_new_days_stand_before_those_of_all_days_and_these_before_history(
    key: str, priority: str | None
) -> None:
    assert run_priority(key, JUNE) == priority


def test_a_request_whose_run_was_deleted_is_made_again() -> None:
    bench = Bench()
    bench.tick({"d": "a"})
    bench.running.clear()
    bench.attempts.clear()
    assert bench.tick({"d": "a"}, now=1.0) == ["d"]


def test_a_transient_failure_is_retried_quickly_then_hourly_then_daily_without_end() -> None:
    bench, times, now = Bench(), [], 0.0
    while now < 5 * DAY:
        if bench.tick({"d": "a"}, now=now):
            times.append(now)
            bench.end("d", BROKEN)
        now += MINUTE
    gaps = [round((after - before) / MINUTE) for before, after in pairwise(times)]
    assert gaps[:3] == [1, 5, 15]
    assert set(gaps[3:27]) == {60} and set(gaps[27:]) == {24 * 60}
    assert len(gaps) >= 29
    assert bench.plan.text().startswith("1 stale: 1 retries at ")
    assert "FetchError: no route to host" in bench.plan.text()


def test_a_permanent_failure_stops_until_the_inputs_change() -> None:
    bench = Bench()
    bench.tick({"d": "a"})
    bench.end("d", INVALID)
    for day in range(1, 50):
        assert bench.tick({"d": "a"}, now=DAY * day) == []
    assert bench.plan.text() == "1 stale: 1 stopped (d): InputError: not a WARC"
    assert bench.tick({"d": "b"}, now=51 * DAY) == ["d"]


def test_changed_settings_lift_a_stop() -> None:
    bench = Bench()
    bench.tick({"d": "a"}, settings="old")
    bench.end("d", RunError("ConfigError", "no key", is_final=True))
    assert bench.tick({"d": "a"}, now=DAY, settings="old") == []
    assert bench.tick({"d": "a"}, now=DAY, settings="new") == ["d"]


@pytest.mark.parametrize("retry_requests", [{"d": 90.0}, {EVERY: 90.0}], ids=["partition", "asset"])
def test_an_operator_lifts_a_stop_once(retry_requests: Mapping[str, float]) -> None:
    bench = Bench()
    bench.tick({"d": "a"}, now=1.0)
    bench.end("d", INVALID)
    assert bench.tick({"d": "a"}, now=60.0) == []
    assert bench.tick({"d": "a"}, now=100.0, retry_requests=retry_requests) == ["d"]
    bench.end("d", INVALID)
    assert bench.tick({"d": "a"}, now=200.0, retry_requests=retry_requests) == []
    assert bench.states() == {"d": State.STOPPED}


def test_new_inputs_of_what_failed_for_days_are_tried_within_an_hour() -> None:
    bench, now = Bench(), 0.0
    for _ in range(30):
        assert bench.tick({"d": "a"}, now=now) == ["d"]
        bench.end("d", BROKEN)
        now += DAY
    assert bench.tick({"d": "a"}, now=now - HOUR) == []
    assert bench.tick({"d": "b"}, now=now - HOUR) == ["d"]


def test_a_failed_run_from_before_the_partition_became_stale_does_not_count() -> None:
    bench = Bench()
    bench.tick({"d": "a"})
    bench.end("d", INVALID)
    bench.tick({}, now=HOUR)
    assert bench.tick({"d": "a"}, now=DAY) == ["d"], "somebody built it in between"


def test_when_one_of_several_failing_partitions_is_built_the_others_are_tried_at_once() -> None:
    bench = Bench()
    stale = {"a": "1", "b": "1"}
    bench.tick(stale)
    for key in stale:
        bench.end(key, BROKEN)
    assert bench.tick(stale, now=MINUTE) == ["b", "a"]
    bench.end("b", BROKEN)
    bench.now += 1.0
    bench.end("a")
    assert bench.tick({"b": "1"}, now=MINUTE + 2) == ["b"]


LOST = RunError("WorkerLost", "the run ended without an error of its own")


def _reported(bench: Bench) -> list[str]:
    begun = [f"begun {failure.error.kind}" for failure in bench.plan.begun.values()]
    return [*begun, *(f"healed {kind}" for kind in bench.plan.healed)]


@pytest.mark.parametrize(
    ("errors", "is_built", "reported"),
    [
        ([BROKEN], True, ["begun FetchError", "healed FetchError"]),
        ([BROKEN, BROKEN], True, ["begun FetchError", "healed FetchError"]),
        (
            [LOST, BROKEN],
            True,
            ["begun WorkerLost", "begun FetchError", "healed WorkerLost", "healed FetchError"],
        ),
        ([None, None], False, ["begun StillStale"]),
        ([CANCELED], True, []),
        # `alert_on_run_failure` reports that it has begun.
        ([INVALID], True, ["healed InputError"]),
    ],
    ids=["once", "again", "another kind at the second attempt", "in vain", "canceled", "stopped"],
)
def test_what_heals_was_reported_when_it_began(
    errors: list[RunError | None], is_built: bool, reported: list[str]
) -> None:
    bench, found = Bench(), []
    for number, error in enumerate(errors):
        assert bench.tick({"a": "1"}, now=number * DAY) == ["a"]
        found += _reported(bench)
        bench.end("a", error)
        bench.tick({"a": "1"}, now=number * DAY + 1)
        found += _reported(bench)
    if is_built:
        bench.tick({}, now=len(errors) * DAY)
    assert found + _reported(bench) * is_built == reported


def test_an_outage_is_reported_once_for_all_its_partitions() -> None:
    bench = Bench()
    stale = {"a": "1", "b": "1", "c": "1"}
    bench.tick(stale)
    for key in stale:
        bench.end(key, BROKEN)
    bench.tick(stale, now=1.0)
    assert list(bench.plan.begun) == ["a"]
    assert bench.plan.begun["a"].run_id.startswith("a@1#")
    assert len(bench.tick(stale, now=HOUR)) == 3
    assert _reported(bench) == []
    for key in stale:
        bench.end(key, INVALID)
    bench.tick(stale, now=HOUR + 1)
    assert _reported(bench) == ["healed FetchError"]


def test_what_begins_again_after_it_healed_is_reported_again() -> None:
    """Also where the run before it, of another partition, failed in the same way."""
    bench = Bench()
    bench.tick({"a": "1"})
    bench.end("a", BROKEN)
    bench.tick({"a": "1"}, now=1.0)
    bench.tick({}, now=2.0)
    assert _reported(bench) == ["healed FetchError"], "its input is gone"
    bench.tick({"b": "1"}, now=3.0)
    bench.end("b", BROKEN)
    bench.tick({"b": "1"}, now=4.0)
    assert _reported(bench) == ["begun FetchError"]


def test_an_outage_of_the_store_is_noted_once_and_heals_at_the_next_good_tick() -> None:
    first, since = with_unreadable_inputs(SensorState(), "StoreUnavailable", now=1.0)
    assert first != SensorState() and since == 1.0
    assert with_unreadable_inputs(first, "StoreUnavailable", now=60.0) == (first, 1.0)
    bench = Bench(state=first)
    bench.tick({}, now=120.0)
    assert bench.plan.healed == ("inputs:StoreUnavailable",)


def test_a_follower_waits_for_the_parents_that_made_it_stale() -> None:
    bench = Bench()
    busy = {"a": "raw_news is being built"}
    assert bench.tick({"a": "1", "b": "1"}, parents=busy) == ["b"]
    assert bench.states()["a"] is State.WAITING


def test_a_follower_of_all_days_takes_what_is_finished_after_an_hour() -> None:
    bench = Bench()
    for minute in range(60):
        assert bench.tick({"a": str(minute)}, now=minute * MINUTE, busy="days are built") == []
    assert bench.tick({"a": "60"}, now=HOUR, busy="days are built") == ["a"]


def test_a_growing_day_is_collected_at_most_every_four_hours() -> None:
    bench, made = Bench(limits=Limits(spacing_seconds=4 * HOUR)), []
    for minute in range(0, 24 * 60, 10):
        now = DAY + minute * MINUTE
        if minute % 80 == 0 and bench.tick({"d": str(minute)}, now=now):
            made.append(minute // 60)
            bench.end("d")
            bench.tick({}, now=now)
    assert made == [0, 4, 8, 12, 16, 20]


def test_no_range_waits_longer_than_twice_its_fair_turn() -> None:
    bench = Bench(limits=Limits(runs=2, per_run=4), order=RANGES)
    last = dict.fromkeys(RANGES, 0)
    longest = 0
    for tick in range(1, 101):
        groups = bench.tick(dict.fromkeys(RANGES, f"day {tick}"), now=tick * MINUTE)
        for key in [key for group in groups for key in group.split(",")]:
            longest = max(longest, tick - last[key])
            last[key] = tick
        for key in list(bench.running):
            if key in bench.running:
                bench.end(key)
    waits = [100 - since for since in last.values()]
    assert max(longest, *waits) <= 2 * len(RANGES) / 8 + 1
    assert all(last.values()), "every range was built"


def test_a_request_carries_adjacent_partitions_only() -> None:
    bench = Bench(limits=Limits(runs=9, per_run=4), order=RANGES)
    stale = dict.fromkeys(["0001", "0002", "0003", "0004", "0005", "0009", "0011"], "1")
    assert bench.tick(stale) == ["0011", "0009", "0002,0003,0004,0005", "0001"]


def test_the_partitions_of_a_failed_run_are_tried_one_by_one_and_only_the_bad_one_stops() -> None:
    bench = Bench(limits=Limits(runs=9, per_run=4), order=RANGES)
    stale = dict.fromkeys(RANGES[:3], "1")
    assert bench.tick(stale) == ["0000,0001,0002"]
    bench.end("0001", INVALID)
    bench.tick(stale, now=1.0)
    assert set(bench.states().values()) == {State.RETRYING}
    assert sorted(bench.tick(stale, now=2 * MINUTE)) == ["0000", "0001", "0002"]
    bench.end("0000")
    bench.end("0001", INVALID)
    bench.end("0002")
    assert bench.tick({"0001": "1"}, now=3 * MINUTE) == []
    assert bench.states() == {"0001": State.STOPPED}


def test_failing_partitions_do_not_take_the_places_of_others() -> None:
    bench = Bench(limits=Limits(runs=3))
    stale = dict.fromkeys("zyxw", "a")
    bench.tick(stale)
    assert bench.states()["w"] is State.BEHIND
    for key in "zyx":
        bench.end(key, INVALID)
    assert bench.tick(stale, now=1.0) == ["w"]


def test_a_tick_says_what_it_saw() -> None:
    bench = Bench()
    stale = {"a": "1", "b": "1", "c": "1"}
    bench.tick(stale)
    bench.now = 12 * HOUR
    bench.end("b", BROKEN)
    bench.end("c", INVALID)
    bench.tick(stale, now=12 * HOUR)
    assert bench.plan.text() == (
        "3 stale: 1 running, 1 retries at 12:01 (FetchError: no route to host), "
        "1 stopped (c): InputError: not a WARC"
    )


def test_an_operator_gets_an_unsettled_day_now() -> None:
    bench = Bench()
    holds = {"d": Hold("not settled", 500.0)}
    assert bench.tick({"d": "a"}, now=10.0, holds=holds) == []
    assert bench.plan.text() == "1 stale: 1 waiting until 00:08 (not settled)"
    assert bench.tick({"d": "a"}, now=20.0, holds=holds, retry_requests={"d": 15.0}) == ["d"]
