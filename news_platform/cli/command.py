"""Make a function a command: it gets opened resources and returns what the command prints.

`@command(group)` adds `--root` and `--json`, loads the settings, opens the root, and prints the
returned `Output` as one JSON document or as text. The types of parameters are here, too.
"""

import errno
import functools
import inspect
import json
import os
import re
import socket
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import click

from news_platform.errors import ConfigError, InputError, NewsPlatformError
from news_platform.resources import Resources, open_resources
from news_platform.settings import Settings, load_settings
from news_platform.storage.commit.root import RootAccess, require_data
from news_platform.text.readable import as_day

if TYPE_CHECKING:
    from rich.progress import Progress

# The largest number that SQLite, PostgreSQL and Python's slices accept.
_LARGEST = 2**63 - 1
# What takes over a terminal; the first group is our own bold print.
_CONTROL = re.compile("(\x1b\\[[01]m)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Of a command that says nothing.
_QUIET_SECONDS = 3.0
# Wider rows are shown one below the other.
_MOST_COLUMNS = 9
# More than ten years: every day costs reads of its listing and its markers.
_MOST_DAYS = 4_000
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


allow_removal_option = click.option(
    "--allow-removal",
    is_flag=True,
    help="Remove what has lost its inputs, also more than the limit on removals.",
)


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints: a document, its text (None: derived), and a failure to raise."""

    document: object
    text: str | None = None
    failure: NewsPlatformError | None = None


Function = Callable[..., Output | None]


def _root(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    # An empty value is often a variable that is not set: it must not mean ./data.
    if value == "":
        raise click.BadParameter("it is empty: expected a folder or URL")
    return load_settings(os.environ).root if value is None else value


_JSON_OPTION = click.Option(
    ["--json", "as_json"], is_flag=True, help="Print one JSON document to standard output."
)


def command(
    group: click.Group | None = None,
    name: str | None = None,
    *,
    access: RootAccess | Callable[..., RootAccess] | None = RootAccess.READ,
    must_exist: bool = True,
    has_json: bool = True,
    has_progress: bool = False,
    default_root: str | None = None,
) -> Callable[[Function], click.Command]:
    """Make a function a command of a group, with `--root` and `--json`.

    The function gets the resources of the root and the values of its own options. `access` may
    depend on these; if it is None, the function gets the settings and opens nothing. A root that is
    only read has to exist unless `must_exist` is False. A function that prints by itself has a
    parameter `as_json`, and returns None. A command that shows no progress of its own shows on a
    terminal for how long it has been at work.
    """

    def decorate(function: Function) -> click.Command:
        wants_json = "as_json" in inspect.signature(function).parameters
        # Servers have no JSON, and those who print by themselves say that they are at work.
        is_silent = has_json and not wants_json and not has_progress

        @functools.wraps(function)
        def run(root: str, as_json: bool = False, **given: object) -> None:
            wanted = access(**given) if callable(access) else access
            if wanted is None:
                opened: object = settings_for(root)
            else:
                opened = resources_for(root, wanted, must_exist=must_exist)
            more = {"as_json": as_json} if wants_json else {}
            with _clock() if is_silent else nullcontext():
                output = function(opened, **given, **more)
            show(output, as_json=as_json)

        made = click.command(name)(run)
        default = default_root or "NEWS_PLATFORM_ROOT, else ./data"
        text = f"Folder or URL of all data; default: {default}."
        made.params.append(
            click.Option(["--root"], default=default_root, callback=_root, help=text)
        )
        made.params += [_JSON_OPTION] if has_json else []
        if group is not None:
            group.add_command(made)
        return made

    return decorate


@contextmanager
def _clock() -> Iterator[None]:
    """Show on a terminal, after a few seconds, for how long the block has been at work."""
    if not sys.stderr.isatty():
        yield
        return
    ended, began = threading.Event(), time.monotonic()

    def show_seconds() -> None:
        if ended.wait(_QUIET_SECONDS):
            return
        # The cursor stays at the start of the line, so that other output overwrites it.
        os.write(2, f"\r\x1b[K… {_QUIET_SECONDS:.0f} s\r".encode())
        while not ended.wait(1.0):
            os.write(2, f"… {time.monotonic() - began:.0f} s\r".encode())
        os.write(2, b"\x1b[K")

    watch = threading.Thread(target=show_seconds, daemon=True, name="clock")
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def progress() -> "Progress":
    """Return progress bars on standard error, which vanish when they are done."""
    # Rich takes a tenth of a second to load.
    from rich.console import Console
    from rich.progress import Progress

    return Progress(console=Console(stderr=True), transient=True)


def settings_for(root: str) -> Settings:
    """Return the settings of this process with the given root."""
    return load_settings(os.environ).model_copy(update={"root": root})


def resources_for(
    root: str, access: RootAccess = RootAccess.READ, *, must_exist: bool = True
) -> Resources:
    """Return the resources of the given root, which must exist if it is only read."""
    resources = open_resources(settings_for(root), access=access)
    if access is RootAccess.READ and must_exist:
        # A mistyped root must not look like an empty one.
        require_data(resources.data_root.store)
    return resources


def show(output: Output | None, *, as_json: bool) -> None:
    """Print an output as one JSON document or as text, then raise its failure, if it has one."""
    if output is None:
        return
    text = output.text
    if as_json:
        text = json.dumps(output.document, ensure_ascii=False, indent=2, default=str)
    echo(as_text(output.document) if text is None else text)
    if output.failure is not None:
        raise output.failure


def echo(text: str | bytes, *, nl: bool = True) -> None:
    """Print a text; to a terminal without control characters, which could take it over."""
    given = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    click.echo(printable(given), nl=nl)


def printable(text: str) -> str:
    """Return what standard output gets of a text: files and pipes get all of it."""
    return _CONTROL.sub(lambda found: found[1] or "", text) if sys.stdout.isatty() else text


def as_text(document: object) -> str:
    """Return a document as text: a line per field, then its parts, and lists of rows as tables."""
    if isinstance(document, Sequence) and not isinstance(document, str):
        return rows_table(document) if document else "nothing"
    if not isinstance(document, Mapping):
        return str(document)
    lines, parts = [], []
    width = max(map(len, document), default=0)
    for name, value in document.items():
        if _is_rows(value):
            shown = rows_table(value) if len(value[0]) <= _MOST_COLUMNS else _blocks(value)
            parts.append(f"\n{name}\n{shown}")
        elif isinstance(value, Mapping) and not all(isinstance(it, int) for it in value.values()):
            parts.append(f"\n{name}\n{_blocks([value])}")
        else:
            lines.append(f"{name:<{width}}  {_cell(value)}".rstrip())
    return "\n".join(lines + parts)


def _is_rows(value: object) -> TypeGuard[Sequence[Mapping[str, object]]]:
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping)


def _blocks(rows: Sequence[Mapping[str, object]]) -> str:
    """Return each row as indented lines of what it states."""
    stated = (
        {name: it for name, it in row.items() if it not in (None, "", [], {})} for row in rows
    )
    return "\n\n".join(textwrap.indent(as_text(row), "  ").strip("\n") for row in stated)


def rows_table(rows: Sequence[Any]) -> str:
    """Return documents of the same fields as a table."""
    return table(tuple(rows[0]), [tuple(row.values()) for row in rows])


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return aligned columns; columns of numbers are aligned to the right."""
    body = [list(row) for row in rows]
    columns = list(zip(head, *[map(_cell, row) for row in body], strict=True))
    widths = [max(map(len, column)) for column in columns]
    is_number = [
        bool(body) and all(isinstance(row[index], int | float | None) for row in body)
        for index in range(len(head))
    ]
    lines = (
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, is_number, strict=True)
        )
        for line in zip(*columns, strict=True)
    )
    return "\n".join(line.rstrip() for line in lines)


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.1f}"
        case Mapping():
            return counted(value)
        case list() | tuple():
            return ", ".join(map(str, value))
    return str(value)


def counted(counts: Mapping[str, object]) -> str:
    """Return counts as `name 1, other 2`, sorted by name; '' without any."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def json_value(value: object) -> object:
    """Return a value for JSON: times in ISO 8601, everything else unchanged."""
    return value.isoformat() if isinstance(value, datetime) else value


def first_of(things: Sequence[str], *, shown: int = 3) -> str:
    """Return the first of many names, and how many more there are."""
    more = f" and {len(things) - shown} more" if len(things) > shown else ""
    return ", ".join(things[:shown]) + more


def first_failure(failed: Mapping[str, str], what: str) -> InputError | None:
    """Return the failure of a command that could not do all, with the reason of the first."""
    if not failed:
        return None
    thing, reason = next(iter(failed.items()))
    return InputError(f"{len(failed)} {what} failed, first {thing!r}: {reason}", thing=thing)


class _Count(click.IntRange):
    """A number of things, up to the largest that databases accept, which nobody needs to see."""

    def _describe_range(self) -> str:
        return f"of numbers from {self.min} on"


def count_type(least: int = 0) -> click.IntRange:
    """Return the type of a number of things."""
    return _Count(least, _LARGEST)


class Parsed(click.ParamType[Any]):
    """A value that a function parses; its InputError is wrong use of the option."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value."""
        try:
            return self._parse(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


DAY = Parsed("day", as_day)


class DaysParam(click.ParamType[list[date]]):
    """A day or a range of days: `2025-11-01` or `2025-11-01..2025-11-07`, both ends included."""

    name = "day[..day]"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[date]:
        """Return every day of the range."""
        first, _, last = value.partition("..")
        start, end = (DAY.convert(day, param, ctx) for day in (first, last or first))
        if end < start:
            self.fail(f"invalid range {value!r}: it ends before it starts")
        if (end - start).days >= _MOST_DAYS:
            self.fail(f"invalid range {value!r}: expected at most {_MOST_DAYS} days at once")
        return [start + timedelta(days=count) for count in range((end - start).days + 1)]


class FileParam(click.Path):
    """A regular file, never a pipe or a device such as /dev/zero, which may never end.

    A file to read exists, and so does the folder of a file to write.
    """

    def __init__(self, *, exists: bool) -> None:
        super().__init__(exists=exists, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path of the file."""
        try:
            path = Path(os.fsdecode(super().convert(value, param, ctx)))
            is_special = path.exists() and not path.is_file()
        except (OSError, ValueError) as error:  # a name that no file can have
            cause = error.strerror if isinstance(error, OSError) else str(error)
            self.fail(f"invalid path {str(value)[:100]!r}: {cause}", param, ctx)
        if is_special:
            self.fail(f"{str(value)!r} is a pipe or a device: expected a file", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"there is no folder {str(path.parent)!r}: create it first", param, ctx)
        return path


INPUT_FILE = FileParam(exists=True)
OUTPUT_FILE = FileParam(exists=False)


def redo_option(text: str) -> Callable[[Decorated], Decorated]:
    """Return the option that chooses what is built again."""
    choice = click.Choice(["missing", "outdated", "all"])
    return click.option("--redo", type=choice, default="outdated", show_default=True, help=text)


raw_option = click.option(
    "--raw", is_flag=True, help="Do not quote, in CSV, what a spreadsheet would run as a formula."
)


def port_option(name: str, default: int | None, text: str) -> Callable[[Decorated], Decorated]:
    """Return an option for a port of this machine."""
    bounds = click.IntRange(1, 65_535)
    return click.option(name, default=default, type=bounds, show_default=True, help=text)


def refuse_taken_port(host: str, port: int, *, cure: str) -> None:
    """Raise ConfigError if a server could not listen on this address."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            message = f"port {port} of {host} is in use: stop the process that listens there"
        else:
            cause = getattr(error, "strerror", None) or str(error)
            message = f"cannot listen on port {port} of {host}: {cause}"
        raise ConfigError(f"{message}, or {cure}") from error
