"""Run every check of `doctor`; report one that fails or hangs as a finding, and go on."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from news_platform.errors import (
    ConfigError,
    FetchError,
    NewsPlatformError,
    StoreUnavailable,
)
from news_platform.operations import checks
from news_platform.operations.automation_checks import check_automation
from news_platform.operations.checks import Diagnosis, Health, skipped, wrong
from news_platform.resources import Resources

# An object store that is down is tried again for a while; people wait no longer than this.
CHECK_SECONDS = 30.0
Check = Callable[[], Diagnosis | Iterable[Diagnosis]]


def examine(resources: Resources, *, check_seconds: float = CHECK_SECONDS) -> Iterator[Diagnosis]:
    """Yield one finding per thing; with a broken root, only what does not need it is checked."""
    yield checks.check_versions()
    root = list(_bounded("root", partial(checks.check_root, resources), check_seconds))
    yield from root
    yield checks.check_listeners()
    if any(one.state is Health.WRONG for one in root):
        yield skipped("all else", "the root does not work; fix it first")
        return
    for name, check in _CHECKS:
        yield from _bounded(name, partial(check, resources), check_seconds)


# The names under which a check that fails or hangs is reported.
_CHECKS: tuple[tuple[str, Callable[[Resources], Diagnosis | Iterable[Diagnosis]]], ...] = (
    ("clock", checks.check_clock),
    ("days", checks.check_days),
    ("tables", checks.check_tables),
    ("disk", checks.check_space),
    ("ledger", checks.check_ledger),
    ("crawl", checks.check_crawl),
    ("sheet", checks.check_sheet),
    ("feeds", checks.check_feeds),
    ("workers", checks.check_workers),
    ("dagster home", check_automation),
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
