"""The command `news-platform`: import the called command, print errors as one line."""

import importlib
import sys
from collections.abc import Mapping

import click

from news_platform.errors import ConfigError, NewsPlatformError

# Imported only when called, so that `--help` and small commands start at once.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "ccnews": ("news_platform.cli.ccnews:ccnews", "List, collect and check the news crawl."),
    "demo": ("news_platform.cli.demo:demo", "Build the whole graph on the sample world, offline."),
    "dev": ("news_platform.cli.dev:dev", "Start the Dagster UI and daemon on this machine."),
    "domains": ("news_platform.cli.domains:domains", "Survey robots.txt and sitemaps of domains."),
    "pause": ("news_platform.cli.dev:pause", "Pause all sensors of a root."),
    "records": ("news_platform.cli.records:records", "Segment stored pages into clean records."),
    "resume": ("news_platform.cli.dev:resume", "Start the paused sensors of a root again."),
    "rss": ("news_platform.cli.rss:rss", "Discover and poll feeds, fetch and export articles."),
    "sql": ("news_platform.cli.sql:sql", "Query all datasets with DuckDB."),
    "store": ("news_platform.cli.store:store", "Build, read and verify the domain store."),
}


class LazyGroup(click.Group):
    """A group that imports a command on first use."""

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
def main() -> None:
    """Collect, store and read news data: crawl, domains, feeds and stored pages."""


def run() -> None:
    """Run the command line; exit 0 on success, 1 on failure, 2 on wrong use."""
    try:
        main()
    except NewsPlatformError as error:
        click.echo(f"error: {' '.join(str(error).split())}", err=True)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
