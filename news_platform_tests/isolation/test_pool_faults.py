"""The pool among thousands of random faults, in a daemonic child, and when its parent is killed."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from itertools import count
from typing import Any

import psutil
import pytest

from news_platform.isolation.pool import Done, Lost, Pool
from news_platform_tests.isolation.processes import assert_gone, own_children

ACT = "news_platform_tests.isolation.targets:act"
FAULTS = {
    "hang": ("sleep", 60),
    "loop": ("busy",),
    "crash": ("segfault",),
    "exit": ("exit", 3),
    "memory": ("fill", 10**10),
    "error": ("raise", ValueError("bad")),
}
EXPECTED = {"hang": "timeout", "loop": "timeout", "exit": "crash"}


def faulty_orders(amount: int, *, share: float, seed: int) -> list[tuple[str, tuple[Any, ...]]]:
    chance = random.Random(seed)
    kinds = [chance.choice(list(FAULTS)) if chance.random() < share else "" for _ in range(amount)]
    return [(kind, FAULTS.get(kind, ("echo", number))) for number, kind in enumerate(kinds)]


def assert_every_fault_costs_its_own_item(
    amount: int, *, share: float, seed: int, deadline_seconds: float = 5
) -> None:
    orders = faulty_orders(amount, share=share, seed=seed)
    with Pool(ACT, workers=4, deadline_seconds=deadline_seconds, memory_bytes=120_000_000) as pool:
        outcomes = list(pool.map(order for _, order in orders))
    assert len(outcomes) == amount
    for number, ((kind, _), outcome) in enumerate(zip(orders, outcomes, strict=True)):
        if kind:
            assert isinstance(outcome, Lost)
            assert outcome.reason == EXPECTED.get(kind, kind)
        else:
            assert outcome == Done(number)
    assert own_children() == []


def test_random_faults_among_sixty_items_lose_and_double_nothing() -> None:
    assert_every_fault_costs_its_own_item(60, share=0.15, seed=1, deadline_seconds=1.5)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_random_faults_among_five_thousand_items_lose_and_double_nothing(seed: int) -> None:
    assert_every_fault_costs_its_own_item(5_000, share=0.05, seed=seed)


def test_workers_killed_from_outside_cost_at_most_the_item_in_hand() -> None:
    reports = count(1)

    def shoot_now_and_then(_: object, pid: int) -> None:
        if next(reports) % 10 == 0:
            os.kill(pid, signal.SIGKILL)

    with Pool(ACT, workers=2, deadline_seconds=60, on_report=shoot_now_and_then) as pool:
        outcomes = list(pool.map([("report pid", 0.01)] * 40))
    lost = [outcome for outcome in outcomes if isinstance(outcome, Lost)]
    assert len(outcomes) == 40
    assert 1 <= len(lost) <= 10
    assert {(one.reason, one.detail) for one in lost} == {("crash", "killed by SIGKILL")}


def _double_in_a_pool() -> None:
    with Pool(ACT, workers=2, deadline_seconds=20) as pool:
        values = [outcome for outcome in pool.map([("double", 1), ("exit", 1), ("double", 2)])]
    assert [type(value) for value in values] == [Done, Lost, Done]


def test_it_works_in_a_daemonic_child_which_may_have_no_multiprocessing_children() -> None:
    child = multiprocessing.get_context("spawn").Process(target=_double_in_a_pool, daemon=True)
    child.start()
    child.join(60)
    assert child.exitcode == 0


PARENT = """
import os, sys, time
from news_platform.isolation.pool import Pool
pool = Pool(sys.argv[1], workers=3, deadline_seconds=600,
            on_report=lambda item, value: os.write(1, f"{value}\\n".encode()))
for order in (("busy",), ("sleep", 600), ("report", ["idle"], "double", 1)):
    pool.submit(("report", ["started"], *order))
time.sleep(600)
"""


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_a_parent_that_is_killed(sign: signal.Signals) -> None:
    command = [sys.executable, "-c", PARENT, ACT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        heard = sorted(parent.stdout.readline() for _ in range(4))
        workers = [child.pid for child in psutil.Process(parent.pid).children()]
        parent.send_signal(sign)
    assert heard == ["idle\n"] + ["started\n"] * 3
    assert len(workers) == 3
    assert_gone(workers)


def test_a_script_that_forgets_to_close_its_pool_still_ends() -> None:
    script = PARENT.replace("time.sleep(600)", "time.sleep(0)").replace('("busy",), ', "")
    script = script.replace('("sleep", 600)', '("sleep", 0.1)')
    started_at = time.monotonic()
    subprocess.run([sys.executable, "-c", script, ACT], check=True, capture_output=True, timeout=60)
    assert time.monotonic() - started_at < 30
