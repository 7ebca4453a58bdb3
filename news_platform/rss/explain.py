"""Explain what the ledger knows about an article: its feeds, states, text and robots rule."""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from news_platform.datasets.evidence import Evidence
from news_platform.rss.ledger.article_states import read_states
from news_platform.rss.ledger.newsroom_tables import FEED_ITEMS
from news_platform.rss.ledger.tables import ARTICLES_INDEX, RAW, REVISIONS, ROBOTS
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.spellings import PageAddress
from news_platform.web.robots import Robots

ROOM = "rss"
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
        rows = read_rows(connection, page)
        for row in rows:
            yield from _listed(connection, row)
            yield from _robots(row, _robots_body(connection, store, row.robots_file))
            yield from _attempts(row)
            yield from _states(row, read_states(connection, row.row_id))
            yield _status(row)
            yield from _text(row)
            yield from _revisions(connection, row)
            yield from _duplicates(connection, row)
    if not rows:
        yield Evidence(ROOM, "absent", "No feed or news sitemap has listed this address.")


def read_rows(connection: sa.Connection, page: PageAddress) -> Sequence[sa.Row[Any]]:
    """Return the rows of Raw that a page has under any of its spellings and aliases."""
    # ArticlesIndex also holds the aliases of an article, such as addresses that redirect to it.
    known = sa.select(ARTICLES_INDEX.c.row_id_raw).where(ARTICLES_INDEX.c.url_hash.in_(page.hashes))
    named = sa.select(RAW.c.row_id).where(RAW.c.url_hash.in_(page.hashes))
    chosen = sa.select(RAW).where(RAW.c.row_id.in_(sa.union(known, named)))
    return connection.execute(chosen.order_by(RAW.c.row_id)).all()


def _listed(connection: sa.Connection, row: sa.Row[Any]) -> Iterator[Evidence]:
    items = sa.select(FEED_ITEMS.c.feed_url, FEED_ITEMS.c.changed_at).where(
        FEED_ITEMS.c.row_id == row.row_id
    )
    said = {feed: at for feed, at in connection.execute(items)}
    for feed in filter(None, dict.fromkeys((row.feed_url, *row.sources_list, *said))):
        is_first = feed == row.feed_url
        yield Evidence(
            ROOM,
            "listed",
            f"{feed} {'listed it first' if is_first else 'lists it, too'}.",
            at=row.found_at if is_first else said.get(feed, row.last_seen_rss),
            source=_place(row),
            details={"feed": feed, "url": row.article_url},
        )
    if row.last_seen_rss is not None and row.last_seen_rss != row.found_at:
        text = "A feed listed it last."
        yield Evidence(ROOM, "listed", text, at=row.last_seen_rss, source=_place(row))


def _robots_body(connection: sa.Connection, store: ObjectStore, file: str) -> bytes:
    """Return the robots.txt that a worker read, as the survey or the ledger has it now."""
    if not file or file.startswith(("http://", "https://")):
        kept = sa.select(ROBOTS.c.body).where(ROBOTS.c.origin == file.removesuffix("/robots.txt"))
        return connection.execute(kept).scalar_one_or_none() or b""
    try:
        return store.read(file)
    except NotFound:
        return b""


def _line_of(rule: str, body: bytes) -> int | None:
    """Return the number of the first line of a robots.txt that states a rule."""
    rules = (one for group in Robots.parse(body).groups for one in group.rules)
    return next((one.line for one in rules if str(one) == rule), None)


def _robots(row: sa.Row[Any], body: bytes) -> Iterator[Evidence]:
    if row.deferred_since is not None:
        text = "The article waited because the robots.txt of its site could not be read."
        yield Evidence(ROOM, "deferred", text, at=row.deferred_since, source=_place(row))
    if not row.robots_file:
        if row.fetched_at is not None:
            text = "Which robots rule let it be fetched was not recorded before 0.2."
            yield Evidence(ROOM, "unknown", text, source=_place(row))
        return
    is_refused = row.status == "skipped" and row.robots_rule.startswith("Disallow")
    line = _line_of(row.robots_rule, body) if row.robots_rule else None
    place = f" in line {line}" if line else ""
    rule = f"`{row.robots_rule}`{place}" if row.robots_rule else "no rule applies"
    yield Evidence(
        ROOM,
        "refused" if is_refused else "allowed",
        f"The robots.txt that the worker read {'refuses' if is_refused else 'allows'} it: {rule}.",
        at=row.robots_at,
        source=f"{row.robots_file}:{line}" if line else row.robots_file,
        details={"rule": row.robots_rule, "line": str(line or "")},
    )


def _attempts(row: sa.Row[Any]) -> Iterator[Evidence]:
    """Yield the steps on the way to the present state, as far as the ledger keeps their times."""
    if row.attempt:
        who = f" by {row.lock_owner}" if row.lock_owner else ""
        retries = f", {row.retries} of them after a failure" if row.retries else ""
        times = "once" if row.attempt == 1 else f"{row.attempt} times"
        text = f"A worker claimed it {times}{retries}{who}."
        yield Evidence(ROOM, "claimed", text, at=row.lock_at, source=_place(row))
    if row.fetched_at is not None:
        text = f"The page was fetched from {row.page_url or row.article_url_canon}."
        yield Evidence(ROOM, "fetched", text, at=row.fetched_at, source=_place(row))


def _states(row: sa.Row[Any], states: Sequence[sa.Row[Any]]) -> Iterator[Evidence]:
    """Yield every state that the article had, oldest first."""
    if not states or states[0].at > row.found_at:
        text = "Its first states were not recorded before 0.2, or are too long ago."
        yield Evidence(ROOM, "unknown", text, source=_place(row))
    for one in states:
        reason = f": {one.reason.rstrip('.')}" if one.reason else ""
        yield Evidence(
            ROOM,
            one.status,
            f"It became {one.status}{reason}.",
            at=one.at,
            source=f"ledger article_states id={one.id}",
        )


def _status(row: sa.Row[Any]) -> Evidence:
    text = _STATES.get(row.status, f"The ledger has the article as {row.status}.")
    reason = f" The last message: {row.error_msg.rstrip('.')}." if row.error_msg else ""
    wait = f" It is tried again at {row.next_try_at:%Y-%m-%d %H:%M} UTC." if row.next_try_at else ""
    moments = (row.stored_at, row.processed_at, row.fetched_at, row.lock_at, row.found_at)
    return Evidence(
        ROOM,
        row.status,
        text + reason + (wait if row.status in ("pending", "error") else ""),
        at=next(moment for moment in moments if moment is not None),
        source=_place(row),
        details={"url": row.article_url_canon, "row_id": str(row.row_id)},
    )


def _text(row: sa.Row[Any]) -> Iterator[Evidence]:
    if not row.clean_text_len:
        return
    version = row.extractor_version or "not recorded before 0.2"
    sure = f", confidence {row.confidence:.2f}" if row.confidence is not None else ""
    wall = "; it says that it is not the whole article" if row.is_paywalled else ""
    yield Evidence(
        ROOM,
        "extracted",
        f"Its text has {row.word_count} words, language {row.language or 'unknown'}, from "
        f"{row.text_source or 'page'}, by extractor {version}{sure}{wall}.",
        at=row.reextracted_at or row.processed_at,
        source=row.full_text_ref or _place(row),
        details={"extractor_version": version, "title": row.title},
    )
    if row.full_text_expired_at is not None:
        text = "The file of its full text is expired."
        yield Evidence(ROOM, "expired", text, at=row.full_text_expired_at)


def _revisions(connection: sa.Connection, row: sa.Row[Any]) -> Iterator[Evidence]:
    chosen = sa.select(REVISIONS).where(REVISIONS.c.row_id == row.row_id)
    for one in connection.execute(chosen.order_by(REVISIONS.c.rev_n)):
        yield Evidence(
            ROOM,
            "revised",
            f"The publisher changed the text (revision {one.rev_n}).",
            at=one.revised_at,
            source=f"ledger article_revisions row_id={row.row_id} rev_n={one.rev_n}",
        )


def _duplicates(connection: sa.Connection, row: sa.Row[Any]) -> Iterator[Evidence]:
    if row.aliases:
        text = f"It has other addresses: {', '.join(row.aliases[:5])}."
        yield Evidence(ROOM, "alias", text, source=_place(row))
    if not row.text_hash:
        return
    same = sa.select(RAW.c.article_url_canon, RAW.c.status, RAW.c.row_id).where(
        RAW.c.text_hash == row.text_hash, RAW.c.row_id != row.row_id
    )
    for one in connection.execute(same.order_by(RAW.c.row_id).limit(10)):
        yield Evidence(
            ROOM,
            "duplicate",
            f"{one.article_url_canon} has the same text ({one.status}).",
            source=f"ledger raw row_id={one.row_id}",
            details={"url": one.article_url_canon},
        )


def _place(row: sa.Row[Any]) -> str:
    return f"ledger raw row_id={row.row_id}"
