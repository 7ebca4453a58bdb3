"""The boundary of one unit of foreign work: a feed, article, candidate, domain, page or file.

    with boundary("feed", url) as unit:
        return await poll(url)
    return failed(url, unit.cause)

Whatever the unit raises ends here: it is logged in one line, and `unit.cause` says why, so that the
caller counts an outcome and goes on with the next unit. Passed on are the failures that are not the
unit's: our store, ledger, settings and machine, a lack of memory, and cancellation. They end the
batch, and its unfinished units can be claimed again.
"""

import asyncio
import logging
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from types import TracebackType
from typing import Any, TypeVar

from news_platform.errors import ConfigError, NewsPlatformError, StorageError
from news_platform.logs import bound
from news_platform.text.normalize import normalize_spaces, scrub_text

T = TypeVar("T")
_log = logging.getLogger(__name__)

INTERNAL_ERROR = "internal_error"
"""The outcome of a unit whose work raised an exception that nothing else handles."""

# The name under which log lines show a unit; a candidate may become a feed.
_FACTS = {
    "feed": "feed",
    "candidate": "feed",
    "article": "article",
    "page": "page",
    "domain": "domain",
    "news sitemap": "sitemap",
    "research file": "file",
}
# A cause is stored in a cell of the sheet and printed on one line.
_MAX_CAUSE = 300
_PACKAGE = Path(__file__).parents[1]
# PostgreSQL's classes of errors that come from the values of a row: data exceptions, violated
# constraints, and limits such as the longest key of an index. All others concern the server.
_VALUE_ERRORS = ("22", "23", "54")
# Errors of a connection to a site; every other error of the operating system is our machine's.
_SITE_ERRORS = (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)


@dataclass(slots=True)
class Unit:
    """One unit of foreign work; `cause` is why it failed, '' if it did not."""

    kind: str
    name: str
    cause: str = ""

    def fail(self, error: BaseException) -> None:
        """Keep and log the cause of the failure."""
        self.cause = describe_cause(error)
        # The name by repr: it is foreign text, and a line break in it would forge a log line.
        _log.warning("%s %r failed: %s", self.kind, self.name, self.cause)


def boundary(kind: str, name: str) -> AbstractContextManager[Unit, bool]:
    """End any failure of the unit inside the block; pass on failures that are not the unit's."""
    # The type says that the block may end early, so that a checker sees what follows a return.
    return _Boundary(Unit(kind, name))


class _Boundary(AbstractContextManager[Unit, bool]):
    """One block; written without a generator, because every page of the crawl passes two."""

    __slots__ = ("_bound", "_unit")

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._bound = bound(**{_FACTS.get(unit.kind, "unit"): unit.name})

    def __enter__(self) -> Unit:
        self._bound.__enter__()
        return self._unit

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        try:
            if error is None or not _is_of_unit(error):
                return False
            self._unit.fail(error)
            return True  # foreign input may raise anything, in any library
        finally:
            self._bound.__exit__()


def _is_of_unit(error: BaseException) -> bool:
    """Return whether the work of the unit is to blame."""
    return not is_our_failure(error) if isinstance(error, Exception) else _is_panic(error)


def _is_panic(error: BaseException) -> bool:
    # Native code in Rust raises its panics as BaseException, one class per library.
    return type(error).__name__ == "PanicException"


@contextmanager
def panics_as(
    make: Callable[[str], Exception], *, also: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Raise the panics of native libraries, and these exceptions, as an error of ours.

    A panic that nothing handles ends the whole server: it is not an Exception.
    """
    try:
        yield
    except BaseException as error:
        if not _is_panic(error) and not isinstance(error, also):
            raise
        raise make(_one_line(str(error))) from error


def is_our_failure(error: BaseException) -> bool:
    """Return whether an error would also meet the next unit: store, ledger, settings, machine."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_our_failure, error.exceptions))
    # Unlike asyncio's, the CancelledError of a thread pool is an Exception.
    if isinstance(error, StorageError | ConfigError | MemoryError | CancelledError):
        return True
    if isinstance(error, OSError):
        # Libraries raise OSError without a number for damaged bytes.
        return error.errno is not None and not isinstance(error, _SITE_ERRORS)
    return _is_ledger_failure(error)


def describe_cause(error: BaseException) -> str:
    """Return an error as one short line; for errors that are not ours, with type and place."""
    if isinstance(error, NewsPlatformError):
        return _one_line(str(error))
    places = [frame for frame in extract_tb(error.__traceback__) if _is_ours(frame.filename)]
    place = ""
    if places:
        path = Path(places[-1].filename).relative_to(_PACKAGE).as_posix()
        place = f" ({path}:{places[-1].lineno})"
    return f"{_one_line(f'{type(error).__name__}: {error}')}{place}"


async def run_concurrently(tasks: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of all tasks; when one fails, cancel the others and raise its error.

    With `asyncio.gather` the others would go on while the fetcher they use is being closed, and
    would take that for failures of their units.
    """
    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(task) for task in tasks]
    except BaseExceptionGroup as error:
        raise first_cause(error) from error
    return [task.result() for task in running]


async def consume_claims(
    claim: Callable[[], Awaitable[Iterable[T]]],
    work_on: Callable[[T], Awaitable[None]],
    *,
    concurrency: int,
) -> None:
    """Work on claimed rows, batch by batch, until `claim` returns an empty one: nothing is due."""
    waiting: deque[T] = deque()
    claiming = asyncio.Lock()
    empty_claims = 0

    async def next_row() -> T | None:
        nonlocal empty_claims
        # One claim at a time: the other consumers wait and take rows of the same batch. If it is
        # empty, that answers all who waited for it, and they do not ask the ledger again.
        before = empty_claims
        async with claiming:
            if not waiting and empty_claims == before:
                waiting.extend(await claim())
                empty_claims += not waiting
            return waiting.popleft() if waiting else None

    async def consume() -> None:
        while (row := await next_row()) is not None:
            await work_on(row)

    await run_concurrently(consume() for _ in range(concurrency))


def first_cause(error: BaseException) -> BaseException:
    """Return the first error of nested groups; the other tasks were only cancelled by it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_ledger_failure(error: BaseException) -> bool:
    # Here, because worker processes that know no ledger need not load SQLAlchemy.
    from sqlalchemy import exc

    if not isinstance(error, exc.SQLAlchemyError):
        return False
    if isinstance(error, exc.DataError | exc.IntegrityError):
        return False
    code = getattr(getattr(error, "orig", None), "pgcode", None)
    if code is not None:
        return not str(code).startswith(_VALUE_ERRORS)
    # A value that cannot be bound to its column fails before the statement is sent.
    return isinstance(error, exc.DBAPIError) or not isinstance(error, exc.StatementError)


def _is_ours(filename: str) -> bool:
    return Path(filename).is_relative_to(_PACKAGE) and filename != __file__


def _one_line(text: str) -> str:
    line = normalize_spaces(scrub_text(text))
    return line if len(line) <= _MAX_CAUSE else f"{line[: _MAX_CAUSE - 1]}…"
