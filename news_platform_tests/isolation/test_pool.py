"""A pool against targets that hang, crash, fill memory, print, raise, leak and lie."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from news_platform.errors import ConfigError, InputError
from news_platform.isolation.pool import Done, Lost, Outcome, Pool
from news_platform_tests.isolation.processes import assert_gone, own_children

ACT = "news_platform_tests.isolation.targets:act"
MEGABYTE = 1_000_000


def act_pool(**options: Any) -> Pool:
    return Pool(ACT, **{"workers": 1, "deadline_seconds": 20.0, **options})


def test_outcomes_come_in_the_order_of_the_items() -> None:
    with act_pool(workers=3) as pool:
        outcomes = list(pool.map(("double", number) for number in range(100)))
    assert outcomes == [Done(2 * number) for number in range(100)]


def test_items_are_read_only_a_little_ahead() -> None:
    taken: list[int] = []

    def numbers() -> Iterator[tuple[str, int]]:
        for number in range(1000):
            taken.append(number)
            yield ("double", number)

    with act_pool(workers=2) as pool:
        outcomes = pool.map(numbers())
        next(outcomes)
        assert len(taken) <= 10


def test_without_workers_items_run_in_this_process_and_fail_alike() -> None:
    before = own_children()
    with act_pool(workers=0) as pool:
        items = [("double", 21), ("raise", ValueError("bad page")), ("double", 1)]
        outcomes = list(pool.map(items))
        assert own_children() == before
    assert outcomes == [Done(42), Lost("error", "ValueError: bad page"), Done(2)]


LOSSES = {
    "a sleeper": (("sleep", 60), "timeout", "silent for 0.3 s"),
    "a busy loop": (("busy",), "timeout", "silent for 0.3 s"),
    "an exit": (("exit", 3), "crash", "exit 3"),
    "a segmentation fault": (("segfault",), "crash", "killed by SIGSEGV"),
    "an exception": (("raise", ValueError("bad page")), "error", "ValueError: bad page"),
    "a panic that is not an Exception": (
        ("raise", BaseException("p")),
        "error",
        "BaseException: p",
    ),
    "an unpicklable result": (("unpicklable",), "error", "AttributeError"),
    "a slow memory hog": (("fill", 4_000 * MEGABYTE), "memory", "of 150,000,000 bytes"),
    "a memory hog that never stops reporting": (("gossip", 4_000), "memory", "of 150,000,000"),
    "one absurd allocation": (("absurd",), "memory", "MemoryError"),
}


@pytest.mark.parametrize(("order", "reason", "detail"), LOSSES.values(), ids=LOSSES.keys())
def test_a_bad_item_is_lost_and_the_next_one_is_done(
    order: tuple[Any, ...], reason: str, detail: str
) -> None:
    deadline_seconds = 0.3 if reason == "timeout" else 20.0
    with act_pool(deadline_seconds=deadline_seconds, memory_bytes=150 * MEGABYTE) as pool:
        lost, done = pool.map([("report", ["here"], *order), ("double", 1)])
    assert isinstance(lost, Lost)
    assert lost.reason == reason
    assert detail in lost.detail
    assert lost.last_report in ("here", "fatter")
    assert done == Done(2)


def test_the_deadline_counts_from_the_last_report() -> None:
    with act_pool(deadline_seconds=0.5) as pool:
        assert pool.submit(("steps", 6, 0.1)).result() == Done(6)


def test_reports_reach_the_caller_with_their_item() -> None:
    heard: list[tuple[Any, Any]] = []
    with act_pool(on_report=lambda item, value: heard.append((item[0], value))) as pool:
        pool.submit(("report", [1, {"offset": 2}], "double", 1)).result()
    assert heard == [("report", 1), ("report", {"offset": 2})]


def test_an_exception_of_the_listener_is_the_callers_and_the_pool_goes_on() -> None:
    def fail(item: object, value: object) -> None:
        raise ZeroDivisionError

    with act_pool(on_report=fail) as pool:
        with pytest.raises(ZeroDivisionError):
            pool.submit(("report", [1], "double", 1)).result()
        assert pool.submit(("double", 1)).result() == Done(2)


def test_what_the_target_prints_never_meets_the_protocol(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with act_pool() as pool:
        # The target also reads its stdin, which is empty.
        assert pool.submit(("chatter", "\0\1D" * 10)).result() == Done("")
        assert pool.submit(("double", 2)).result() == Done(4)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("size", [0, 20 * MEGABYTE])
def test_large_items_and_results_pass(size: int) -> None:
    with act_pool() as pool:
        assert pool.submit(("size", bytes(size))).result() == Done(size)
        assert pool.submit(("bytes", size)).result() == Done(bytes(size))


def test_a_worker_is_used_again_and_replaced_only_after_a_loss() -> None:
    with act_pool() as pool:
        first, second, _, third = pool.map([("pid",), ("pid",), ("exit", 1), ("pid",)])
    assert first == second != third


def test_a_worker_that_died_between_items_costs_nothing() -> None:
    with act_pool() as pool:
        first = pool.submit(("pid",)).result()
        assert isinstance(first, Done)
        os.kill(first.value, signal.SIGKILL)
        time.sleep(0.1)
        assert pool.submit(("double", 1)).result() == Done(2)


def test_a_leaking_worker_is_replaced_before_it_costs_an_item() -> None:
    with act_pool(memory_bytes=200 * MEGABYTE) as pool:
        outcomes = list(pool.map([("leak", 30 * MEGABYTE)] * 12))
    pids = {outcome.value for outcome in outcomes if isinstance(outcome, Done)}
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    assert 2 <= len(pids) <= 6


def test_a_lost_items_own_children_are_killed_too() -> None:
    with act_pool(deadline_seconds=1.0) as pool:
        lost = pool.submit(("hang children",)).result()
    assert isinstance(lost, Lost)
    assert_gone([lost.last_report])


@pytest.mark.parametrize("target", ["module", ":function"])
def test_a_malformed_target_is_refused_at_once(target: str) -> None:
    with pytest.raises(InputError, match=r"expected 'package\.module:function'"):
        Pool(target, workers=1, deadline_seconds=1)


@pytest.mark.parametrize(
    ("target", "cause"),
    [
        ("no.such.module:f", "cannot load"),
        ("json:no_such_function", "cannot load"),
        ("news_platform_tests.isolation.deadly:never", "cannot start a worker for .*: exit 7"),
    ],
)
def test_a_target_that_cannot_be_imported_is_named(target: str, cause: str) -> None:
    with (
        Pool(target, workers=1, deadline_seconds=5) as pool,
        pytest.raises(ConfigError, match=cause),
    ):
        pool.submit(1).result()


def test_no_more_items_wait_than_allowed() -> None:
    with act_pool(max_pending=2) as pool:
        for _ in range(2):
            pool.submit(("sleep", 0.3))
        started_at = time.monotonic()
        pool.submit(("double", 1))
        assert time.monotonic() - started_at > 0.1


def test_an_interrupt_leaves_nothing_behind() -> None:
    started_at = time.monotonic()
    with pytest.raises(KeyboardInterrupt), act_pool(workers=2, deadline_seconds=600) as pool:
        futures = [pool.submit(("sleep", 600)) for _ in range(6)]
        time.sleep(0.3)
        raise KeyboardInterrupt
    assert time.monotonic() - started_at < 10
    assert own_children() == []
    assert Counter(ending(future) for future in futures)["cancelled"] >= 4


def ending(future: Any) -> str:
    try:
        outcome: Outcome = future.result(timeout=0)
    except CancelledError:
        return "cancelled"
    return type(outcome).__name__


def test_many_pools_leave_no_descriptor_and_no_process() -> None:
    def open_descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with act_pool() as pool:
        pool.submit(("double", 1)).result()
    before = open_descriptors()
    for _ in range(3):
        with act_pool(workers=2) as pool:
            list(pool.map([("double", 1), ("exit", 1), ("raise", ValueError()), ("segfault",)]))
    assert open_descriptors() == before
    assert own_children() == []
