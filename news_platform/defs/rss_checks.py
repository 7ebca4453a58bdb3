"""The checks of the articles of feeds."""

from collections.abc import Sequence
from datetime import timedelta

import dagster as dg

from news_platform.defs.checks import check
from news_platform.defs.metadata import markdown_table
from news_platform.resources import Resources, open_full_texts, work_options
from news_platform.rss.ledger.status import doubled_main_rows, missing_full_texts, overdue_locks

# Older articles were checked when they were new, and every file costs a storage request.
_CHECKED_DAYS = 2


@check("articles")
def no_url_hash_twice_as_main_row(resources: Resources, _key: str) -> dg.AssetCheckResult:
    """No two main rows have the same url_hash.

    If red: the ledger has lost its unique index. Stop the workers (`news-platform pause`) and
    restore the index or a backup of the ledger; then `rss export` writes the tables again.
    """
    return _check_result(doubled_main_rows(resources.ledger.engine))


@check("articles")
def every_stored_row_has_its_full_text(resources: Resources, _key: str) -> dg.AssetCheckResult:
    """Every article stored in the last two days has its full text where its row says.

    If red: files were deleted by hand, or FULLTEXT_DIR was changed. Restore the setting or the
    files. To fetch articles again, set their status to `pending` in the ledger.
    """
    since = resources.clock.now() - timedelta(days=_CHECKED_DAYS)
    texts = open_full_texts(resources.data_root)
    return _check_result(missing_full_texts(resources.ledger.engine, texts, since=since))


@check("articles")
def no_lock_older_than_its_lease(resources: Resources, _key: str) -> dg.AssetCheckResult:
    """No article is still leased by a worker that has died.

    If red: no worker has run since one died. Check that the schedule `run_articles` is on and that
    the root is not paused; the next run takes the articles over.
    """
    lease = work_options(resources.settings.rss).lease_seconds
    now, engine = resources.clock.now(), resources.ledger.engine
    return _check_result(overdue_locks(engine, lease_seconds=lease, now=now))


CHECKS = (
    no_url_hash_twice_as_main_row,
    every_stored_row_has_its_full_text,
    no_lock_older_than_its_lease,
)


def _check_result(found: Sequence[str]) -> dg.AssetCheckResult:
    # The table is a sample for people; `count` has the number.
    shown = markdown_table(("found",), ([thing] for thing in found[:20]))
    return dg.AssetCheckResult(passed=not found, metadata={"count": len(found), "found": shown})
