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
from news_platform.defs.runs import run_requests
from news_platform.defs.sensor_state import (
    CANCELED,
    DAY,
    HOUR,
    MINUTE,
    Memory,
    Outcome,
    backoff_seconds,
    dump_memory,
    load_memory,
    with_outage,
)

BROKEN = Outcome("FetchError", "no route to host")
INVALID = Outcome("InputError", "not a WARC", is_final=True)
RANGES = tuple(f"{number:04}" for number in range(63))


@dataclass
class Bench:
    """A sensor's surroundings: what ran, how it ended, and what the sensor remembers."""

    limits: Limits = field(default_factory=lambda: Limits(runs=3))
    memory: Memory = field(default_factory=Memory)
    running: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    order: Sequence[str] = ()
    plan: Plan | None = None

    def tick(self, stale: Mapping[str, str], *, now: float = 0.0, **seen: object) -> list[str]:
        """Plan once, through the cursor's text as Dagster does; start what is requested."""
        tick = TickInput(
            "toy",
            stale,
            now,
            self.outcomes.get,
            running=dict(self.running),
            own=len(set(self.running.values())),
            order=self.order or sorted(stale),
        )
        memory = load_memory(dump_memory(self.memory))
        self.plan = plan_requests(replace(tick, **seen), memory, self.limits)  # type: ignore[arg-type] # any field
        self.memory = self.plan.memory
        for request in self.plan.requests:
            self.running |= dict.fromkeys(request.partitions, request.name)
        return [",".join(request.partitions) for request in self.plan.requests]

    def end(self, key: str, outcome: Outcome | None = None) -> None:
        """Let the run that builds a partition end."""
        name = self.running[key]
        self.running = {one: run for one, run in self.running.items() if run != name}
        self.outcomes[name] = outcome or Outcome()

    def states(self) -> dict[str, State]:
        assert self.plan is not None
        return {key: verdict.state for key, verdict in self.plan.verdicts.items()}


def test_a_stale_partition_is_requested_once_while_its_run_goes_on() -> None:
    bench = Bench()
    assert bench.tick({"d": "a"}) == ["d"]
    assert bench.tick({"d": "a"}) == []
    assert bench.states() == {"d": State.RUNNING}


def test_nothing_stale_requests_nothing_and_forgets_everything_but_the_last_request() -> None:
    bench = Bench()
    bench.tick({"d": "a"}, now=1.0)
    bench.end("d")
    assert bench.tick({}, now=2.0) == []
    assert bench.memory.units == {} and bench.memory.served == {"d": 1.0}
    assert bench.plan and bench.plan.text() == "nothing is stale"


def test_inputs_that_change_right_after_the_request_are_requested_after_its_run() -> None:
    bench = Bench()
    bench.tick({"d": "a"})
    assert bench.tick({"d": "b"}) == [], "not beside the run that still goes on"
    bench.end("d")
    assert bench.tick({"d": "b"}) == ["d"]


def test_no_two_requests_share_a_run_key() -> None:
    bench, names = Bench(), set()
    for day in range(5):
        bench.tick({"d": "a"}, now=DAY * day)
        assert bench.plan
        names |= {request.name for request in bench.plan.requests}
        bench.end("d", BROKEN)
        bench.tick({"d": "a"}, now=DAY * day + 1)
    assert len(names) == 5


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
    [("2025-06-10", "2"), ("2025-06-03", "2"), ("2025-06-02", None), ("0000", "1"), ("all", "1")],
)
def test_runs_of_new_days_stand_before_those_of_all_days_and_these_before_history(
    key: str, priority: str | None
) -> None:
    bench = Bench()
    bench.tick({key: "a"}, now=JUNE)
    assert bench.plan
    (request,) = run_requests(bench.plan)
    assert request.tags.get("dagster/priority") == priority


def test_a_request_whose_run_was_deleted_is_made_again() -> None:
    bench = Bench()
    bench.tick({"d": "a"})
    bench.running.clear()
    assert bench.tick({"d": "a"}, now=1.0) == ["d"]


def test_what_the_world_broke_is_tried_quickly_then_hourly_then_daily_for_ever() -> None:
    bench, times, now = Bench(), [], 0.0
    while now < 40 * DAY:
        if bench.tick({"d": "a"}, now=now):
            times.append(now)
            bench.end("d", BROKEN)
        now += MINUTE
    gaps = [round((after - before) / MINUTE) for before, after in pairwise(times)]
    # One minute later than the pause: a failure is seen at the tick after it.
    assert gaps[:3] == [2, 6, 16]
    assert set(gaps[3:27]) == {61} and set(gaps[27:]) == {24 * 60 + 1}
    assert len(gaps) > 60
    assert bench.plan and bench.plan.text().startswith("1 stale: 1 retries at ")
    assert "FetchError: no route to host" in bench.plan.text()


def test_an_outage_of_an_hour_is_over_an_hour_later_at_the_latest() -> None:
    bench, built, now = Bench(), 0.0, 0.0
    while not built:
        if bench.tick({"d": "a"}, now=now):
            built = now if now > HOUR else 0.0
            bench.end("d", BROKEN if not built else None)
        now += MINUTE
    assert built <= 2 * HOUR + 5 * MINUTE


def test_what_a_retry_cannot_mend_stops_at_once_until_its_input_changes() -> None:
    bench = Bench()
    bench.tick({"d": "a"})
    bench.end("d", INVALID)
    for day in range(1, 50):
        assert bench.tick({"d": "a"}, now=DAY * day) == []
    assert bench.plan and bench.plan.text() == "1 stale: 1 stopped (d): InputError: not a WARC"
    assert bench.tick({"d": "b"}, now=51 * DAY) == ["d"]


def test_changed_settings_lift_a_stop() -> None:
    bench = Bench()
    bench.tick({"d": "a"}, settings="old")
    bench.end("d", Outcome("ConfigError", "no key", is_final=True))
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


def test_an_operator_gets_an_unsettled_day_now() -> None:
    bench = Bench()
    holds = {"d": Hold("not settled", 500.0)}
    assert bench.tick({"d": "a"}, now=10.0, holds=holds) == []
    assert bench.plan and bench.plan.text() == "1 stale: 1 waiting until 00:08 (not settled)"
    assert bench.tick({"d": "a"}, now=20.0, holds=holds, retry_requests={"d": 15.0}) == ["d"]


def test_when_one_of_several_failing_partitions_is_built_the_others_are_tried_at_once() -> None:
    bench = Bench()
    stale = {"a": "1", "b": "1"}
    bench.tick(stale)
    for key in stale:
        bench.end(key, BROKEN)
    bench.tick(stale, now=1.0)
    assert bench.tick(stale, now=MINUTE + 1) == ["b", "a"]
    bench.end("b", BROKEN)
    bench.end("a")
    assert bench.tick({"b": "1"}, now=MINUTE + 2) == [], "its failure is seen here"
    bench.memory = replace(bench.memory, mended={"FetchError": MINUTE + 3})
    assert bench.tick({"b": "1"}, now=MINUTE + 4) == ["b"]


def test_an_error_heals_once_when_nothing_fails_with_it_any_more() -> None:
    bench, healed = Bench(), []
    bench.tick({"a": "1", "b": "1"})
    for key in "ab":
        bench.end(key, BROKEN)
    for now, stale in ((1.0, "ab"), (2.0, "a"), (3.0, ""), (4.0, "")):
        bench.tick(dict.fromkeys(stale, "1"), now=now)
        assert bench.plan
        healed.append(bench.plan.healed)
    assert healed == [(), (), ("FetchError",), ()]


SUCCESS, STILL_STALE = Outcome(), Outcome()
LOST = Outcome("WorkerLost", "the run ended without an error of its own")
CANCELED_RUN = Outcome(CANCELED, "an operator canceled the run")


def _told(bench: Bench) -> list[str]:
    assert bench.plan
    begun = [f"begun {news.failure.kind}" for news in bench.plan.news]
    return [*begun, *(f"healed {kind}" for kind in bench.plan.healed)]


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ([BROKEN, SUCCESS], ["begun FetchError", "healed FetchError"]),
        ([BROKEN, BROKEN, SUCCESS], ["begun FetchError", "healed FetchError"]),
        (
            [LOST, BROKEN, SUCCESS],
            ["begun WorkerLost", "begun FetchError", "healed WorkerLost", "healed FetchError"],
        ),
        ([STILL_STALE, STILL_STALE], ["begun StillStale"]),
        ([CANCELED_RUN, SUCCESS], []),
        ([INVALID], ["begun InputError"]),
    ],
    ids=["once", "again", "another kind at the second attempt", "in vain", "canceled", "stopped"],
)
def test_what_heals_was_reported_when_it_began(outcomes: list[Outcome], told: list[str]) -> None:
    bench, found = Bench(), []
    bench.tick({"a": "1"})
    for number, outcome in enumerate(outcomes, start=1):
        bench.end("a", outcome)
        stale = {} if outcome is SUCCESS else {"a": "1"}
        # The first tick sees the end, the second requests the next attempt.
        for now in (number * DAY, number * DAY + HOUR):
            bench.tick(stale, now=now)
            found += _told(bench)
    assert found == told


def test_an_outage_is_reported_once_for_all_its_partitions_and_each_stop_by_itself() -> None:
    bench = Bench()
    stale = {"a": "1", "b": "1", "c": "1"}
    bench.tick(stale)
    for key in stale:
        bench.end(key, BROKEN)
    bench.tick(stale, now=1.0)
    assert bench.plan and [news.partition for news in bench.plan.news] == ["a"]
    assert bench.plan.news[0].request.startswith("a@1#")
    bench.tick(stale, now=HOUR)
    for key in stale:
        bench.end(key, INVALID)
    bench.tick(stale, now=HOUR + 1)
    assert [news.partition for news in bench.plan.news] == ["a", "b", "c"]
    assert bench.plan.healed == ("FetchError",)
    bench.tick(stale, now=HOUR + 2)
    assert _told(bench) == []


def test_what_begins_again_after_it_healed_is_reported_again() -> None:
    """Also where the run before it, of another partition, failed in the same way."""
    bench = Bench()
    bench.tick({"a": "1"})
    bench.end("a", BROKEN)
    bench.tick({"a": "1"}, now=1.0)
    bench.tick({}, now=2.0)
    assert _told(bench) == ["healed FetchError"], "its input is gone"
    bench.tick({"b": "1"}, now=3.0)
    bench.end("b", BROKEN)
    bench.tick({"b": "1"}, now=4.0)
    assert _told(bench) == ["begun FetchError"]


def test_an_outage_of_the_store_is_reported_once_and_heals_at_the_next_good_tick() -> None:
    bench = Bench()
    bench.memory, first = with_outage(bench.memory, "StoreUnavailable", now=0.0)
    bench.memory, second = with_outage(bench.memory, "StoreUnavailable", now=60.0)
    assert (first, second) == (True, False)
    bench.tick({}, now=120.0)
    assert bench.plan and bench.plan.healed == ("look:StoreUnavailable",)


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
        now = minute * MINUTE
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


def test_a_new_day_does_not_wait_for_history_nor_history_for_new_days() -> None:
    bench = Bench(limits=Limits(runs=2))
    history = {f"2025-01-{day:02}": "1" for day in range(1, 32)}
    assert bench.tick(history) == ["2025-01-31", "2025-01-30"]
    for key in list(bench.running):
        bench.end(key)
        del history[key]
    assert bench.tick({**history, "2025-02-01": "1"}, now=1.0) == ["2025-02-01", "2025-01-29"]


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
    bench.end("b", BROKEN)
    bench.end("c", INVALID)
    bench.tick(stale, now=12 * HOUR)
    assert bench.plan and bench.plan.text() == (
        "3 stale: 1 running, 1 retries at 12:01 (FetchError: no route to host), "
        "1 stopped (c): InputError: not a WARC"
    )


def test_a_cursor_of_version_0_1_counts_as_none() -> None:
    old = '{"d": {"fingerprint": "a", "serial": 3, "attempts": 5, "retry_at": 1.0}}'
    assert load_memory(old) == load_memory(None) == load_memory("") == Memory()


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(1, MINUTE), (2, 5 * MINUTE), (3, 15 * MINUTE), (4, HOUR), (27, HOUR), (28, DAY), (999, DAY)],
)
def test_the_pause_grows_to_an_hour_and_then_to_a_day(failures: int, seconds: float) -> None:
    assert backoff_seconds(failures) == seconds
