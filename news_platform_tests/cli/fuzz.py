"""Generate command lines from the commands' own option types.

Every command is found by walking the command tree, so a new one is covered without a change here.
A line is a mix of valid and hostile values; for some values it is known that the line must fail.
"""

import contextlib
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from news_platform.cli.main import main

# Commands that build the sample world or serve until interrupted: always with a value they refuse.
RUNS_LONG = frozenset({"demo", "dev", "metrics", "serve", "mcp"})
# These look at files or at the crawl, and need no root.
READS_NO_ROOT = frozenset({"segment"})

_HUGE = ("1" + "0" * 21, "-" + "9" * 30, "9" * 5000)
_TEXTS = (
    "", " ", "a", "x" * 5000, "%s%n", "../../x", "~nouser/x", "Ünïcödé", "a\udcffb", "\x01", "a\nb",
    "nan", "0001-01-01", "9999-12-31", "ftp://h/x", "javascript:alert(1)", "file:///dev/zero",
    "http://[x", "http://127.0.0.1:9/", "--", "de|media|2025-11-01", "de|media|9999-12-31", "|||",
    "' or 1=1", "select 1", "show", "例え.jp", "127.0.0.1", "a" * 300 + ".org", "\ufeff", "{}",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2025-13-45", "**/*", "/dev/zero",
)  # fmt: skip
_DAYS = (
    "0001-01-01", "9999-12-31", "0001-01-01..9999-12-31", "9999-12-31..0001-01-01", "2025-11-01",
    "2025-11", "0001-01", "9999-12", "2025-11-01..", "..", "nan", "10000-01-01", "2025-11-31",
)  # fmt: skip
# No parameter takes these, whether it wants a day, a month, an instant or a range.
_WRONG_DAYS = frozenset(
    {"9999-12-31..0001-01-01", "0001-01-01..9999-12-31", "..", "nan", "10000-01-01", "2025-11-31"}
)
_DAY_NAMES = ("day", "days", "since", "at")


@dataclass(frozen=True, slots=True)
class Box:
    """A folder with the files and folders that the lines name."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> "Box":
        """Create the good and the hostile files."""
        for name in ("cwd", "home", "tmp", "inputs/folder"):
            (folder / name).mkdir(parents=True)
        inputs = folder / "inputs"
        (inputs / "empty").touch()
        (inputs / "noise.html").write_bytes(random.Random(1).randbytes(5000))
        (inputs / "page.html").write_text("<html><body><p>The mayor opened it.</p></body></html>")
        (inputs / "feeds.opml").write_text("<opml><body></body></opml>")
        (inputs / "raw.json").write_text('{"domains": []}')
        os.mkfifo(inputs / "fifo")
        os.mkfifo(inputs / "fifo.jsonl")
        (inputs / "dangling").symlink_to(inputs / "missing")
        (inputs / "loop").symlink_to(inputs / "loop")
        return cls(folder)

    def root(self, number: int) -> Path:
        """Return the place of a good root."""
        return self.folder / "roots" / f"r{number}"

    def files(self) -> tuple[str, ...]:
        """Return names of files, few of which are good."""
        inputs = self.folder / "inputs"
        names = ("empty", "noise.html", "page.html", "feeds.opml", "raw.json", "fifo", "folder",
                 "dangling", "loop", "missing", "missing/x", "page.html/x")  # fmt: skip
        special = ("/dev/zero", "/dev/null", "~nouser", "", "n" * 400, "a\udcff", "/proc/self/mem")
        return (*(str(inputs / name) for name in names), *special)

    def outputs(self) -> tuple[str, ...]:
        """Return places to write to; all but the first two must be refused."""
        inputs = self.folder / "inputs"
        names = ("fifo.jsonl", "folder", "missing/x.jsonl", "page.html/x.jsonl", "dangling/x.jsonl")
        good = (str(self.folder / "tmp/out.jsonl"), str(self.folder / "tmp/out.parquet"))
        return (*good, *(str(inputs / name) for name in names), "/dev/full", "o" * 400 + ".jsonl")

    def bad_roots(self) -> tuple[str, ...]:
        """Return roots that every command must refuse."""
        inputs = self.folder / "inputs"
        names = ("page.html", "fifo", "dangling", "dangling/x", "loop", "page.html/x")
        special = ("/dev/zero", "/proc/self", "/proc/self/new", "~nouser/x", "", "r" * 400,
                   "r\udcff", "a\nb", "ftp://h/x", "javascript:x://y", "file://", "file://host/x",
                   "s3://", "gs://", "http://127.0.0.1:9/x")  # fmt: skip
        return (*(str(inputs / name) for name in names), *special)


@dataclass(frozen=True, slots=True)
class Line:
    """A command line; `must_fail` if a value in it is wrong whatever the root holds."""

    words: tuple[str, ...]
    must_fail: bool


def commands(
    command: click.Command = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that call it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from commands(found, (*path, name))


def lines(box: Box, *, seed: int, count: int) -> Iterator[Line]:
    """Yield command lines; each command has its turn."""
    choose = random.Random(seed)
    found = list(commands())
    for number in range(count):
        path, command = found[number % len(found)]
        yield _line(path, command, box, choose)


def _line(path: tuple[str, ...], command: click.Command, box: Box, choose: random.Random) -> Line:
    """Return a line in which one value, rarely all of them, is hostile."""
    given = [param for param in command.params if _is_given(param, choose)]
    named = [param for param in given if param.name != "root"]
    is_bad_root = path[0] in RUNS_LONG or not named or choose.random() < 0.15
    hostile = named if choose.random() < 0.1 else choose.sample(named, min(len(named), 1))
    options: list[str] = []
    places: list[str] = []
    wrong = False
    for param in named:
        value, is_wrong = (
            _value(param, box, choose) if param in hostile else (_good(param, box), False)
        )
        wrong |= is_wrong
        if isinstance(param, click.Option):
            options += [param.opts[-1]] if param.is_flag else [param.opts[-1], value]
        else:
            places += ["--", value] if value.startswith("-") else [value]
    root = choose.choice(box.bad_roots()) if is_bad_root else str(box.root(choose.randrange(3)))
    if all(param.name != "root" for param in command.params):
        return Line((*path, *options, *places), wrong)
    must_fail = wrong or (is_bad_root and command.name not in READS_NO_ROOT)
    return Line((*path, "--root", root, *options, *places), must_fail)


def _is_given(param: click.Parameter, choose: random.Random) -> bool:
    return param.required or choose.random() < (0.3 if getattr(param, "is_flag", False) else 0.6)


def _good(param: click.Parameter, box: Box) -> str:
    """Return a value that its type accepts."""
    kind = param.type
    if isinstance(kind, click.Choice):
        return str(kind.choices[0])
    if isinstance(kind, click.types.IntParamType):
        return "1"
    if isinstance(kind, click.Path):
        return str(box.folder / "inputs/page.html") if kind.exists else box.outputs()[0]
    if isinstance(kind, click.DateTime):
        return datetime(2025, 11, 1, tzinfo=UTC).strftime(kind.formats[0])
    return "2025-11-01" if param.name in _DAY_NAMES else "a"


def _value(param: click.Parameter, box: Box, choose: random.Random) -> tuple[str, bool]:
    """Return a value for a parameter, and whether the line must fail by it."""
    kind = param.type
    if isinstance(kind, click.Choice):
        value = choose.choice([*map(str, kind.choices), "", "nan"])
        return value, value not in kind.choices
    if isinstance(kind, click.types.IntParamType):
        value = choose.choice(["1", "3", "0", "-1", "nan", "", "1.5", "0x10", *_HUGE])
        return value, value not in ("1", "3", "0", "-1")
    if isinstance(kind, click.Path):
        names = box.files() if kind.exists else box.outputs()
        value = choose.choice(names)
        return value, not Path(value[:200]).is_file() and value not in box.outputs()[:2]
    if isinstance(kind, click.DateTime):
        value = choose.choice(_DAYS)
        return value, not _is_time(value, kind.formats)
    if kind.name == "day[..day]" or param.name in _DAY_NAMES:
        value = choose.choice(_DAYS)
        return value, value in _WRONG_DAYS
    return choose.choice(_TEXTS), False


def _is_time(value: str, formats: Sequence[str]) -> bool:
    for form in formats:
        with contextlib.suppress(ValueError):
            datetime.strptime(value, form).replace(tzinfo=UTC)
            return True
    return False
