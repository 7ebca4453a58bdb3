"""Write log lines as text or as one JSON object each: what they are about, and no secrets.

    with bound(feed=url):
        _log.warning("the feed is empty")      # the line says which feed, run, asset and partition

What is bound holds for the block, for tasks of asyncio that it starts, for functions that go
through `carried`, and for the worker processes of a pool. `bind_process` holds for every thread.
"""

import json
import logging
import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal, ParamSpec, TypeVar

from news_platform.errors import hide_addresses, redacted

P = ParamSpec("P")
T = TypeVar("T")
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

# A name of a unit is foreign text: a URL may have megabytes.
_LONGEST_FACT = 500
_NO_FACTS: Mapping[str, str] = {}
_bound: ContextVar[Mapping[str, str]] = ContextVar("bound", default=_NO_FACTS)
_of_process: dict[str, str] = {}


class _Configured:
    """The format and the least level in force, and their handler."""

    options: tuple[LogFormat, LogLevel] = ("text", "warning")
    handler: logging.Handler | None = None


class bound:
    """Add facts, such as a feed or a WARC, to every line inside the block.

    Not a generator, which would take several times as long: every page of the crawl has its block.
    """

    __slots__ = ("_before", "_facts")

    def __init__(self, **facts: str) -> None:
        self._facts = facts
        self._before = _NO_FACTS

    def __enter__(self) -> None:
        self._before = before = _bound.get()
        _bound.set({**before, **self._facts})

    def __exit__(self, *_: object) -> None:
        # Set back by value: a generator may end its block in another context than it began in.
        _bound.set(self._before)


def bind_process(**facts: str) -> None:
    """Replace the facts of all lines of this process, such as its run."""
    _of_process.clear()
    _of_process.update(facts)


def bound_facts() -> dict[str, str]:
    """Return the facts of a line that would be written here."""
    return {**_of_process, **_bound.get()}


def carried(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function with the facts that are bound now, for a thread that has none."""
    facts = _bound.get()

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        token = _bound.set(facts)
        try:
            return function(*args, **kwargs)
        finally:
            _bound.reset(token)

    return run


def configure_logging(
    form: LogFormat,
    level: LogLevel,
    *,
    secrets: Collection[str] = (),
    logger: str | None = None,
) -> None:
    """Write the lines of a logger, of all loggers if None, to stderr; the last call counts."""
    if _Configured.handler is not None:
        for place in (None, _OURS):
            logging.getLogger(place).removeHandler(_Configured.handler)
    handler = _StderrHandler()
    handler.setFormatter(LineFormatter(form, secrets))
    logging.getLogger(logger).addHandler(handler)
    # Ours alone: at debug, libraries would write a line per request and per query.
    logging.getLogger(_OURS).setLevel(level.upper())
    _Configured.options, _Configured.handler = (form, level), handler


def is_configured() -> bool:
    """Return whether this process has chosen how to write its lines."""
    return _Configured.handler is not None


def options_in_force() -> tuple[LogFormat, LogLevel]:
    """Return format and level, for a worker process; a process without has the defaults."""
    return _Configured.options


_OURS = "news_platform"


class _StderrHandler(logging.Handler):
    """Write to whatever stderr is at the moment, so that a captured one gets the lines, too."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
        except (OSError, ValueError, RecursionError):
            # A closed terminal must not end the work.
            self.handleError(record)


class LineFormatter(logging.Formatter):
    """Format a record as one line, with its facts and without secrets."""

    def __init__(self, form: LogFormat, secrets: Collection[str] = ()) -> None:
        super().__init__()
        self._form = form
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        facts = {
            name: self._shown(value)[:_LONGEST_FACT]
            for name, value in bound_facts().items()
            if value
        }
        message = self._shown(record.getMessage())
        trace = self._shown(self.formatException(record.exc_info)) if record.exc_info else ""
        to_line = _json_line if self._form == "json" else _text_line
        return to_line(record, message, facts, trace)

    def _shown(self, text: str) -> str:
        """Return a text without secrets; Dagster keeps the lines of runs, so without addresses."""
        kept = redacted(text, self._secrets)
        return hide_addresses(kept) if "run_id" in _of_process else kept


def _json_line(
    record: logging.LogRecord, message: str, facts: Mapping[str, str], trace: str
) -> str:
    document: dict[str, object] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "process": os.getpid(),
        **facts,
        "message": message,
    }
    if trace:
        document["exception"] = trace
    return json.dumps(document, ensure_ascii=False)


def _text_line(
    record: logging.LogRecord, message: str, facts: Mapping[str, str], trace: str
) -> str:
    # By repr where a value has spaces or line breaks: foreign text could forge a line.
    shown = " ".join(
        f"{name}={value if value.isprintable() and ' ' not in value else repr(value)}"
        for name, value in facts.items()
    )
    line = f"{record.levelname.lower()}: {message.replace(chr(10), ' ')}"
    return "\n".join(filter(None, (f"{line} [{shown}]" if shown else line, trace)))
