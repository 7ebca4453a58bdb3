"""Explain what the ledger knows about an article, a feed or a site, and what sheets show of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.datasets.evidence import Evidence
from news_platform.datasets.feeds import ARTICLE_SHEETS, ARTICLES, FEEDS
from news_platform.rss.discovery import RECHECKS, UNLISTED
from news_platform.rss.feed_admin import FeedFilter, FeedHistory, list_feeds, read_history
from news_platform.rss.feed_alarms import is_silent
from news_platform.rss.ledger.article_queue import read_states
from news_platform.rss.ledger.feed_rows import read_feed, remark_of
from news_platform.rss.ledger.tables import ARTICLES_INDEX, FEED_ITEMS, RAW, REVISIONS, ROBOTS
from news_platform.rss.sheets.outbox import SHEET_ROWS
from news_platform.rss.sheets.workbook import DATASET, PARTITION, WORKBOOK_PATH
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.match import PageAddress
from news_platform.text.readable import number_of
from news_platform.web.robots import Robots
from news_platform.web.urls import registrable_domain, url_host

_SHOWN = 20
_STATES = {
    "pending": "The article waits to be fetched: is a worker running?",
    "processing": "A worker is fetching the article.",
    "stored": "The article is stored.",
    "duplicate": "The article repeats another one and is not stored again.",
    "error": "The article could not be fetched or read.",
    "skipped": "The article was not fetched.",
}


def explain_article(engine: sa.Engine, store: ObjectStore, page: PageAddress) -> Iterator[Evidence]:
    """Yield what the ledger knows about a page, in the order in which it happened."""
    with read_transaction(engine) as connection:
        rows = _article_rows(connection, page)
        for row in rows:
            yield from _feeds_of(connection, row)
            yield from _robots(row, _robots_body(connection, store, row.robots_file))
            yield from _steps(row)
            for one in read_states(connection, row.row_id):
                reason = f": {one.reason.rstrip('.')}" if one.reason else ""
                text, source = (
                    f"It became {one.status}{reason}.",
                    f"ledger article_states id={one.id}",
                )
                yield _said(row, one.status, text, one.at, source=source)
            yield _status(row)
            yield from _text(row)
            yield from _related(connection, row)
    if not rows:
        yield Evidence(ARTICLES.name, "absent", "No feed or news sitemap has listed this address.")


def _article_rows(connection: sa.Connection, page: PageAddress) -> Sequence[sa.Row[Any]]:
    """Return the rows of Raw that a page has under any of its spellings and aliases."""
    # ArticlesIndex also holds the aliases of an article, such as addresses that redirect to it.
    known = sa.select(ARTICLES_INDEX.c.row_id_raw).where(ARTICLES_INDEX.c.url_hash.in_(page.hashes))
    named = sa.select(RAW.c.row_id).where(RAW.c.url_hash.in_(page.hashes))
    chosen = sa.select(RAW).where(RAW.c.row_id.in_(sa.union(known, named)))
    return connection.execute(chosen.order_by(RAW.c.row_id)).all()


def _said(
    row: sa.Row[Any],
    state: str,
    text: str,
    at: datetime | None = None,
    *,
    source: str = "",
    details: Mapping[str, str] | None = None,
) -> Evidence:
    place = source or f"ledger raw row_id={row.row_id}"
    return Evidence(ARTICLES.name, state, text, at=at, source=place, details=details or {})


def _feeds_of(connection: sa.Connection, row: sa.Row[Any]) -> Iterator[Evidence]:
    """Yield the feeds that list an article, the first one first."""
    items = sa.select(FEED_ITEMS.c.feed_url, FEED_ITEMS.c.changed_at)
    listed = connection.execute(items.where(FEED_ITEMS.c.row_id == row.row_id))
    seen = {feed: at for feed, at in listed}
    for feed in filter(None, dict.fromkeys((row.feed_url, *row.sources_list, *seen))):
        is_first = feed == row.feed_url
        text = f"{feed} {'listed it first' if is_first else 'lists it, too'}."
        at = row.found_at if is_first else seen.get(feed, row.last_seen_rss)
        yield _said(row, "listed", text, at, details={"feed": feed, "url": row.article_url})


def _robots_body(connection: sa.Connection, store: ObjectStore, file: str) -> bytes:
    """Return the robots.txt that a worker read, as the survey or the ledger has it now."""
    if not file or file.startswith(("http://", "https://")):
        kept = sa.select(ROBOTS.c.body).where(ROBOTS.c.origin == file.removesuffix("/robots.txt"))
        return connection.execute(kept).scalar_one_or_none() or b""
    try:
        return store.read(file)
    except NotFound:
        return b""


def _robots(row: sa.Row[Any], body: bytes) -> Iterator[Evidence]:
    if row.deferred_since is not None:
        text = "The article waited because the robots.txt of its site could not be read."
        yield _said(row, "deferred", text, row.deferred_since)
    if not row.robots_file:
        return
    rules = (one for group in Robots.parse(body).groups for one in group.rules)
    line = next((one.line for one in rules if str(one) == row.robots_rule), None)
    place = f" in line {line}" if line else ""
    rule = f"`{row.robots_rule}`{place}" if row.robots_rule else "no rule applies"
    is_refused = row.status == "skipped" and row.robots_rule.startswith("Disallow")
    yield _said(
        row,
        "refused" if is_refused else "allowed",
        f"The robots.txt that the worker read {'refuses' if is_refused else 'allows'} it: {rule}.",
        row.robots_at,
        source=f"{row.robots_file}:{line}" if line else row.robots_file,
        details={"rule": row.robots_rule, "line": str(line or "")},
    )


def _steps(row: sa.Row[Any]) -> Iterator[Evidence]:
    if row.attempt:
        retries = f", {row.retries} of them after a failure" if row.retries else ""
        text = f"A worker claimed it (attempts: {row.attempt}{retries})."
        yield _said(row, "claimed", text, row.lock_at)
    if row.fetched_at is not None:
        text = f"The page was fetched from {row.page_url or row.article_url_canon}."
        yield _said(row, "fetched", text, row.fetched_at)


def _status(row: sa.Row[Any]) -> Evidence:
    text = _STATES.get(row.status, f"The ledger has the article as {row.status}.")
    if row.error_msg:
        text += f" The last message: {row.error_msg.rstrip('.')}."
    if row.next_try_at and row.status in ("pending", "error"):
        text += f" It is tried again at {row.next_try_at:%Y-%m-%d %H:%M} UTC."
    moments = (row.stored_at, row.processed_at, row.fetched_at, row.lock_at, row.found_at)
    at = next(moment for moment in moments if moment is not None)
    return _said(row, row.status, text, at, details={"url": row.article_url_canon})


def _text(row: sa.Row[Any]) -> Iterator[Evidence]:
    if row.clean_text_len:
        sure = f", confidence {row.confidence:.2f}" if row.confidence is not None else ""
        wall = "; it says that it is not the whole article" if row.is_paywalled else ""
        yield _said(
            row,
            "extracted",
            f"Its text has {row.word_count} words, language {row.language or 'unknown'}, from "
            f"{row.text_source}, by extractor {row.extractor_version}{sure}{wall}.",
            row.reextracted_at or row.processed_at,
            source=row.full_text_ref,
            details={"extractor_version": row.extractor_version, "title": row.title},
        )
    if row.full_text_expired_at is not None:
        text = "The file of its full text is expired."
        yield _said(row, "expired", text, row.full_text_expired_at)


def _related(connection: sa.Connection, row: sa.Row[Any]) -> Iterator[Evidence]:
    """Yield revisions, aliases and articles with the same text."""
    revisions = sa.select(REVISIONS).where(REVISIONS.c.row_id == row.row_id)
    for one in connection.execute(revisions.order_by(REVISIONS.c.rev_n)):
        part = "headline" if one.old_text_hash == one.new_text_hash else "text"
        text = f"The publisher changed the {part} (revision {one.rev_n})."
        yield _said(row, "revised", text, one.revised_at)
    if row.aliases:
        yield _said(row, "alias", f"It has other addresses: {', '.join(row.aliases[:5])}.")
    same = sa.select(RAW.c.article_url_canon, RAW.c.status).where(
        RAW.c.text_hash == row.text_hash, RAW.c.row_id != row.row_id, RAW.c.text_hash != ""
    )
    for url, status in connection.execute(same.order_by(RAW.c.row_id).limit(_SHOWN)):
        text = f"{url} has the same text ({status})."
        yield _said(row, "duplicate", text, details={"url": url})


def is_feed(engine: sa.Engine, canonical: str) -> bool:
    """Return whether the ledger knows an address as a feed."""
    return read_feed(engine, canonical) is not None


def explain_known_feed(engine: sa.Engine, canonical: str, *, now: datetime) -> Iterator[Evidence]:
    """Yield the state of a feed, its last polls, and what became of its articles."""
    row = read_feed(engine, canonical)
    if row is None:
        yield Evidence(FEEDS.name, "absent", "The ledger has no feed of this address.")
        return
    history = read_history(engine, canonical)
    why = explain_feed(row, history, now=now)
    place = f"ledger feeds {canonical}"
    reasons = "; ".join(why.reasons)
    text = f"The feed is {row.status}{f': {reasons}' if reasons else ''}. Next: {why.next_step}."
    facts = {name: str(getattr(row, name)) for name in ("title", "origin", "verdict")}
    details = {**facts, "rhythm": rhythm_text(row, now=now)}
    at = row.last_crawled or row.checked_at
    yield Evidence(FEEDS.name, row.status, text, at=at, source=place, details=details)
    for poll in history.polls:
        text = (
            f"A poll ended with {poll.outcome.replace('_', ' ')}: {poll.items} items, "
            f"{poll.new_items} new (HTTP {poll.status_code or 'no response'})."
        )
        source = f"ledger feed_polls id={poll.id}"
        yield Evidence(FEEDS.name, "polled", text, at=poll.polled_at, source=source)
    for status, count in history.articles.items():
        text = f"{number_of(count, 'article')} that it listed first: {status}."
        yield Evidence(FEEDS.name, status, text, source=place)
    for rule, count in history.robots.items():
        yield Evidence(FEEDS.name, "refused", f"{count} of them are refused: {rule}.", source=place)


def explain_site_feeds(engine: sa.Engine, domain: str) -> Iterator[Evidence]:
    """Yield the feeds of a domain, and how many of its articles have each state."""
    near = list_feeds(engine, FeedFilter(text=domain))
    feeds = [row for row in near if registrable_domain(url_host(row.feed_url_canon)) == domain]
    for row in feeds[:_SHOWN]:
        yield Evidence(
            FEEDS.name,
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
        text = f"{number_of(count, 'article')} of the domain: {status}."
        yield Evidence(FEEDS.name, status, text, at=newest, source="ledger raw")
    if not feeds and not rows:
        yield Evidence(
            FEEDS.name, "absent", f"The ledger has neither feeds nor articles of {domain}."
        )


def explain_sheet_rows(
    engine: sa.Engine, store: ObjectStore, page: PageAddress
) -> Iterator[Evidence]:
    """Yield the spreadsheets and workbooks that show an article."""
    with read_transaction(engine) as connection:
        for row in _article_rows(connection, page):
            is_mine = sa.or_(
                sa.and_(SHEET_ROWS.c.tab == "Raw", SHEET_ROWS.c.key == str(row.row_id)),
                sa.and_(SHEET_ROWS.c.tab == "ArticlesIndex", SHEET_ROWS.c.key == row.url_hash),
            )
            for one in connection.execute(sa.select(SHEET_ROWS).where(is_mine)):
                yield Evidence(
                    ARTICLE_SHEETS.name,
                    "shown" if one.seq > 0 else "pending",
                    f"Tab {one.tab} of spreadsheet {one.book} "
                    f"{'shows' if one.seq > 0 else 'is about to show'} the article.",
                    source=f"ledger sheet_rows {one.book}/{one.tab}/{one.key}",
                )
            yield from _workbook(connection, store, row)


def _workbook(
    connection: sa.Connection, store: ObjectStore, row: sa.Row[Any]
) -> Iterator[Evidence]:
    """Yield the workbook under the root if it shows a row of Raw: it has the newest ones."""
    marker = read_markers(store, DATASET).get(PARTITION)
    shown = read_report(store, marker).get("rows") if marker is not None else None
    newer = sa.select(sa.func.count()).where(RAW.c.row_id > row.row_id)
    rows = shown.get("Raw", 0) if isinstance(shown, dict) else 0
    if connection.execute(newer).scalar_one() < rows:
        text = "Tab Raw of the workbook shows the article."
        at = store.head(WORKBOOK_PATH).modified_at
        yield Evidence(ARTICLE_SHEETS.name, "shown", text, at=at, source=WORKBOOK_PATH)


@dataclass(frozen=True, slots=True)
class FeedExplanation:
    """The reasons in order of weight; empty if the feed does what it should."""

    reasons: tuple[str, ...]
    rhythm: str
    next_step: str


def explain_feed(row: sa.Row[Any], history: FeedHistory, *, now: datetime) -> FeedExplanation:
    """Return why nothing comes from a feed, its rhythm, and what happens next."""
    reasons = (*_state(row, now=now), *_polls(row, history), *_articles(row, history))
    if is_silent(row, now=now):
        reasons += (f"it is silent against its own rhythm: {rhythm_text(row, now=now)}",)
    return FeedExplanation(
        reasons=reasons,
        rhythm=rhythm_text(row, now=now),
        next_step=_next_step(row, now=now),
    )


def rhythm_text(row: sa.Row[Any], *, now: datetime) -> str:
    """Return how often a feed publishes, and how long ago it did last."""
    usual = f"every {span(row.usual_gap_seconds)}" if row.usual_gap_seconds else "unknown"
    if row.last_entry_date is None:
        return f"usual gap {usual}, no dated entry"
    ago = span((now - row.last_entry_date).total_seconds())
    return f"usual gap {usual}, newest entry {ago} ago"


def span(seconds: float) -> str:
    """Return a length of time for people, in its largest unit."""
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} seconds"


def _state(row: sa.Row[Any], *, now: datetime) -> Iterator[str]:
    remark = remark_of(row.notes)
    if row.status in ("rejected", "unreachable"):
        rule = RECHECKS.get(row.verdict)
        meaning = f": {rule.meaning}" if rule else ""
        yield f"discovery says {row.verdict or row.status}{meaning} ({remark})"
    elif row.status == "paused":
        yield "a person paused it"
    elif row.status == "retired":
        yield f"it is retired ({remark})"
    elif row.status == "gone":
        yield f"it is gone ({remark})"
    elif row.status == "dead":
        yield "it failed so often that it is only probed once a week"
    if row.failing_since is not None:
        failing = span((now - row.failing_since).total_seconds())
        yield f"its polls have failed for {failing}: {remark or 'no reason recorded'}"


def _polls(row: sa.Row[Any], history: FeedHistory) -> Iterator[str]:
    newest = next(iter(history.polls), None)
    if newest is None:
        if row.status == "active":
            yield "it has not been polled yet"
    elif newest.outcome == "no_links":
        yield f"none of its {newest.items} items links to a page"
    elif newest.outcome == "read" and not newest.items:
        yield "it is an empty feed: its last response lists no items"
    elif newest.outcome in ("not_modified", "same_body") and row.failing_since is None:
        yield "its last response was the same as the one before"
    if row.may_miss_items:
        yield "it turns over between two polls: items may have been missed"
    if row.skipped_items:
        yield f"{row.skipped_items} items of its last response are beyond the limit of a poll"


def _articles(row: sa.Row[Any], history: FeedHistory) -> Iterator[str]:
    for rule, count in history.robots.items():
        yield f"robots.txt forbids {count} of its articles: {rule}"
    for status, text in (
        ("pending", "of its articles wait to be fetched: is a worker running?"),
        ("error", "of its articles failed"),
        ("duplicate", "of its articles were carried by other feeds before"),
    ):
        count = history.articles.get(status, 0)
        if count and not history.articles.get("stored"):
            yield f"{count} {text}"
    top = next(iter(history.reasons.items()), None)
    if top is not None and not history.robots:
        yield f"the most frequent reason of its articles, {top[1]} times: {top[0]}"


def _next_step(row: sa.Row[Any], *, now: datetime) -> str:
    if row.status in ("rejected", "unreachable"):
        return f"it is checked again at {_moment(row.next_check_at, now)}"
    if row.status in ("active", "dead"):
        return f"its next poll is at {_moment(row.next_poll_at, now)}"
    if row.status == "retired" and row.verdict == UNLISTED:
        return "nothing, until feeds.opml lists it again or a person resumes it"
    return "nothing, until a person resumes it"


def _moment(moment: datetime | None, now: datetime) -> str:
    if moment is None or moment <= now:
        return "the next run"
    return f"{moment:%Y-%m-%d %H:%M} UTC, in {span((moment - now).total_seconds())}"
