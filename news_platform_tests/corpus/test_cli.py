"""`news-platform corpus`: build, export and maintain from the command line."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from news_platform.cli.main import main
from news_platform.errors import InputError, NewsPlatformError, StorageError
from news_platform.storage.commit.root import RootAccess, claim_root
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.corpus.articles import article, small_corpus, store_articles
from news_platform_tests.corpus.pages import DAY, StoredPage, article_html, collect_pages


@pytest.fixture
def root(local_store: ObjectStore, tmp_path: Path) -> str:
    claim_root(local_store, sample=None, access=RootAccess.CREATE)
    small_corpus(local_store, tmp_path)
    return local_store.url


def run(arguments: Sequence[str]) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_an_export_prints_its_manifest(root: str, tmp_path: Path) -> None:
    output = tmp_path / "export"
    done = run(["corpus", "export", "--root", root, "--output", str(output), "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["articles"] == 6
    assert document["tokens"] > 0
    written = json.loads((output / "manifest.json").read_text())
    assert document == {name: written[name] for name in document}
    assert written["command"].startswith("news-platform corpus export --from 2025-11-01 --to 2025")
    again = run(["corpus", "export", "--root", root, "--output", str(output), "--language", "de"])
    assert again.exit_code == 0, again.output
    assert "1 articles of 9" in again.stdout
    assert "other_language" in again.stdout


def test_a_manifest_gives_the_same_bytes_or_what_differs(
    root: str, local_store: ObjectStore, tmp_path: Path
) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    chosen = ["--min-words", "50", "--without", "no_title", "--policy", "GPTBot:ai_train"]
    for given in (chosen, [*chosen, "--format", "jsonl"]):
        done = run(["corpus", "export", "--root", root, "--output", str(first), *given])
        assert done.exit_code == 0, done.output
        like = ["--like", str(first / "manifest.json")]
        done = run(["corpus", "export", "--root", root, "--output", str(again), *like])
        assert done.exit_code == 0, done.output
        assert done.stdout.endswith("the same export\n")
        names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
        assert all((first / name).read_bytes() == (again / name).read_bytes() for name in names)
    store_articles(local_store, "2025-11-02", [article("https://z.example/1", "z " * 60)], tmp_path)
    done = run(["corpus", "export", "--root", root, "--output", str(again), *like])
    assert "another export:" in done.stdout
    assert "words: expected 422, found 361" in done.stdout
    (tmp_path / "other.json").write_text("{}")
    like = ["--like", str(tmp_path / "other.json")]
    done = run(["corpus", "export", "--root", root, "--output", str(again), *like])
    assert "not the manifest of an export" in str(done.exception)


@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
def test_an_export_leaves_out_what_an_earlier_one_holds(
    root: str, tmp_path: Path, file_format: str
) -> None:
    first = ["--output", str(tmp_path / "first"), "--format", file_format, "--language", "de"]
    assert run(["corpus", "export", "--root", root, *first]).exit_code == 0
    second = ["--output", str(tmp_path / "second"), "--except", str(tmp_path / "first"), "--json"]
    done = run(["corpus", "export", "--root", root, *second])
    assert done.exit_code == 0, done.output
    # The German copy and the story that it is a near-duplicate of.
    assert json.loads(done.stdout)["dropped"]["in_earlier_export"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--language", "xx"], 1, "no article in language 'xx'"),
        (["--min-words", "100000"], 1, "the selection is empty"),
        (["--from", "2024-01-01", "--to", "2024-01-31"], 1, "the corpus has no day between"),
        (["--policy", "GPTBot:everything"], 1, "invalid policy 'GPTBot:everything'"),
        (["--policy", "GTPBot:ai_train"], 1, "unknown crawler 'GTPBot': did you mean 'GPTBot'?"),
        (["--no-policy", "--strict"], 2, "--no-policy exports everything"),
        (["--category", "cats"], 2, "'cats' is not one of"),
    ],
    ids=["language", "empty", "days", "policy", "crawler", "strict", "category"],
)
def test_a_bad_selection_is_one_line_and_writes_nothing(
    root: str, tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    output = tmp_path / "export"
    done = run(["corpus", "export", "--root", root, "--output", str(output), *arguments])
    # The command line prints one of our errors as its message; wrong use is click's own.
    assert done.exit_code == code
    assert isinstance(done.exception, NewsPlatformError if code == 1 else SystemExit)
    assert message in (str(done.exception) if code == 1 else done.stderr)
    assert not output.exists()


def test_a_folder_of_somebody_else_is_not_overwritten(root: str, tmp_path: Path) -> None:
    output = tmp_path / "mine"
    output.mkdir()
    (output / "thesis.txt").write_text("precious")
    done = run(["corpus", "export", "--root", root, "--output", str(output)])
    assert isinstance(done.exception, InputError)
    assert "is not an export: nothing was written" in str(done.exception)
    assert (output / "thesis.txt").read_text() == "precious"


def test_days_are_built_and_tables_maintained(local_store: ObjectStore) -> None:
    claim_root(local_store, sample=None, access=RootAccess.CREATE)
    collect_pages(local_store, [StoredPage("https://a.example/news/story", article_html(1))])
    done = run(["corpus", "build", "--root", local_store.url])
    assert done.exit_code == 0, done.output
    assert f"{DAY}          1 articles of 1 pages" in done.stdout
    again = run(["corpus", "build", "--root", local_store.url])
    assert again.stdout == "up to date\n"
    redone = run(["corpus", "build", "--redo", "all", "--root", local_store.url])
    assert redone.stdout == done.stdout
    kept = run(["corpus", "maintain", "--root", local_store.url, "--json"])
    assert json.loads(kept.stdout)["crawl_articles"]["files_deleted"] == 0
    local_store.delete([info.path for info in local_store.list("crawl_articles/_delta_log")])
    damaged = run(["corpus", "build", "--root", local_store.url])
    assert isinstance(damaged.exception, StorageError)
    assert "crawl_articles/_delta_log from a backup" in str(damaged.exception)
