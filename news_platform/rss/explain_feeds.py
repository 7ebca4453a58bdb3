"""Explain what the ledger knows about a feed or about the feeds of a site, and what sheets show."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.datasets.evidence import Evidence
from news_platform.rss.explain import ROOM, read_rows
from news_platform.rss.feed_admin import FeedFilter, list_feeds, read_history
from news_platform.rss.feed_alarms import AlarmOptions
from news_platform.rss.feed_why import explain_feed, rhythm_text
from news_platform.rss.ledger.feed_rows import read_feed
from news_platform.rss.ledger.tables import RAW
from news_platform.rss.sheets.monthly_books import FOLDER
from news_platform.rss.sheets.outbox import SHEET_ROWS
from news_platform.rss.sheets.workbook import DATASET, PARTITION, WORKBOOK_PATH
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.spellings import PageAddress
from news_platform.web.urls import registrable_domain, url_host

SHEETS_ROOM = "sheets"
_SHOWN = 20


def is_feed(engine: sa.Engine, canonical: str) -> bool:
    """Return whether the ledger knows an address as a feed."""
    return read_feed(engine, canonical) is not None


def explain_known_feed(
    engine: sa.Engine, canonical: str, *, alarms: AlarmOptions, now: datetime
) -> Iterator[Evidence]:
    """Yield the state of a feed, its last polls, and what became of its articles."""
    row = read_feed(engine, canonical)
    if row is None:
        yield Evidence(ROOM, "absent", "The ledger has no feed of this address.")
        return
    history = read_history(engine, canonical)
    why = explain_feed(row, history, alarms=alarms, now=now)
    place = f"ledger feeds {canonical}"
    reasons = "; ".join(why.reasons)
    yield Evidence(
        ROOM,
        row.status,
        f"The feed is {row.status}{f': {reasons}' if reasons else ''}. Next: {why.next_step}.",
        at=row.last_crawled or row.checked_at,
        source=place,
        details={
            "title": row.title,
            "origin": row.origin,
            "verdict": row.verdict,
            "health_score": str(row.health_score),
            "rhythm": rhythm_text(row, now=now),
        },
    )
    for poll in history.polls:
        yield Evidence(
            ROOM,
            "polled",
            f"A poll ended with {poll.outcome.replace('_', ' ')}: {poll.items} items, "
            f"{poll.new_items} new (HTTP {poll.status_code or 'no response'}).",
            at=poll.polled_at,
            source=f"ledger feed_polls id={poll.id}",
        )
    for status, count in history.articles.items():
        text = f"{count} articles that it listed first are {status}."
        yield Evidence(ROOM, status, text, source=place)
    for rule, count in history.robots.items():
        yield Evidence(ROOM, "refused", f"{count} of them are refused: {rule}.", source=place)


def explain_site_feeds(engine: sa.Engine, domain: str) -> Iterator[Evidence]:
    """Yield the feeds of a domain, and how many of its articles have each state."""
    near = list_feeds(engine, FeedFilter(text=domain))
    feeds = [row for row in near if registrable_domain(url_host(row.feed_url_canon)) == domain]
    for row in feeds[:_SHOWN]:
        yield Evidence(
            ROOM,
            row.status,
            f"The feed {row.feed_url} is {row.status}.",
            at=row.last_crawled or row.checked_at,
            source=f"ledger feeds {row.feed_url_canon}",
            details={"feed": row.feed_url_canon, "verdict": row.verdict},
        )
    counted = sa.select(RAW.c.status, sa.func.count(), sa.func.max(RAW.c.found_at))
    chosen = counted.where(RAW.c.source == domain).group_by(RAW.c.status).order_by(RAW.c.status)
    with read_transaction(engine) as connection:
        rows = connection.execute(chosen).all()
    for status, count, newest in rows:
        text = f"{count} articles of the domain are {status}."
        yield Evidence(ROOM, status, text, at=newest, source="ledger raw")
    if not feeds and not rows:
        yield Evidence(ROOM, "absent", f"The ledger has neither feeds nor articles of {domain}.")


def explain_sheet_rows(
    engine: sa.Engine, store: ObjectStore, page: PageAddress
) -> Iterator[Evidence]:
    """Yield the spreadsheets and workbooks that show an article."""
    with read_transaction(engine) as connection:
        for row in read_rows(connection, page):
            is_mine = sa.or_(
                sa.and_(SHEET_ROWS.c.tab == "Raw", SHEET_ROWS.c.key == str(row.row_id)),
                sa.and_(SHEET_ROWS.c.tab == "ArticlesIndex", SHEET_ROWS.c.key == row.url_hash),
            )
            shown = list(connection.execute(sa.select(SHEET_ROWS).where(is_mine)))
            for one in shown:
                yield Evidence(
                    SHEETS_ROOM,
                    "shown" if one.seq > 0 else "pending",
                    f"Tab {one.tab} of spreadsheet {one.book} "
                    f"{'shows' if one.seq > 0 else 'is about to show'} the article.",
                    source=f"ledger sheet_rows {one.book}/{one.tab}/{one.key}",
                )
            yield from _books(connection, store, row)


def _books(connection: sa.Connection, store: ObjectStore, row: sa.Row[Any]) -> Iterator[Evidence]:
    """Yield the workbooks under the root that show a row of Raw, each with its row there."""
    for info in store.list(FOLDER):
        name = info.path.rpartition("/")[2].removesuffix(".xlsx")
        first, _, last = name.removeprefix("articles-").partition("-")
        if first.isdecimal() and last.isdecimal() and int(first) <= row.row_id <= int(last):
            yield _shown(connection, info, row, first=int(first))
    marker = read_markers(store, DATASET).get(PARTITION)
    if marker is None:
        return
    shown = read_report(store, marker).get("rows")
    newest = sa.select(RAW.c.row_id).order_by(RAW.c.row_id.desc())
    rows = shown.get("Raw", 0) if isinstance(shown, dict) else 0
    oldest = connection.execute(newest.offset(max(rows - 1, 0)).limit(1)).scalar_one_or_none()
    if rows and oldest is not None and row.row_id >= oldest:
        yield _shown(connection, store.head(WORKBOOK_PATH), row, first=oldest)


def _shown(
    connection: sa.Connection, info: ObjectInfo, row: sa.Row[Any], *, first: int
) -> Evidence:
    before = sa.select(sa.func.count()).where(RAW.c.row_id >= first, RAW.c.row_id < row.row_id)
    # The first row of a tab has the names of the columns.
    number = connection.execute(before).scalar_one() + 2
    return Evidence(
        SHEETS_ROOM,
        "shown",
        f"Row {number} of tab Raw of the workbook shows the article.",
        at=info.modified_at,
        source=info.path,
        details={"tab": "Raw", "row": str(number)},
    )
