"""Generated answers, mutations of real ones with their headers, hurt no good feed or article."""

import logging
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.isolation.pool import Pool
from news_platform.rss.ledger.tables import FEEDS, RAW
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.isolation.mutations import (
    MemoryGrowth,
    check_log,
    http_answer,
    mutated_one,
    real_samples,
)
from news_platform_tests.rss.stages import NOW, add_pending, register, rows
from news_platform_tests.rss.test_bad_neighbours import (
    GOOD,
    good_feeds,
    json_feed,
    json_ld,
    poll,
    work,
)
from news_platform_tests.rss.web import items, page, rss
from news_platform_tests.web.site import Answer, body

# What differs between any two runs: numbers of rows and of changes.
_NUMBERS = {"changed_seq", "seen_seq", "row_id", "attempt"}
_EMPTIED = (
    *("feeds", "feed_items", "feed_polls", "raw", "article_states"),
    *("articles_index", "article_links", "robots"),
)


def mutations(count: int, seed: int) -> Iterator[dict[str, Answer]]:
    """Yield hosts with a mutated answer each, in groups as large as a poll's batch."""
    own = [rss(items(["x"], newest=NOW)), json_feed("é"), page("the dam"), json_ld("é")]
    dice, sources = random.Random(seed), own + real_samples("feeds") + real_samples("pages/html")
    for start in range(0, count, 100):
        hosts = range(start, min(start + 100, count))
        yield {f"bad{n}.example/rss": http_answer(mutated_one(sources, dice), dice) for n in hosts}


def empty(ledger: sa.Engine) -> None:
    with ledger.begin() as connection:
        for table in _EMPTIED:
            connection.execute(sa.text(f"delete from {table}"))


def is_good(url: str) -> bool:
    return any(url.startswith(f"https://{host}/") for host in GOOD)


def good_rows(ledger: sa.Engine) -> list[dict[str, Any]]:
    """Return every row of the good feeds and articles."""
    found = [row._asdict() for table in (FEEDS, RAW) for row in rows(ledger, table)]
    good = [row for row in found if is_good(row.get("article_url") or row["feed_url"])]
    kept = [{name: row[name] for name in row.keys() - _NUMBERS} for row in good]
    return sorted(kept, key=lambda row: repr(sorted(row.items())))


def poll_group(ledger: sa.Engine, pool: Pool, bad: dict[str, Answer]) -> list[dict[str, Any]]:
    empty(ledger)
    register(ledger, *(f"https://{place}" for place in (*good_feeds(), *bad)))
    report = poll(ledger, pool, {**good_feeds(), **bad})
    assert report.feeds == len(GOOD) + len(bad)
    assert "internal_error" not in report.outcomes, report.outcomes
    assert len(good_rows(ledger)) == 3 * len(GOOD)
    return good_rows(ledger)


def work_group(
    ledger: sa.Engine, pool: Pool, store: ObjectStore, bad: dict[str, Answer]
) -> list[dict[str, Any]]:
    good = {f"{host}/story": body(page(f"the town of {host}")) for host in GOOD}
    empty(ledger)
    add_pending(ledger, *(f"https://{place}" for place in (*good, *bad)))
    report = work(ledger, pool, store, {**good, **bad})
    assert sum(report.outcomes.values()) == len(good) + len(bad)
    assert "internal_error" not in report.outcomes, report.outcomes
    assert "processing" not in {row.status for row in rows(ledger)}
    assert [row["status"] for row in good_rows(ledger)] == ["stored"] * len(GOOD)
    return good_rows(ledger)


def check_mutations(
    run: Callable[[dict[str, Answer]], list[dict[str, Any]]],
    caplog: pytest.LogCaptureFixture,
    *,
    count: int,
    seed: int,
) -> None:
    """Assert that groups with mutated answers leave the good rows as a group without any."""
    caplog.set_level(logging.WARNING)
    memory, undisturbed = MemoryGrowth(), run({})
    for bad in mutations(count, seed):
        assert run(bad) == undisturbed
        check_log(caplog)
        memory.sample()
    memory.check()


def test_mutated_feeds_hurt_no_other(
    sqlite_ledger: sa.Engine, parse_pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    check_mutations(partial(poll_group, sqlite_ledger, parse_pool), caplog, count=50, seed=1)


def test_mutated_articles_hurt_no_other(
    sqlite_ledger: sa.Engine,
    extract_pool: Pool,
    local_store: ObjectStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = partial(work_group, sqlite_ledger, extract_pool, local_store)
    check_mutations(run, caplog, count=30, seed=2)


@pytest.mark.soak
def test_five_thousand_mutated_feeds_hurt_no_other(
    ledger: sa.Engine, parse_pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    check_mutations(partial(poll_group, ledger, parse_pool), caplog, count=5_000, seed=3)


@pytest.mark.soak
def test_five_thousand_mutated_articles_hurt_no_other(
    ledger: sa.Engine,
    extract_pool: Pool,
    local_store: ObjectStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = partial(work_group, ledger, extract_pool, local_store)
    check_mutations(run, caplog, count=5_000, seed=4)
