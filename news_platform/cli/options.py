"""Options and output that all commands share."""

import errno
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from news_platform.errors import ConfigError
from news_platform.resources import Resources, open_resources
from news_platform.settings import Settings, load_settings
from news_platform.storage.commit.root import RootAccess, require_data
from news_platform.takedowns.build_filters import OptionsT, obeying

# The largest number that SQLite, PostgreSQL and Python's slices accept.
_LARGEST = 2**63 - 1
Command = TypeVar("Command", bound=Callable[..., Any])


def count_type(least: int = 0) -> click.IntRange:
    """Return the type of a number of things; no database accepts a number above the largest."""
    return click.IntRange(least, _LARGEST)


class InputFile(click.Path):
    """An existing regular file: reading a pipe or a device such as /dev/zero may never end."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path of the file."""
        path = _checked_path(super().convert, value, param, ctx)
        if not path.is_file():
            self.fail(f"{str(value)!r} is a pipe or a device: expected a file", param, ctx)
        return path


class OutputFile(click.Path):
    """A file to write in a folder that exists; never a pipe, a device or a folder."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path of the file."""
        path = _checked_path(super().convert, value, param, ctx)
        if path.exists() and not path.is_file():
            self.fail(f"{str(value)!r} is a pipe or a device: expected a file", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"there is no folder {str(path.parent)!r}: create it first", param, ctx)
        return path


def _checked_path(convert: Callable[..., Any], value: Any, *rest: Any) -> Path:
    """Convert a path; a name that no file can have is wrong use, not a crash."""
    try:
        return Path(convert(value, *rest))
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise click.BadParameter(f"invalid path {str(value)[:100]!r}: {cause}") from error


def root_option(command: Command) -> Command:
    """Add `--root`; the command gets `root: str` from the option, the setting or its default."""
    return click.option(
        "--root",
        callback=_root,
        help="Folder or URL of all data; default: NEWS_PLATFORM_ROOT, else ./data.",
    )(command)


def _root(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    # An empty value is often a variable that is not set: it must not mean ./data.
    if value == "":
        raise click.BadParameter("it is empty: expected a folder or URL")
    return load_settings(os.environ).root if value is None else value


def json_option(command: Command) -> Command:
    """Add `--json`; the command gets `as_json: bool`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document to standard output."
    )(command)


def settings_for(root: str) -> Settings:
    """Return the settings of this process with the given root."""
    return load_settings(os.environ).model_copy(update={"root": root})


def resources_for(root: str, access: RootAccess = RootAccess.READ) -> Resources:
    """Return the resources of the given root, which must exist unless `access` is CREATE."""
    resources = open_resources(settings_for(root), access=access)
    if access is RootAccess.READ:
        # A person who mistyped the root should not see it as an empty one.
        require_data(resources.data_root.store)
    return resources


def with_takedowns(options: OptionsT, resources: Resources) -> OptionsT:
    """Return options of the rss pipeline that obey the root's takedowns."""
    return obeying(options, resources.data_root.store, now=resources.clock.now())


def emit(document: object, *, as_json: bool, text: str | None = None) -> None:
    """Print a result as one JSON document, or as text if there is one."""
    shown = json.dumps(document, ensure_ascii=False, indent=2, default=str)
    click.echo(shown if as_json or text is None else text)


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
