"""`news-platform takedown`: ask, look, remove and prove, on a small root without a ledger."""

from pathlib import Path

import pytest

from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.ccnews.archive import page
from news_platform_tests.ccnews.crawl import DAY, collect_here, warc_path, write_crawl
from news_platform_tests.cli.runner import Commands

TAKEDOWN = Commands("takedown")
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


def test_a_dry_run_lists_the_places_and_stores_nothing(root: ObjectStore) -> None:
    found = TAKEDOWN.json(root, "add", URL, "--reason", "x", "--dry-run")
    assert found == {
        "places": {name: {str(DAY): 1} for name in ("raw_news", "captures", "page_metadata")},
        "same_text_elsewhere": [],
    }
    assert list(root.list("takedowns")) == []


def test_from_the_request_to_the_proof(root: ObjectStore) -> None:
    added = TAKEDOWN.json(root, "add", URL, "--reason", "asked", "--by", "the publisher")
    found = TAKEDOWN.run(root, "verify")
    assert found.exit_code == 1 and "found      " in found.output
    assert str(found.exception).startswith("found 3 traces of what is taken down, first: news/")
    assert str(found.exception).endswith("; run `news-platform takedown apply`, then verify again")
    assert TAKEDOWN.json(root, "list")[0]["status"] == "to apply"
    assert TAKEDOWN.run(root, "apply").exit_code == 0
    assert TAKEDOWN.json(root, "list")[0]["status"] == "applied"
    done = TAKEDOWN.run(root, "verify")
    assert done.exit_code == 0 and "nothing taken down is stored" in done.output
    shown = TAKEDOWN.run(root, "show", added["id"]).output
    assert "the publisher" in shown and "bytes_removed" in shown
    assert "nothing to apply" in TAKEDOWN.run(root, "apply").output


def test_what_an_apply_must_leave_is_named_in_its_error(root: ObjectStore) -> None:
    TAKEDOWN.json(root, "add", URL, "--reason", "x")
    (path,) = [info.path for info in root.list("news/raw")]
    root.put(path, bytes(100))
    done = TAKEDOWN.run(root, "apply")
    assert done.exit_code == 1 and "left: captures" in done.output
    assert "nothing to apply" not in done.output
    # The captures of a WARC are rewritten together with its pages.
    assert str(done.exception).startswith(
        "3 places still hold what is taken down, first: raw_news: "
    )
    assert path in str(done.exception) and str(done.exception).endswith(
        "`news-platform takedown apply` again"
    )


def test_withdrawing_says_what_comes_back_and_how(root: ObjectStore) -> None:
    added = TAKEDOWN.json(root, "add", "--domain", "example.com", "--reason", "x")
    text = TAKEDOWN.run(root, "withdraw", added["id"]).output
    assert "only when it is collected again" in text
    assert TAKEDOWN.json(root, "list")[0]["status"] == "withdrawn"
    more = ("--domain", "example.org", "--reason", "x", "--scope", "export")
    kept = TAKEDOWN.json(root, "add", *more)
    text = TAKEDOWN.run(root, "withdraw", kept["id"]).output
    assert "it may be exported again; run `news-platform takedown apply`" in text


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("add", URL, "--domain", "a.example", "--reason", "x"), 2),
        (("add", URL), 2),
        (("add", "nothing", "--reason", "x"), 1),
        (("show", "20250101-00000000"), 1),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, tuple) else str(it),
)
def test_wrong_use_is_told_apart_from_failure(
    root: ObjectStore, words: tuple[str, ...], code: int
) -> None:
    done = TAKEDOWN.run(root, *words)
    assert done.exit_code == code


def test_a_damaged_ledger_does_not_stop_the_removal_elsewhere(root: ObjectStore) -> None:
    assert root.local_folder is not None
    (root.local_folder / "ledger.sqlite").write_bytes(b"SQLite format 3\0" + bytes(5000))
    added = TAKEDOWN.run(root, "add", URL, "--reason", "x")
    assert added.exit_code == 1 and "recorded" in added.output
    assert "ledger check" in str(added.exception)
    done = TAKEDOWN.run(root, "apply")
    assert done.exit_code == 1 and "left: ledger" in done.output and "raw_news" in done.output
    found = TAKEDOWN.run(root, "verify")
    assert "unreadable ledger" in found.output and "found      " not in found.output
    assert "cannot be read and may hold anything, first: ledger" in str(found.exception)
    (root.local_folder / "ledger.sqlite").unlink()
    assert TAKEDOWN.run(root, "apply").exit_code == 0
    assert TAKEDOWN.run(root, "verify").exit_code == 0
