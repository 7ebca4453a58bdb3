"""Roots of earlier releases open with the code of today, and can be built on."""

import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from news_platform.cli.main import main
from news_platform_tests.roots.contents import read_contents

HERE = Path(__file__).parent
RELEASES = sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def unpack(release: str, folder: Path) -> Path:
    """Unpack the kept root of a release into a folder and return its path."""
    with tarfile.open(HERE / f"{release}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "root"


@pytest.fixture
def root(release: str, tmp_path: Path) -> Path:
    return unpack(release, tmp_path)


def test_every_release_has_a_small_root() -> None:
    assert RELEASES == ["root-0.1", "root-0.2"]
    assert all((HERE / f"{name}.tar.xz").stat().st_size < 1_000_000 for name in RELEASES)


def test_it_reads_as_its_own_release_read_it(release: str, root: Path) -> None:
    before = sorted(path for path in root.rglob("*") if path.is_file())
    expected = json.loads((HERE / f"{release}.json").read_text(encoding="utf-8"))
    found = dict(read_contents(str(root)))
    rows = found["rows"]
    assert isinstance(rows, dict)
    # Tables that a later release added are empty in an older root.
    added = rows.keys() - expected["rows"].keys()
    assert {rows.pop(name) for name in added} <= {0}
    assert found == expected
    # SQLite's side files come and go with every connection.
    after = {path for path in root.rglob("*") if path.is_file() and ".sqlite-" not in path.name}
    assert after == {path for path in before if ".sqlite-" not in path.name}


READING = [
    ("ccnews", "status"),
    ("domains", "status"),
    ("rss", "status"),
    ("rss", "export"),
    ("rss", "export", "--opml"),
    ("sql", "select count(*) from raw_news"),
    ("store", "stats"),
    ("store", "verify"),
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_command_that_reads_it_works_without_upgrading_it(
    words: tuple[str, ...], root: Path
) -> None:
    before = _digests(root)
    result = CliRunner().invoke(main, [*words, "--root", str(root), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)
    assert _digests(root) == before


def _digests(root: Path) -> dict[str, str]:
    """Return the digest of every file but SQLite's side files, which come and go."""
    files = (path for path in root.rglob("*") if path.is_file() and ".sqlite-" not in path.name)
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def test_its_store_verifies_and_can_be_built_on(release: str, root: Path) -> None:
    expected = json.loads((HERE / f"{release}.json").read_text(encoding="utf-8"))
    for command in ("verify", "build", "verify"):
        result = CliRunner().invoke(main, ["store", command, "--root", str(root), "--json"])
        assert result.exit_code == 0, result.output
    assert read_contents(str(root))["domains"] == expected["domains"]


# Adds a column to the named tables before any other module of ours sees them.
_ADD_COLUMNS = """
import dataclasses, sys
import polars as pl
from news_platform.datasets import raw_news, registry
from news_platform.datasets.dataset import Column, Dataset

root, *names = sys.argv[1:]
added = Column("added_later", pl.String(), "A column of a later release.")
tables = {
    table.name: dataclasses.replace(table, columns=(*table.columns, added))
    for table in registry.TABLES
    if table.name in names or not names
}
for module in [it for name, it in sys.modules.items() if name.startswith("news_platform.data")]:
    for name, value in list(vars(module).items()):
        if isinstance(value, Dataset):
            setattr(module, name, tables.get(value.name, value))
registry.TABLES = tuple(tables.get(table.name, table) for table in registry.TABLES)
raw_news.RAW_NEWS_ORDER = (*raw_news.RAW_NEWS_ORDER, "added_later")

import news_platform
from news_platform.storage.objects.store import open_store
news, store = news_platform.open(root), open_store(root)
"""
_READ_ALL = """
from news_platform.ccnews.checks import read_footers, schema_problems
from news_platform.storage.commit.collected import read_collected
from news_platform.datasets.corpus import ALL_ARTICLES, DELTA_TABLES
from news_platform.datasets.near_duplicates import ARTICLE_CLUSTERS
for name in news.tables:
    # These roots have no corpus; an older Delta table is read in test_delta.py. The columns of
    # article_clusters are those that it had as a dataset.
    if name not in {table.name for table in (*DELTA_TABLES, ALL_ARTICLES, ARTICLE_CLUSTERS)}:
        assert "added_later" in news[name].collect().columns, name
for day in {marker.day for marker in read_collected(store)}:
    footers = read_footers(store, day=day)
    assert footers and schema_problems(footers) == []
"""
_BUILD_AGAIN = """
from news_platform.cli.main import main
parts = ("domain_buckets", "domain_store", "markers/domain_buckets", "markers/domain_store")
store.delete(file.path for part in parts for file in store.list(part))
main(["store", "build", "--root", root, "--json"], standalone_mode=False)
record = next(news.domain_store.records(next(iter(news.domain_store.domains()))))
assert record["added_later"] is None and record["text"]
"""


@pytest.mark.parametrize(("work", "tables"), [(_READ_ALL, []), (_BUILD_AGAIN, ["raw_news"])])
def test_a_column_that_is_added_later_is_null_in_it(
    work: str, tables: list[str], root: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ADD_COLUMNS + work, str(root), *tables],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
