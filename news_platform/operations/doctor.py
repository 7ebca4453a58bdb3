"""Run every check of the doctor; one that fails or hangs becomes a finding, not the end."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from news_platform.errors import (
    ConfigError,
    FetchError,
    NewsPlatformError,
    StoreUnavailable,
    redacted,
)
from news_platform.operations import machine_checks, service_checks
from news_platform.operations.diagnosis import Diagnosis, skipped, wrong
from news_platform.resources import Resources

# An object store that is down is tried again for a while; people wait no longer than this.
CHECK_SECONDS = 30.0
_LONGEST_CAUSE = 300
Check = Callable[[], Diagnosis | Iterable[Diagnosis]]


def examine(resources: Resources, *, check_seconds: float = CHECK_SECONDS) -> Iterator[Diagnosis]:
    """Yield one finding per thing; what stands on a broken root is not looked at."""
    yield machine_checks.check_versions()
    root = list(_bounded("root", partial(machine_checks.check_root, resources), check_seconds))
    yield from root
    yield machine_checks.check_listeners()
    if any(one.state == "wrong" for one in root):
        yield skipped("all else", "the root does not work; mend it first")
        return
    for name, check in _checks(resources):
        yield from _bounded(name, check, check_seconds)


def _checks(resources: Resources) -> Iterator[tuple[str, Check]]:
    yield "clock", partial(machine_checks.check_clock, resources)
    yield "disk", partial(machine_checks.check_room, resources)
    yield "ledger", partial(service_checks.check_ledger_state, resources)
    yield "crawl", partial(service_checks.check_credentials, resources)
    yield "feeds", partial(service_checks.check_feeds, resources)
    yield "workers", partial(service_checks.check_workers, resources)
    yield "dagster home", partial(_automation, resources)


def _automation(resources: Resources) -> Iterator[Diagnosis]:
    home = resources.settings.dagster_home
    if home is None or not Path(home).is_dir():
        yield _no_home(home)
        return
    # Imported here: Dagster takes seconds to load, and a root of commands alone needs none of it.
    from dagster import DagsterError
    from sqlalchemy.exc import SQLAlchemyError

    from news_platform.defs.status import open_instance
    from news_platform.operations.automation_checks import check_automation

    try:
        with open_instance(resources.settings) as instance:
            assert instance is not None
            yield from check_automation(resources, instance)
    except (DagsterError, SQLAlchemyError) as error:
        cause = redacted(" ".join(str(error).split())[:_LONGEST_CAUSE])
        cure = "check dagster.yaml, the folder and, on a cluster, Dagster's database"
        yield wrong("dagster home", f"Dagster's storage cannot be read: {cause}", cure)


def _no_home(home: str | None) -> Diagnosis:
    if home is None:
        return skipped(
            "dagster home",
            "DAGSTER_HOME is not set: this root is used by commands alone; daemon, sensors, "
            "queue, stale partitions and checks were not looked at",
        )
    return wrong(
        "dagster home",
        f"DAGSTER_HOME={home!r} is not a folder",
        "set it to the absolute folder of Dagster's state, or unset it",
    )


def _bounded(name: str, check: Check, seconds: float) -> Iterator[Diagnosis]:
    """Yield the findings of a check, as far as they come within this time."""
    found: queue.SimpleQueue[Diagnosis | None] = queue.SimpleQueue()
    # A daemon thread: one that hangs in a native library must not keep the process alive.
    threading.Thread(target=_run, args=(name, check, found), daemon=True).start()
    while True:
        try:
            finding = found.get(timeout=seconds)
        except queue.Empty:
            cure = "check the network and the server; a run would wait for it as well"
            yield wrong(name, f"no answer within {seconds:.0f} s", cure)
            return
        if finding is None:
            return
        yield finding


def _cure(error: NewsPlatformError) -> str:
    """Return what to do by the type of an error; its message says it in detail."""
    if isinstance(error, ConfigError):
        return "correct the setting or option that the message names (docs/settings.md)"
    if isinstance(error, StoreUnavailable | FetchError):
        return "check the network, the server and the credentials; runs retry by themselves"
    return "see 'Storage and the ledger' in docs/runbook.md"


def _run(name: str, check: Check, found: "queue.SimpleQueue[Diagnosis | None]") -> None:
    try:
        result = check()
        for finding in (result,) if isinstance(result, Diagnosis) else result:
            found.put(finding)
    except NewsPlatformError as error:
        found.put(wrong(name, " ".join(str(error).split()), _cure(error)))
    except OSError as error:
        cause = error.strerror or str(error)
        found.put(wrong(name, cause.lower(), "check the folder, its disk and its permissions"))
    finally:
        found.put(None)
