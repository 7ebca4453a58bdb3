"""The decorator of commands and the printer of tables."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from news_platform.cli.command import Output, command, first_of, table
from news_platform.errors import ConfigError, InputError
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform.storage.commit.root import RootAccess


def test_numbers_are_aligned_to_the_right_and_text_to_the_left() -> None:
    rows = [("raw_news", 12, 3.04, None), ("x", 3, 10.0, 7)]
    assert table(("asset", "rows", "seconds", "more"), rows).splitlines() == [
        "asset     rows  seconds  more",
        "raw_news    12      3.0",
        "x            3     10.0     7",
    ]
    assert table(("asset", "rows"), []) == "asset  rows"


def test_many_names_are_shortened() -> None:
    assert first_of(["a", "b", "c", "d"]) == "a, b, c and 1 more"
    assert first_of(["a", "b"]) == "a, b"


@command(access=RootAccess.CREATE)
@click.option("--fail", is_flag=True)
def toy(resources: Resources, fail: bool) -> Output:
    """Name the root."""
    failure = InputError("it failed") if fail else None
    return Output({"root": resources.settings.root}, f"root {resources.settings.root}", failure)


def test_a_command_prints_one_document_or_its_text() -> None:
    assert CliRunner().invoke(toy, ["--root", "x"]).stdout == "root x\n"
    assert json.loads(CliRunner().invoke(toy, ["--root", "x", "--json"]).stdout) == {"root": "x"}


def test_a_failure_comes_after_the_output() -> None:
    done = CliRunner().invoke(toy, ["--root", "x", "--fail"])
    assert done.stdout == "root x\n"
    assert isinstance(done.exception, InputError) and done.exit_code == 1


def test_a_command_that_reads_needs_data_unless_it_says_otherwise(tmp_path: Path) -> None:
    place = str(tmp_path / "none")

    @command()
    def strict(resources: Resources) -> Output:
        return Output({"url": resources.data_root.store.url})

    @command(must_exist=False)
    def lenient(resources: Resources) -> Output:
        return Output({"url": resources.data_root.store.url})

    with pytest.raises(ConfigError, match="there is no data at"):
        strict.main(["--root", place], standalone_mode=False)
    assert CliRunner().invoke(lenient, ["--root", place]).exit_code == 0
    assert not (tmp_path / "none").exists()


def test_the_access_may_depend_on_the_options_or_be_none() -> None:
    @command(access=lambda dry: RootAccess.READ if dry else RootAccess.CREATE, must_exist=False)
    @click.option("--dry", is_flag=True)
    def either(resources: Resources, dry: bool) -> Output:
        return Output(None, resources.access.name)

    @command(access=None)
    def closed(settings: Settings) -> Output:
        return Output(None, type(settings).__name__)

    assert CliRunner().invoke(either, ["--dry"]).stdout == "READ\n"
    assert CliRunner().invoke(either, []).stdout == "CREATE\n"
    assert CliRunner().invoke(closed, []).stdout == "Settings\n"
