"""The command `news-platform`: import the called command, print errors as one line."""

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Mapping

import click

from news_platform.errors import ConfigError, NewsPlatformError, redacted
from news_platform.isolation.environment import forbid_core_dumps

# Imported only when called, so that `--help` and small commands start at once.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "ccnews": ("news_platform.cli.ccnews:ccnews", "List, collect and check the news crawl."),
    "corpus": (
        "news_platform.cli.corpus:corpus",
        "Build the corpus of articles, and export what may be used.",
    ),
    "demo": ("news_platform.cli.demo:demo", "Build the whole graph on the sample world, offline."),
    "dev": (
        "news_platform.cli.dev:dev",
        "Start the Dagster UI, its daemon and the explorer on this machine.",
    ),
    "doctor": ("news_platform.cli.doctor:doctor", "Say what is wrong here, and what to do."),
    "domains": ("news_platform.cli.domains:domains", "Survey robots.txt and sitemaps of domains."),
    "explain": (
        "news_platform.cli.explain:explain",
        "Show where a page is, and why it is missing.",
    ),
    "feeds": ("news_platform.cli.feeds:feeds", "Add, pause, explain, import and export feeds."),
    "ledger": (
        "news_platform.cli.ledger:ledger",
        "Back up, restore, check and move the SQL ledger.",
    ),
    "mcp": ("news_platform.cli.mcp:mcp", "Answer the questions of language models over MCP."),
    "metrics": (
        "news_platform.cli.metrics:metrics",
        "Serve the metrics of a root to Prometheus.",
    ),
    "pause": ("news_platform.cli.dev:pause", "Pause all sensors of a root."),
    "records": ("news_platform.cli.records:records", "Segment stored pages into clean records."),
    "retention": (
        "news_platform.cli.retention:retention",
        "Delete old data that the platform can do without.",
    ),
    "resume": ("news_platform.cli.dev:resume", "Start the paused sensors of a root again."),
    "retry": ("news_platform.cli.status:retry", "Ask for stale partitions of an asset now."),
    "rss": ("news_platform.cli.rss:rss", "Discover and poll feeds, fetch and export articles."),
    "search": ("news_platform.cli.search:search", "Search the text of all articles."),
    "serve": ("news_platform.cli.serve:serve", "Serve pages and a JSON API over a root."),
    "sql": ("news_platform.cli.sql:sql", "Query all datasets with DuckDB."),
    "status": ("news_platform.cli.status:status", "Show what is behind, running or stopped."),
    "takedown": (
        "news_platform.cli.takedown:takedown",
        "Remove a URL, a prefix or a domain from everything.",
    ),
    "store": ("news_platform.cli.store:store", "Build, read and verify the domain store."),
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
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print each command with its line from the table, without importing it."""
        rows = [(name, COMMANDS[name][1]) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


@click.group(cls=LazyGroup)
@click.version_option(package_name="news-platform")
@click.pass_obj
def main(prepare: Callable[[], None] | None) -> None:
    """Collect, store and read news data: crawl, domains, feeds and stored pages."""
    if prepare is not None:
        prepare()


def _configure_logs() -> None:
    """Write log lines as the settings say; what is wrong with these, the command reports itself."""
    # Imported here: only a command pays for loading the settings.
    from news_platform.logs import configure_logging
    from news_platform.settings import load_settings, log_options

    with contextlib.suppress(ConfigError):
        options = log_options(load_settings(os.environ))
        configure_logging(options, secrets=_secrets())


def _secrets() -> frozenset[str]:
    from news_platform.settings import environment_secrets

    return environment_secrets(os.environ)


def run() -> None:
    """Run the command line; exit 0 on success, 1 on failure, 2 on wrong use."""
    # Commands parse foreign headers and archives themselves; `dev` hands the limit to its servers.
    forbid_core_dumps()
    try:
        main(obj=_configure_logs)
    except NewsPlatformError as error:
        line = redacted(" ".join(str(error).split()), _secrets())
        click.echo(f"error: {line}", err=True)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except OSError as error:
        # Of a file that the command itself was given; those of a root are StorageErrors.
        place = f": {error.filename!r}" if error.filename else ""
        click.echo(f"error: {(error.strerror or str(error)).lower()}{place}", err=True)
        sys.exit(1)
