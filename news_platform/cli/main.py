"""The command `news-platform`: import the called command, print errors as one line."""

import ast
import atexit
import contextlib
import importlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from news_platform.errors import ConfigError, NewsPlatformError, redacted
from news_platform.isolation.worker import forbid_core_dumps
from news_platform.text.normalize import scrub_text
from news_platform.text.readable import did_you_mean

# The module of each command in this package. It is imported only when the command is called, so
# that `--help` and small commands start at once.
COMMANDS = {
    "adopt": "operations",
    "captures": "captures",
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
    "stories": "stories",
    "story": "stories",
    "takedown": "takedown",
}


# Commands that run until they are stopped.
SERVERS = {name for name, module in COMMANDS.items() if module == "servers"}
STOPPED = "stopped; run again to go on"
INTERRUPTED = 130
# Ctrl-C ends a command within two seconds.
_PATIENCE_SECONDS = 1.5


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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; one that is not known is answered with the one that is most like it."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}: {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

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


@contextlib.contextmanager
def _ended_soon_after_interrupt() -> Iterator[None]:
    """End this process if a Ctrl-C does not: native code, such as a query, may not notice it.

    Everything is written so that it may be killed at any time, and the workers of pools end with
    this process. Servers end by themselves when their requests are done.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    ended = threading.Event()

    def watch() -> None:
        with reader:
            # Signals stay in the socket for `_has_interrupt`. Nothing comes when the command ends.
            while (received := reader.recv(1, socket.MSG_PEEK)) and received[0] != signal.SIGINT:
                reader.recv(1)
            if received and not ended.wait(_PATIENCE_SECONDS):
                os.write(2, f"\n{STOPPED}\n".encode())
                os._exit(INTERRUPTED)
            ended.wait()

    watcher = threading.Thread(target=watch, daemon=True, name="interrupt")
    watcher.start()
    # Written to by the signal handler in C, whatever Python is busy with.
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield
    except Exception as error:
        # Native code may raise an error of its own.
        if not _has_interrupt(reader):
            raise
        click.echo(STOPPED, err=True)
        raise SystemExit(INTERRUPTED) from error
    finally:
        signal.set_wakeup_fd(before)
        ended.set()
        writer.close()
        watcher.join()


def _has_interrupt(reader: socket.socket) -> bool:
    with contextlib.suppress(BlockingIOError):
        flags = socket.MSG_PEEK | socket.MSG_DONTWAIT
        return reader.recv(1, flags)[:1] == bytes([signal.SIGINT])
    return False


def run() -> None:
    """Run the command line and end this process.

    It exits with 0 on success, 1 on failure, 2 on wrong use and 130 on Ctrl-C.
    """
    code = run_command()
    # Python would first free everything that Dagster, Polars and DuckDB loaded, for a second.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # such as a pipe that nobody reads
            stream.flush()
    os._exit(code)


def run_command() -> int:
    """Run the command line, print how it failed, and return the exit code."""
    # Commands parse foreign headers and archives; servers that `dev` starts inherit the limit.
    forbid_core_dumps()
    is_server = bool(SERVERS & set(sys.argv[1:2]))
    try:
        with contextlib.nullcontext() if is_server else _ended_soon_after_interrupt():
            return int(main(obj=_configure_logs, standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as error:
        # Without a cause somebody answered a question with no.
        click.echo(STOPPED if error.__cause__ else "nothing was changed", err=True)
        return INTERRUPTED if error.__cause__ else 1
    except NewsPlatformError as error:
        line = scrub_text(redacted(" ".join(str(error).split()), _secrets()))
        click.echo(f"error: {line}", err=True)
        return 2 if isinstance(error, ConfigError) else 1
    except BrokenPipeError:
        return 1
    except OSError as error:
        # Raised for files given on the command line; errors of the root are StorageErrors.
        place = f": {error.filename!r}" if error.filename else ""
        click.echo(f"error: {(error.strerror or str(error)).lower()}{place}", err=True)
        return 1
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
