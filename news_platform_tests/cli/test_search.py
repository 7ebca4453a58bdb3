"""The search command: hits as text, JSON, CSV and counts, and one line for a wrong query."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from news_platform.cli.main import main
from news_platform.datasets.corpus import CRAWL_ARTICLES
from news_platform.near_duplicates.pipeline import build_day
from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.corpus.articles import article, store_articles
from news_platform_tests.near_duplicates.stories import story
from news_platform_tests.search.articles import made_articles
from news_platform_tests.search.indexes import DAY, write_day


def new_root(folder: Path) -> ObjectStore:
    store = open_store(str(folder / "root"))
    claim_root(store, sample=False)
    return store


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root with the articles of one day and their index."""
    folder = tmp_path_factory.mktemp("search")
    store = new_root(folder)
    write_day(store, CRAWL_ARTICLES, made_articles(80, seed=4, days=1), folder / "scratch")
    assert run(folder / "root", "--build").output.split() == [DAY, "80", "articles"]
    return folder / "root"


def run(root: Path, *words: str) -> Result:
    cache = {"NEWS_PLATFORM_SEARCH_CACHE": str(root.parent / "cache")}
    done = CliRunner(env=cache).invoke(main, ["search", *words, "--root", str(root)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_hits_are_the_same_in_every_format(root: Path) -> None:
    shown = json.loads(run(root, "brucke", "--json", "--limit", "50").stdout)
    assert shown["count"] == len(shown["hits"]) > 3
    urls = [hit["url"] for hit in shown["hits"]]
    table = run(root, "brucke", "--format", "csv", "--limit", "50").stdout
    assert [row["url"] for row in csv.DictReader(table.splitlines())] == urls
    lines = run(root, "brucke", "--format", "jsonl", "--limit", "50").stdout.splitlines()
    assert [json.loads(line)["url"] for line in lines] == urls
    text = run(root, "brucke", "--limit", "50").stdout
    assert all(url in text for url in urls) and text.endswith(f"{len(urls)} articles\n")


def test_counts_over_time_add_up(root: Path) -> None:
    shown = json.loads(run(root, "brucke", "--count", "--json").stdout)
    assert shown["days"] == {DAY: shown["count"]}


def test_a_query_is_needed_unless_indexes_are_built(root: Path) -> None:
    done = run(root)
    assert done.exit_code == 2 and "expected a QUERY, or --build" in done.output


def test_one_article_of_a_cluster_is_enough(tmp_path: Path) -> None:
    store = new_root(tmp_path)
    texts = {"first": story(1), "copy": story(1), "other": f"{story(2)} {story(1).split()[0]}"}
    rows = [article(f"https://{name}.example/", text) for name, text in texts.items()]
    store_articles(store, DAY, rows, tmp_path)
    build_day(store, DAY, days=14)
    run(tmp_path / "root", "--build")
    word = story(1).split()[0]
    assert json.loads(run(tmp_path / "root", word, "--json").stdout)["count"] == 3
    chosen = json.loads(run(tmp_path / "root", word, "--json", "--one-per-cluster").stdout)
    assert (chosen["count"], len(chosen["hits"])) == (3, 2)
    assert "https://other.example/" in {hit["url"] for hit in chosen["hits"]}
