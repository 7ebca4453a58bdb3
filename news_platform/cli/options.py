"""Options and output that all commands share."""

import json
import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from news_platform.resources import Resources, open_resources
from news_platform.settings import Settings, load_settings

Command = TypeVar("Command", bound=Callable[..., Any])


def root_option(command: Command) -> Command:
    """Add `--root`; the command gets `root: str` from the option, the setting or its default."""
    return click.option(
        "--root",
        callback=lambda _context, _option, value: value or load_settings(os.environ).root,
        help="Folder or URL of all data; default: NEWS_PLATFORM_ROOT, else ./data.",
    )(command)


def json_option(command: Command) -> Command:
    """Add `--json`; the command gets `as_json: bool`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document to standard output."
    )(command)


def settings_for(root: str) -> Settings:
    """Return the settings of this process with the given root."""
    return load_settings(os.environ).model_copy(update={"root": root})


def resources_for(root: str) -> Resources:
    """Return the resources of the given root."""
    return open_resources(settings_for(root))


def emit(document: object, *, as_json: bool, text: str | None = None) -> None:
    """Print a result as one JSON document, or as text if there is one."""
    shown = json.dumps(document, ensure_ascii=False, indent=2, default=str)
    click.echo(shown if as_json or text is None else text)
