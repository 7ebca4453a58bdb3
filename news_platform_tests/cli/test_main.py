"""The frame of the command line, and its refusals: one line, the thing and the cure."""

import os
import pty
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest

from news_platform.cli.command import as_text
from news_platform.cli.main import COMMANDS, main
from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import open_store
from news_platform_tests.cli.fuzz import commands
from news_platform_tests.cli.runner import process


def _listed(group: click.Group) -> dict[str, str]:
    """Return the command list of a group's help at 80 columns, by command."""
    with click.Context(group, info_name="x", terminal_width=80, max_content_width=80) as context:
        formatter = context.make_formatter()
        group.format_commands(context, formatter)
    lines = formatter.getvalue().splitlines()[1:]
    return {line.split()[0]: line for line in lines}


def _groups() -> dict[str, click.Group]:
    found = {name: main.get_command(click.Context(main), name) for name in COMMANDS}
    groups = {name: it for name, it in found.items() if isinstance(it, click.Group)}
    return {"news-platform": main, **groups}


@pytest.mark.parametrize("name", _groups())
def test_the_help_of_every_command_fits_its_line(name: str) -> None:
    group = _groups()[name]
    listed = _listed(group)
    context = click.Context(group)
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    assert set(listed) == {name for name, found in commands.items() if found and not found.hidden}
    for line in listed.values():
        assert len(line) <= 80 and line.endswith("."), line
        assert not line.endswith("..."), line


def test_every_option_says_what_it_is_for() -> None:
    silent = [
        f"{' '.join(words)} {option.opts[0]}"
        for words, command in commands()
        for option in command.params
        if isinstance(option, click.Option) and not (option.help or option.hidden)
    ]
    assert silent == []


def test_every_number_on_the_command_line_has_bounds() -> None:
    """A negative limit or one of thirty digits is refused before anything uses it."""
    unbounded = [
        f"{' '.join(words)} {option.opts[0]}"
        for words, command in commands()
        for option in command.params
        if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
        and not isinstance(option.type, click.IntRange | click.FloatRange)
    ]
    assert unbounded == []


def test_a_wrong_setting_is_one_line_without_a_traceback() -> None:
    done = process("demo", NEWS_PLATFORM_ROOTT="x")
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "error: unknown setting NEWS_PLATFORM_ROOTT: did you mean NEWS_PLATFORM_ROOT?"
    )


def _assert_one_line(done: "subprocess.CompletedProcess[str]", *words: str) -> None:
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    assert all(word in done.stderr for word in words), done.stderr


def test_a_taken_port_is_one_line_with_the_cure(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        root = str(tmp_path / "root")
        done = process("dev", "--port", port, "--root", root, DAGSTER_HOME=str(tmp_path))
    _assert_one_line(done, port, "PORT=")


def test_a_pipe_that_is_closed_early_ends_a_command_without_a_word(tmp_path: Path) -> None:
    claim_root(open_store(str(tmp_path)), sample=False)
    query = "select range as number from range(100000)"
    words = ["sql", query, "--format", "csv", "--root", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-m", "news_platform.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        assert running.stdout.readline() == b"number\n"
        running.stdout.close()
        assert running.stderr.read() == b""


def test_what_is_nested_is_printed_as_indented_lines() -> None:
    document = {"a": 1, "robots": {"url": "x", "error": None, "bots": {"b": 2}}, "rows": [{"c": 3}]}
    assert as_text(document).splitlines() == [
        *("a       1", "", "robots", "  url   x", "  bots  b 2", "", "rows", "c", "3"),
    ]


def test_a_terminal_gets_no_control_characters_and_a_pipe_gets_all(tmp_path: Path) -> None:
    claim_root(open_store(str(tmp_path)), sample=False)
    query = "select chr(27) || ']0;owned' || chr(7) || chr(155) || '31m' as text"
    words = [sys.executable, "-m", "news_platform.cli", "sql", query, "--root", str(tmp_path)]
    piped = subprocess.run(words, capture_output=True, check=True).stdout
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, stdout=theirs, stderr=theirs) as running:
        assert running.wait(60) == 0
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    os.close(theirs)
    assert b"\x1b]0;owned\x07" in piped
    assert "]0" in shown and not set(shown) & set("\x1b\x07\x9b")
