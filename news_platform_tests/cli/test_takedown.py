"""`news-platform takedown`: ask, look, remove and prove, on a small root without a ledger."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from news_platform.cli.main import main
from news_platform.errors import NewsPlatformError
from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.ccnews.archive import page
from news_platform_tests.ccnews.crawl import DAY, collect_here, warc_path, write_crawl

URL = "https://news3.example.com/a/3"


@pytest.fixture
def root(tmp_path: Path) -> ObjectStore:
    """Return a root with one collected WARC."""
    store = open_store(str(tmp_path / "root"))
    claim_root(store, sample=False)
    path = warc_path(DAY)
    crawl = write_crawl(tmp_path / "crawl", {path: [page(number) for number in range(6)]})
    collect_here(path, source=crawl, root=store, scratch=tmp_path / "scratch")
    return store


def _run(root: ObjectStore, *words: str) -> Result:
    return CliRunner().invoke(main, ["takedown", *words, "--root", root.url])


def _error(done: Result) -> str:
    """Return the text that the command line prints after `error: `."""
    assert isinstance(done.exception, NewsPlatformError)
    return str(done.exception)


def _exit_code(done: Result) -> int:
    """Return the exit code of the process: the entry point turns our errors into 1."""
    return 1 if isinstance(done.exception, NewsPlatformError) else done.exit_code


def _document(root: ObjectStore, *words: str) -> object:
    done = _run(root, *words, "--json")
    assert done.exit_code in (0, 1), done.output
    return json.loads(done.stdout)


def test_a_dry_run_lists_the_places_and_stores_nothing(root: ObjectStore) -> None:
    found = _document(root, "add", URL, "--reason", "x", "--dry-run")
    places = {"raw_news": {str(DAY): 1}, "captures": {str(DAY): 1}}
    assert found == {"places": places, "same_text_elsewhere": []}
    assert list(root.list("takedowns")) == []


def test_from_the_request_to_the_proof(root: ObjectStore) -> None:
    added = _document(root, "add", URL, "--reason", "asked", "--by", "the publisher")
    assert isinstance(added, dict)
    found = _run(root, "verify")
    assert found.exit_code == 1 and "found      " in found.output
    assert _error(found).startswith("found 2 traces of what is taken down, first: news/")
    assert _error(found).endswith("; run `news-platform takedown apply`, then verify again")
    assert _document(root, "list")[0]["status"] == "to apply"  # type: ignore[index]
    assert _run(root, "apply").exit_code == 0
    assert _document(root, "list")[0]["status"] == "applied"  # type: ignore[index]
    done = _run(root, "verify")
    assert done.exit_code == 0 and "nothing taken down is stored" in done.output
    shown = _run(root, "show", added["id"]).output
    assert "the publisher" in shown and "bytes_removed" in shown
    assert "nothing to apply" in _run(root, "apply").output


def test_what_an_apply_must_leave_is_named_in_its_error(root: ObjectStore) -> None:
    _document(root, "add", URL, "--reason", "x")
    (path,) = [info.path for info in root.list("news/raw")]
    root.put(path, bytes(100))
    done = _run(root, "apply")
    assert done.exit_code == 1 and "left: captures" in done.output
    assert "nothing to apply" not in done.output
    # The captures of a WARC are rewritten together with its pages.
    assert _error(done).startswith("2 places still hold what is taken down, first: raw_news: ")
    assert path in _error(done) and _error(done).endswith("`news-platform takedown apply` again")


def test_withdrawing_says_what_comes_back_and_how(root: ObjectStore) -> None:
    added = _document(root, "add", "--domain", "example.com", "--reason", "x")
    assert isinstance(added, dict)
    text = _run(root, "withdraw", added["id"]).output
    assert "only by a new collection" in text.replace("\n", " ")
    assert _document(root, "list")[0]["status"] == "withdrawn"  # type: ignore[index]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("add", "--reason", "x"), 2),
        (("add", URL, "--domain", "a.example", "--reason", "x"), 2),
        (("add", URL), 2),
        (("add", "nothing", "--reason", "x"), 1),
        (("show", "20250101-00000000"), 1),
        (("verify", "20250101-00000000"), 1),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, tuple) else str(it),
)
def test_wrong_use_is_told_apart_from_failure(
    root: ObjectStore, words: tuple[str, ...], code: int
) -> None:
    assert _exit_code(_run(root, *words)) == code
