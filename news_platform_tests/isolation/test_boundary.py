"""The boundary of a unit: which failures end there, and which end the batch."""

import asyncio
import errno
import logging
import sqlite3

import pytest
import sqlalchemy as sa

from news_platform.errors import ConfigError, FetchError, InputError, NewsPlatformError
from news_platform.isolation.boundary import boundary, describe_cause, run_concurrently
from news_platform.storage.objects.store import NotFound
from news_platform.web.urls import registrable_domain


class PanicException(BaseException):
    """A stand-in for the panic of a library in Rust."""


class _PostgresError(Exception):
    """An error of psycopg2, which has the server's code."""

    def __init__(self, pgcode: str) -> None:
        super().__init__(pgcode)
        self.pgcode = pgcode


def _sql(kind: type[sa.exc.DBAPIError], cause: Exception) -> sa.exc.DBAPIError:
    return kind("select 1", {}, cause)


UNITS = {
    "value": ValueError("bad"),
    "recursion": RecursionError("too deep"),
    "fetch": FetchError("no answer"),
    "damaged bytes": OSError("not a gzip file"),
    "reset": ConnectionResetError(errno.ECONNRESET, "reset"),
    "timeout": TimeoutError(errno.ETIMEDOUT, "timed out"),
    "panic": PanicException("index out of bounds"),
    "group": ExceptionGroup("two", [ValueError("a"), KeyError("b")]),
    "constraint": _sql(sa.exc.IntegrityError, sqlite3.IntegrityError("unique")),
    "index key": _sql(sa.exc.OperationalError, _PostgresError("54000")),
}
OURS = {
    "storage": NotFound("gone"),
    "config": ConfigError("no worker"),
    "memory": MemoryError(),
    "disk full": OSError(errno.ENOSPC, "no space"),
    "ledger": _sql(sa.exc.OperationalError, sqlite3.OperationalError("locked")),
    "corrupt ledger": _sql(sa.exc.DatabaseError, sqlite3.DatabaseError("malformed")),
    "server": _sql(sa.exc.OperationalError, _PostgresError("57P01")),
    "connections": sa.exc.TimeoutError("pool limit"),
    "group": ExceptionGroup("two", [ValueError("a"), NotFound("b")]),
    "cancelled": asyncio.CancelledError(),
    "interrupt": KeyboardInterrupt(),
}


@pytest.mark.parametrize("error", UNITS.values(), ids=UNITS)
def test_a_failure_of_the_unit_ends_at_the_boundary(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    with boundary("feed", "https://a.example/\n\ud800") as unit:
        raise error
    assert unit.cause
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and record.exc_info is None
    assert record.getMessage() == f"feed 'https://a.example/\\n\\ud800' failed: {unit.cause}"
    record.getMessage().encode()


@pytest.mark.parametrize("error", OURS.values(), ids=OURS)
def test_a_failure_of_ours_passes_the_boundary(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(type(error)) as raised, boundary("feed", "x"):
        raise error
    assert raised.value is error
    assert caplog.records == []


def test_a_cause_names_the_type_and_the_line_of_ours_that_raised() -> None:
    with boundary("host", "x") as unit:
        registrable_domain(7)
    assert unit.cause.startswith("AttributeError: 'int' object has no attribute 'strip'")
    assert "(web/urls.py:" in unit.cause


def test_a_cause_is_one_short_line_that_any_file_holds() -> None:
    cause = describe_cause(ValueError("a\n\x00b\ud800" + "x" * 5_000))
    assert cause.startswith("ValueError: a b\ufffdxxx") and len(cause) == 300
    assert describe_cause(InputError("not a feed")) == "not a feed"
    assert issubclass(InputError, NewsPlatformError)


def test_a_failing_task_ends_the_others_before_its_error_is_raised() -> None:
    ended: list[str] = []

    async def fail() -> None:
        await asyncio.sleep(0)
        raise NotFound("the root is gone")

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def go() -> list[str]:
        with pytest.raises(NotFound, match="the root is gone"):
            await run_concurrently([work(), fail(), work()])
        return list(ended)

    assert asyncio.run(go()) == ["cancelled", "cancelled"]
