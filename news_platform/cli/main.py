"""The command `news-platform`: finds the room's commands, and turns our errors into one line."""

import importlib
import sys
from collections.abc import Mapping

import click

from news_platform.errors import ConfigError, NewsPlatformError

# Loaded only when called, so that `--help` and small commands start at once.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "ccnews": ("news_platform.cli.ccnews:ccnews", "the news crawl: list, status, extract"),
    "demo": ("news_platform.cli.demo:demo", "run the whole graph on the sample world, offline"),
    "dev": ("news_platform.cli.dev:dev", "open the Dagster UI and daemon on this machine"),
    "domains": ("news_platform.cli.domains:domains", "survey robots.txt and sitemaps of domains"),
    "pause": ("news_platform.cli.dev:pause", "pause all sensors of a root"),
    "records": ("news_platform.cli.records:records", "cut stored pages into clean blocks"),
    "resume": ("news_platform.cli.dev:resume", "let all sensors of a root go on"),
    "rss": ("news_platform.cli.rss:rss", "feeds in, articles out: discovery, poll, work, export"),
    "sql": ("news_platform.cli.sql:sql", "one query over every dataset, by DuckDB"),
    "store": ("news_platform.cli.store:store", "all records of a domain: build, get, verify"),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when first used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all commands without importing one."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command asked for."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show each command with its line from the table, importing none."""
        rows = [(name, COMMANDS[name][1]) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


@click.group(cls=LazyGroup)
@click.version_option(package_name="news-platform")
def main() -> None:
    """News data you can trust: crawl, domain store, domain survey, RSS, source records."""


def run() -> None:
    """Run the command line; exit 0 on success, 1 on a reported failure, 2 on wrong use."""
    try:
        main()
    except NewsPlatformError as error:
        click.echo(f"error: {' '.join(str(error).split())}", err=True)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
