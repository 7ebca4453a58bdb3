"""The command `news-platform`: import the called command, print errors as one line."""

import ast
import contextlib
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from news_platform.errors import ConfigError, NewsPlatformError, redacted
from news_platform.isolation.worker import forbid_core_dumps
from news_platform.text.normalize import scrub_text

# The module of each command in this package. It is imported only when the command is called, so
# that `--help` and small commands start at once.
COMMANDS = {
    "adopt": "operations",
    "ccnews": "ccnews",
    "corpus": "corpus",
    "demo": "demo",
    "dev": "servers",
    "doctor": "operations",
    "domains": "domains",
    "explain": "queries",
    "feeds": "feeds",
    "ledger": "ledger",
    "mcp": "servers",
    "metrics": "servers",
    "pause": "operations",
    "records": "records",
    "resume": "operations",
    "retention": "retention",
    "retry": "operations",
    "rss": "rss",
    "search": "queries",
    "serve": "servers",
    "sql": "queries",
    "status": "operations",
    "store": "store",
    "takedown": "takedown",
}


class LazyGroup(click.Group):
    """A group that imports a command on first use."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse text that no database, file or terminal could take, whatever option it is for."""
        for word in args:
            # Bytes that are not UTF-8 arrive as surrogates.
            if "\0" in word or any("\ud800" <= letter <= "\udfff" for letter in word):
                raise click.UsageError(f"invalid argument {word[:100]!a}: expected UTF-8 text")
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands without importing them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"{__package__}.{COMMANDS[cmd_name]}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the first sentence of each command's docstring, without importing it."""
        texts = {module: _first_sentences(module) for module in set(COMMANDS.values())}
        with formatter.section("Commands"):
            formatter.write_dl([(name, texts[module][name]) for name, module in COMMANDS.items()])


def _first_sentences(module: str) -> dict[str, str]:
    """Return the first line of the docstring of every function in a module of this package."""
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return {one.name: (ast.get_docstring(one) or "").partition("\n")[0] for one in functions}


@click.group(cls=LazyGroup)
@click.version_option(package_name="news-platform")
@click.pass_obj
def main(prepare: Callable[[], None] | None) -> None:
    """Collect, store and read news data: crawl, domains, feeds and stored pages."""
    if prepare is not None:
        prepare()


def _configure_logs() -> None:
    """Configure log lines by the settings; the command itself reports a wrong setting."""
    # Imported here: only a command pays for loading the settings.
    from news_platform.logs import configure_logging
    from news_platform.settings import load_settings

    with contextlib.suppress(ConfigError):
        logs = load_settings(os.environ).logs
        configure_logging(logs.format, logs.level, secrets=_secrets())


def _secrets() -> frozenset[str]:
    from news_platform.settings import environment_secrets

    return environment_secrets(os.environ)


def run() -> None:
    """Run the command line; exit 0 on success, 1 on failure, 2 on wrong use."""
    # Commands parse foreign headers and archives; servers that `dev` starts inherit the limit.
    forbid_core_dumps()
    try:
        main(obj=_configure_logs)
    except NewsPlatformError as error:
        line = scrub_text(redacted(" ".join(str(error).split()), _secrets()))
        click.echo(f"error: {line}", err=True)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except OSError as error:
        # Raised for files given on the command line; errors of the root are StorageErrors.
        place = f": {error.filename!r}" if error.filename else ""
        click.echo(f"error: {(error.strerror or str(error)).lower()}{place}", err=True)
        sys.exit(1)
