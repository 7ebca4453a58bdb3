"""Make a function a command: it gets opened resources and returns what the command prints.

`@command(group)` adds `--root` and `--json`, loads the settings, opens the root, and prints the
returned `Output` as one JSON document or as text.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import click

from news_platform.cli.options import emit, json_option, resources_for, root_option, settings_for
from news_platform.errors import NewsPlatformError
from news_platform.resources import open_resources
from news_platform.storage.commit.root import RootAccess


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints: a document, its text (None: the document), and a failure to raise."""

    document: object
    text: str | None = None
    failure: NewsPlatformError | None = None


Function = Callable[..., Output | None]


@click.command()
@root_option
@json_option
def _shared(root: str, as_json: bool) -> None:
    """Hold the options that all commands share."""


def command(
    group: click.Group | None = None,
    name: str | None = None,
    *,
    access: RootAccess | Callable[..., RootAccess] | None = RootAccess.READ,
    must_exist: bool = True,
    has_json: bool = True,
) -> Callable[[Function], click.Command]:
    """Make a function a command of a group, with `--root` and `--json`.

    The function gets the resources of the root and the values of its own options. `access` may
    depend on these; if it is None, the function gets the settings and opens nothing. A root that is
    only read has to exist unless `must_exist` is False. A function that prints by itself has a
    parameter `as_json`, and returns None.
    """

    def decorate(function: Function) -> click.Command:
        wants_json = "as_json" in inspect.signature(function).parameters

        @functools.wraps(function)
        def run(root: str, as_json: bool = False, **given: object) -> None:
            wanted = access(**given) if callable(access) else access
            if wanted is None:
                opened: object = settings_for(root)
            elif must_exist:
                opened = resources_for(root, wanted)
            else:
                opened = open_resources(settings_for(root), access=wanted)
            more = {"as_json": as_json} if wants_json else {}
            show(function(opened, **given, **more), as_json=as_json)

        made = click.command(name)(run)
        made.params += _shared.params if has_json else _shared.params[:1]
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def show(output: Output | None, *, as_json: bool) -> None:
    """Print an output, then raise its failure, if it has one."""
    if output is None:
        return
    emit(output.document, as_json=as_json, text=output.text)
    if output.failure is not None:
        raise output.failure


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
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def counted(counts: Mapping[str, int]) -> str:
    """Return counts as `name 1, other 2`, sorted by name; '' without any."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def json_value(value: object) -> object:
    """Return a value for JSON: times in ISO 8601, everything else unchanged."""
    return value.isoformat() if isinstance(value, datetime) else value


def first_of(things: Sequence[str], *, shown: int = 3) -> str:
    """Return the first of many names, and how many more there are."""
    more = f" and {len(things) - shown} more" if len(things) > shown else ""
    return ", ".join(things[:shown]) + more
