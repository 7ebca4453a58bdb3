"""Re-extraction: texts are rewritten from kept pages, without network and without revisions."""

from concurrent.futures import Future

import pytest
import sqlalchemy as sa

from news_platform.articles.article import EXTRACTOR_VERSION
from news_platform.isolation.pool import Outcome, Pool
from news_platform.rss.article_files import WorkPlaces, page_path
from news_platform.rss.export import delta_since
from news_platform.rss.ledger.tables import ARTICLES_INDEX, REVISIONS
from news_platform.rss.reextract import Reextraction, ReextractReport, reextract_articles
from news_platform.storage.objects.store import ObjectStore
from news_platform.text.normalize import text_hash
from news_platform_tests.rss.ledger_rows import change_article, read_full_text
from news_platform_tests.rss.stages import NOW, SITE, WorkerHarness, add_pending, rows
from news_platform_tests.rss.test_newsroom_work import set_own
from news_platform_tests.rss.web import page

URLS = [f"{SITE}/a", f"{SITE}/b"]


@pytest.fixture
def harness(ledger: sa.Engine, extract_pool: Pool, local_store: ObjectStore) -> WorkerHarness:
    """Return a worker that has stored two articles and kept their pages."""
    made = WorkerHarness(ledger, extract_pool, local_store)
    made.pages = local_store.child("pages")
    add_pending(ledger, *URLS)
    story = "<div class=story><p>Only this paragraph is the story of {}.</p></div>"
    bodies = {url: page(f"topic {url[-1]}", extra=story.format(url[-1])) for url in URLS}
    assert made.work(bodies).stored == 2
    return made


def reextract(harness: WorkerHarness, wanted: Reextraction | None = None) -> ReextractReport:
    return reextract_articles(
        harness.engine,
        places=WorkPlaces(harness.full_texts, pages=harness.pages),
        pool=harness.pool,
        wanted=wanted or Reextraction(),
        now=NOW,
    )


def make_old(harness: WorkerHarness, row_id: int, *, version: str = "1") -> None:
    """Give an article the text of an extractor that made mistakes."""
    old = {"clean_text": "Old text", "text_hash": text_hash("Old text"), "full_text_ref": ""}
    change_article(harness.engine, row_id, extractor_version=version, **old)


def test_an_older_text_is_rewritten_without_network_and_without_a_revision(
    harness: WorkerHarness,
) -> None:
    first, second = rows(harness.engine)
    make_old(harness, first.row_id)
    cursor = delta_since(harness.engine, 0).cursor
    asked = len(harness.web.requests)
    assert reextract(harness).outcomes == {"rewritten": 1}
    again, other = rows(harness.engine)
    assert again.clean_text == first.clean_text
    assert (again.text_hash, again.extractor_version) == (first.text_hash, EXTRACTOR_VERSION)
    assert (again.reextracted_at, again.fetched_at) == (NOW, first.fetched_at)
    assert read_full_text(harness.full_texts, again.url_hash)
    assert other == second
    assert len(harness.web.requests) == asked
    assert rows(harness.engine, REVISIONS) == []
    assert {row.rev_n for row in rows(harness.engine, ARTICLES_INDEX)} == {0}
    assert [row["row_id"] for row in delta_since(harness.engine, cursor).rows] == [first.row_id]
    # A second run finds nothing to do.
    assert reextract(harness).articles == 0


def test_all_articles_of_a_source_follow_a_new_selector(harness: WorkerHarness) -> None:
    set_own(harness.engine, body_selector="div.story p")
    assert reextract(harness, Reextraction("", "other.example")).articles == 0
    assert reextract(harness, Reextraction("", "post.example")).outcomes == {"rewritten": 2}
    texts = {row.clean_text for row in rows(harness.engine)}
    assert texts == {f"Only this paragraph is the story of {name}." for name in "ab"}
    assert reextract(harness, Reextraction("", "post.example")).outcomes == {"unchanged": 2}


def test_versions_are_compared_as_numbers(harness: WorkerHarness) -> None:
    one, two = (row.row_id for row in rows(harness.engine))
    change_article(harness.engine, one, extractor_version="9")
    change_article(harness.engine, two, extractor_version="10")
    assert reextract(harness, Reextraction("10")).articles == 1
    assert reextract(harness, Reextraction("11", limit=1)).articles == 1
    assert reextract(harness, Reextraction("11")).articles == 2
    # An article that is being fetched again is left to its worker.
    change_article(harness.engine, one, status="pending")
    assert reextract(harness, Reextraction("11")).articles == 1


def test_a_page_that_is_gone_or_damaged_is_counted_and_the_text_stays(
    harness: WorkerHarness,
) -> None:
    first, second = rows(harness.engine)
    make_old(harness, first.row_id)
    make_old_text = {"clean_text": "Kept", "extractor_version": "1"}
    change_article(harness.engine, second.row_id, **make_old_text)
    assert harness.pages is not None
    harness.pages.delete([page_path(first.page_ref)])
    harness.pages.put(page_path(second.page_ref), b"not zstd")
    assert reextract(harness).outcomes == {"no_page": 1, "damaged_page": 1}
    assert {row.clean_text for row in rows(harness.engine)} == {"Old text", "Kept"}


def test_a_text_that_came_while_the_older_page_was_read_again_stays(
    harness: WorkerHarness,
) -> None:
    first, _ = rows(harness.engine)
    make_old(harness, first.row_id)
    before = read_full_text(harness.full_texts, first.url_hash)

    class Slow(Pool):
        def submit(self, item: object) -> Future[Outcome]:
            change_article(harness.engine, first.row_id, clean_text="Newer", page_ref="newer")
            return super().submit(item)

    target = "news_platform.rss.page_extraction:extract_feed_page"
    with Slow(target, workers=0, deadline_seconds=20) as harness.pool:
        assert reextract(harness).outcomes == {"gone": 1}
    assert rows(harness.engine)[0].clean_text == "Newer"
    assert read_full_text(harness.full_texts, first.url_hash) == before
