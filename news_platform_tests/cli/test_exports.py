"""`news-platform rss export`: formats, files, filters, wrong use, and readers that stop early."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from lxml import etree

from news_platform.resources import open_resources
from news_platform.settings import Settings
from news_platform_tests.cli.runner import Commands
from news_platform_tests.rss.ledger_rows import NOW, add_article, add_articles

EXPORT = Commands("rss export")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root whose ledger holds 1,000 English articles, then a German one."""
    folder = tmp_path_factory.mktemp("exports") / "root"
    resources = open_resources(Settings(root=str(folder)))
    engine = resources.ledger.engine
    text = "word " * 100
    rows: list[dict[str, Any]] = [
        {"stored_at": NOW, "language": "en", "clean_text": text, "clean_text_len": len(text)}
        for _ in range(1_000)
    ]
    add_articles(engine, rows)
    add_article(engine, stored_at=NOW, language="de", source="post.example", title="Klimagesetz")
    resources.ledger.close()
    return folder


@pytest.mark.parametrize(
    "words", [("--source", "Post.example"), ("--query", "klimagesetz"), ("--without-text",)]
)
def test_filters_choose_articles(root: Path, words: tuple[str, ...]) -> None:
    [row] = EXPORT.json(root, *words)
    assert row["language"] == "de"


def test_a_filter_names_outlets_and_one_that_finds_nothing_the_known_values(root: Path) -> None:
    (root / "outlets.csv").write_text("domain,country\npost.example,DE\n")
    [row] = EXPORT.json(root, "--source", "country=DE")
    assert row["source"] == "post.example"
    for words, known in (
        (("--lang", "german"), "no article of language 'german': expected one of de, en"),
        (("--group", "Nope"), "no article of group 'Nope': there are none yet"),
        (("--source", "www.post.example"), "did you mean 'post.example'?"),
    ):
        done = EXPORT.run(root, *words)
        assert (done.stdout, known in done.stderr) == ("", True)


def test_the_name_of_the_file_chooses_its_format(root: Path, tmp_path: Path) -> None:
    counts: dict[str, Callable[[Path], int]] = {
        ".csv": lambda path: len(list(csv.reader(io.StringIO(path.read_text())))) - 1,
        ".jsonl": lambda path: len(path.read_text().splitlines()),
        ".json": lambda path: len(json.loads(path.read_text())["items"]),
        ".xml": lambda path: len(etree.parse(path).findall(".//item")),
        ".parquet": lambda path: pl.read_parquet(path).height,
    }
    for suffix, count in counts.items():
        path = tmp_path / f"articles{suffix}"
        done = EXPORT.run(root, "--limit", "7", "--output", str(path), "--json")
        assert json.loads(done.stdout) == {"articles": 7, "output": str(path)}
        assert count(path) == 7
    assert len(list(tmp_path.iterdir())) == len(counts)


def test_a_feed_has_the_title_and_home_page_that_are_given(root: Path) -> None:
    words = ("--format", "jsonfeed", "--title", "Desk", "--home-page", "https://desk.example/")
    feed = json.loads(EXPORT.run(root, *words, "--limit", "1", "--lang", "de").stdout)
    assert (feed["title"], feed["home_page_url"], feed["language"]) == (
        "Desk",
        "https://desk.example/",
        "de",
    )


@pytest.mark.parametrize(
    "words",
    [
        ("--format", "parquet"),
        ("--format", "csv", "--delta", "0"),
        ("--output", "x.csv", "--opml"),
        ("--query", "…"),
        ("--since", "soon"),
        ("--since", "0001-01-01T00:00:00+14:00"),
        ("--since", "9999-12-31T23:59:59-12:00"),
    ],
)
def test_wrong_use_exits_with_2(root: Path, words: tuple[str, ...]) -> None:
    assert EXPORT.run(root, *words).exit_code == 2


def test_a_reader_that_stops_early_ends_the_export_without_a_word(root: Path) -> None:
    words = ["-m", "news_platform.cli", "rss", "export", "--root", str(root)]
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert json.loads(process.stdout.readline())["language"] == "de"
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=30)) == (b"", 1)
