"""The sensor end to end, with a real daemon and real runs, killed in the middle of a burst."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import InstigatorType, TickStatus

from news_platform.defs.runs import INPUTS_TAG
from news_platform.storage.commit.collected import collected_names
from news_platform.storage.objects.store import open_store
from news_platform_tests.ccnews.crawl import (
    collect_here,
    mixed_pages,
    warc_path,
    write_crawl,
    write_listings,
)
from news_platform_tests.defs.over import resumed

_PATIENCE_SECONDS = 1_200
_POLL_SECONDS = 0.5
_DEFINITIONS = """
import os
import dagster as dg
from news_platform.defs.ccnews import NEWS_RULE, raw_news, warc_paths
from news_platform.defs.sensors import reconciling_sensor
from news_platform.resources import Resources
from news_platform.settings import load_settings

defs = dg.Definitions(
    assets=[warc_paths, raw_news],
    sensors=[reconciling_sensor(NEWS_RULE, interval_seconds=1)],
    resources={"platform": Resources(load_settings(os.environ))},
    executor=dg.in_process_executor,
)
"""
# As in dagster.yaml, with shorter times: a kill can leave a run that was being started.
_INSTANCE = """
telemetry: {enabled: false}
run_monitoring: {enabled: true, start_timeout_seconds: 20, poll_interval_seconds: 2}
run_retries: {enabled: true, max_retries: 2}
concurrency: {runs: {max_concurrent_runs: 2}}
"""


class Daemon:
    """A Dagster home, and a daemon over it that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        (self.home / "dagster.yaml").write_text(_INSTANCE)
        (folder / "definitions.py").write_text(_DEFINITIONS)
        self.crawl = folder / "crawl"
        self.root = Path(resumed(str(folder / "root")))
        self._processes: list[subprocess.Popen[bytes]] = []
        self._environ = {
            **os.environ,
            "DAGSTER_HOME": str(self.home),
            "NEWS_PLATFORM_ROOT": str(self.root),
            "NEWS_PLATFORM_CRAWL_URL": str(self.crawl),
            "NEWS_PLATFORM_WORKERS": "1",
            "NEWS_PLATFORM_CCNEWS_MAX_DAYS": "60",
            # A grown day is requested again at once.
            "NEWS_PLATFORM_SETTLED_HOURS": "0",
        }
        self._command = [
            *(sys.executable, "-m", "dagster._daemon", "run"),
            *("-f", str(folder / "definitions.py")),
        ]

    def start(self) -> None:
        with (self.home / f"daemon{len(self._processes)}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    self._command,
                    env=self._environ,
                    cwd=Path(__file__).parents[2],
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def kill_9(self) -> None:
        self._processes[-1].kill()
        self._processes[-1].wait()

    def stop(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def requests(self) -> Counter[str]:
        """Count the runs that have not failed, by the inputs that they were requested for."""
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            return Counter(
                run.tags[INPUTS_TAG]
                for run in instance.get_runs()
                if run.status not in (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
            )

    def ticks(self) -> int:
        """Count the ticks of the sensor that have ended."""
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            (state,) = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
            ticks = instance.get_ticks(
                state.instigator_origin_id,
                state.selector_id,
                statuses=[TickStatus.SUCCESS, TickStatus.SKIPPED],
            )
            return len(ticks)

    def await_two_ticks(self) -> None:
        """Wait until the sensor has seen everything that is stored now.

        The first tick to end may have begun before; the second began after.
        """
        before = self.ticks()
        self.await_that(lambda: self.ticks() >= before + 2)

    def collect(self, days: Sequence[date]) -> None:
        """Collect days by hand: they are followed from then on."""
        root, crawl = open_store(str(self.root)), open_store(str(self.crawl))
        for day in days:
            scratch = self.home / day.isoformat()
            now = datetime.now(UTC)
            collect_here(warc_path(day), source=crawl, root=root, scratch=scratch, now=now)

    def collected(self, day: date) -> int:
        return len(collected_names(open_store(str(self.root)), day=day))

    def await_that(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not is_so():
            log = max(self.home.glob("*.log")).read_text(errors="replace")
            assert time.monotonic() < deadline, log[-3000:]
            time.sleep(_POLL_SECONDS)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.stop()


def _kill_in_a_burst(daemon: Daemon, count: int) -> None:
    """So many days get another WARC while no daemon runs; the daemon is killed on its way."""
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=number) for number in range(count)]
    write_crawl(daemon.crawl, {warc_path(day): mixed_pages(3) for day in days})
    daemon.collect(days)
    write_crawl(daemon.crawl, {warc_path(day, 2): mixed_pages(3) for day in days})
    write_listings(daemon.crawl, [warc_path(day, number) for day in days for number in (1, 2)])
    daemon.start()
    daemon.await_that(lambda: len(daemon.requests()) > 1)
    daemon.kill_9()
    daemon.start()
    daemon.await_that(lambda: all(daemon.collected(day) == 2 for day in days))
    daemon.await_two_ticks()  # a doubled request would come with one of them
    requests = daemon.requests()
    assert set(requests.values()) == {1}
    assert len(requests) == len(days)


def test_a_kill_9_of_the_daemon_loses_and_doubles_nothing(daemon: Daemon) -> None:
    _kill_in_a_burst(daemon, 3)


@pytest.mark.soak
def test_a_kill_9_in_a_burst_of_sixty_days_loses_and_doubles_none(daemon: Daemon) -> None:
    _kill_in_a_burst(daemon, 60)
