"""Following parents: the cases that event-driven automation loses."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import dagster as dg
import pytest

from news_platform.defs.reconcile import (
    Limits,
    Pending,
    Runs,
    TickPlan,
    dump_cursor,
    load_cursor,
    observe_changes,
    plan_requests,
)

LIMITS = Limits(outstanding=3, attempts=3, backoff_seconds=60)


@dataclass
class Bench:
    """A sensor's surroundings: what is stale, what ran, and what it remembers."""

    runs: dict[tuple[str, str], Runs] = field(default_factory=dict)
    pending: Mapping[str, Pending] = field(default_factory=dict)

    def tick(self, stale: Mapping[str, str], *, now: float = 0.0) -> list[str]:
        """Evaluate once, through the cursor's text as Dagster does; launch what is requested."""
        plan: TickPlan = plan_requests(
            stale,
            pending=load_cursor(dump_cursor(self.pending)),
            runs_of=lambda key, fingerprint: self.runs.get((key, fingerprint), Runs()),
            now=now,
            limits=LIMITS,
        )
        self.pending = plan.pending
        for key, attempt in plan.requests.items():
            before = self.runs.get((key, attempt.fingerprint), Runs())
            self.runs[key, attempt.fingerprint] = Runs(before.total + 1, before.unfinished + 1)
        return [attempt.run_key(key) for key, attempt in plan.requests.items()]

    def end(self, key: str, fingerprint: str) -> None:
        """Let the run of that partition end, well or badly: only storage tells which."""
        self.runs[key, fingerprint] = Runs(self.runs[key, fingerprint].total, 0)


def test_a_stale_partition_is_requested_once_while_its_run_goes_on() -> None:
    bench = Bench()
    assert bench.tick({"2025-11-01": "a"}) == ["2025-11-01@a#1"]
    assert bench.tick({"2025-11-01": "a"}) == []


def test_nothing_stale_requests_nothing_and_forgets_everything() -> None:
    bench = Bench()
    bench.tick({"d": "a"})
    bench.end("d", "a")
    assert bench.tick({}) == []
    assert bench.pending == {}


def test_inputs_that_change_right_after_the_request_are_requested_again() -> None:
    bench = Bench()
    bench.tick({"d": "a"})
    assert bench.tick({"d": "b"}) == [], "not beside the run that still goes on"
    bench.end("d", "a")
    assert bench.tick({"d": "b"}) == ["d@b#1"]


def test_inputs_that_return_to_an_earlier_state_get_a_new_run_key() -> None:
    bench = Bench()
    bench.tick({"d": "a"})
    bench.end("d", "a")
    bench.tick({"d": "b"})
    bench.end("d", "b")
    assert bench.tick({"d": "a"}) == ["d@a#2"]


def test_history_present_at_the_first_tick_is_taken_newest_first_within_the_limit() -> None:
    bench = Bench()
    history = {f"2025-11-{day:02}": "a" for day in range(9, 0, -1)}
    assert bench.tick(history) == ["2025-11-09@a#1", "2025-11-08@a#1", "2025-11-07@a#1"]
    assert bench.tick(history) == []
    bench.end("2025-11-08", "a")
    del history["2025-11-08"]
    assert bench.tick(history) == ["2025-11-06@a#1"]


def test_a_failing_partition_backs_off_and_is_given_up_after_its_attempts() -> None:
    bench, made, now = Bench(), [], 0.0
    for _ in range(100):
        made += bench.tick({"d": "a"}, now=now)
        bench.end("d", "a")
        now += 30
    assert made == ["d@a#1", "d@a#2", "d@a#3"]


def test_a_given_up_partition_comes_back_with_new_inputs() -> None:
    bench = Bench(runs={("d", "a"): Runs(3, 0)}, pending={"d": Pending("a", 3, 3, retry_at=1.0)})
    assert bench.tick({"d": "a"}, now=9_999.0) == []
    assert bench.tick({"d": "b"}, now=9_999.0) == ["d@b#1"]


def test_failing_partitions_do_not_block_the_others() -> None:
    bench = Bench()
    stale = {key: "a" for key in "zyxw"}
    bench.tick(stale)
    for key in "zyx":
        bench.end(key, "a")
    assert bench.tick(stale) == ["w@a#1"]


def test_a_request_whose_tick_died_before_it_was_remembered_is_not_doubled() -> None:
    bench = Bench(runs={("d", "a"): Runs(total=1, unfinished=1)})
    assert bench.tick({"d": "a"}) == []
    assert bench.pending["d"].serial == 1


def test_a_request_whose_run_was_deleted_is_made_again() -> None:
    bench = Bench(pending={"d": Pending("a", serial=1)})
    assert bench.tick({"d": "a"}) == ["d@a#1"]


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 60.0), (2, 120.0), (3, 240.0), (20, 3600.0)])
def test_the_backoff_doubles_up_to_an_hour(attempts: int, seconds: float) -> None:
    assert Limits().backoff(attempts) == seconds


def test_changed_files_of_an_external_asset_are_observed_once_and_new_keys_become_partitions() -> (
    None
):
    keys = dg.DynamicPartitionsDefinition(name="keys")
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("keys", ["a"])

        def tick(cursor: str | None, found: Mapping[str, str]) -> dg.SensorResult:
            context = dg.build_sensor_context(instance=instance, cursor=cursor)
            return observe_changes(context, "files", found, keys)

        first = tick(None, {"b": "1", "a": "1"})
        second = tick(first.cursor, {"b": "1", "a": "2"})
    assert [(event.partition, event.metadata["fingerprint"].value) for event in _seen(first)] == [
        ("a", "1"),
        ("b", "1"),
    ]
    assert [event.partition for event in _seen(second)] == ["a"]
    (request,) = first.dynamic_partitions_requests or ()
    assert list(request.partition_keys) == ["b"]


def _seen(result: dg.SensorResult) -> list[dg.AssetObservation]:
    return [event for event in result.asset_events if isinstance(event, dg.AssetObservation)]
