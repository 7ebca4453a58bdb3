"""Record in the ledger what became of the articles that a worker has claimed.

An article is stored, a duplicate, skipped, deferred, or failed. Each result is written in one
ledger transaction, and only while the worker's claim still holds the row.
"""

import difflib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from news_platform.rss.ledger.article_claims import ArticleClaim, held_by
from news_platform.rss.ledger.article_states import note_states, trim_states
from news_platform.rss.ledger.entries import with_text
from news_platform.rss.ledger.tables import (
    ALERT_MATCHES,
    ANALYSES,
    ARTICLE_STATES,
    ARTICLES_INDEX,
    FEED_ITEMS,
    LINKS,
    RAW,
    REVISIONS,
)
from news_platform.rss.ledger.transactions import LedgerTransaction

StoreResult = Literal["stored", "revised", "unchanged", "duplicate_url", "duplicate_text", "lost"]

# A closed row belongs to no worker.
_UNLOCKED: dict[str, Any] = {"lock_owner": "", "lock_at": None, "deferred_since": None}
# An article that is claimed so often has many states; the oldest end now and then.
_TRIMMED_EVERY = 8


def store_article(
    transaction: LedgerTransaction,
    claim: ArticleClaim,
    columns: Mapping[str, Any],
    *,
    link_hashes: Sequence[str],
    now: datetime,
) -> StoreResult:
    """Store the article, or mark its row as a duplicate of the row that was there first.

    `columns` are the columns of Raw that the page fills, `link_hashes` the URL hashes of the pages
    it links to.
    """
    # Locked until the commit, so that no other worker can claim the row in between.
    row = transaction.connection.execute(
        sa.select(RAW).where(held_by(claim)).with_for_update()
    ).one_or_none()
    if row is None:
        return "lost"
    # Checked by the final URL: the page may have redirected to an article that is known.
    main = _row_of_url(transaction, columns["url_hash"])
    if main is not None and main != claim.row_id:
        _mark_duplicate(transaction, row, main=main, reason="url", now=now)
        return "duplicate_url"
    twin = _row_of_text(transaction, columns["text_hash"], other_than=claim.row_id)
    if twin is not None and (twin.found_at, twin.row_id) < (row.found_at, row.row_id):
        _mark_duplicate(transaction, row, main=twin.row_id, reason="text", now=now)
        return "duplicate_text"
    if twin is not None:
        # The other one was found later and only finished first.
        _mark_duplicate(transaction, twin, main=row.row_id, reason="text", now=now)
        _write_links(transaction, twin.row_id, ())
        row = transaction.connection.execute(sa.select(RAW).where(held_by(claim))).one()
    result = _add_revision(transaction, row, columns, now=now) if row.text_hash else "stored"
    _write_article(transaction, row, columns, now=now)
    _write_index(transaction, row, columns, revised=result == "revised", now=now)
    _write_links(transaction, claim.row_id, link_hashes)
    # Of the two, one was counted as stored already, and the other is the duplicate.
    return "duplicate_text" if twin is not None else result


def rewrite_article(
    transaction: LedgerTransaction,
    row_id: int,
    columns: Mapping[str, Any],
    *,
    link_hashes: Sequence[str],
    now: datetime,
) -> Literal["rewritten", "unchanged", "duplicate_text", "gone"]:
    """Replace what was extracted from a stored article; this is not a revision of its publisher.

    "gone" means that the article is being worked on, or is a duplicate by now.
    """
    chosen = sa.select(RAW).where(RAW.c.row_id == row_id, RAW.c.status == "stored")
    row = transaction.connection.execute(chosen.with_for_update()).one_or_none()
    if row is None:
        return "gone"
    twin = _row_of_text(transaction, columns["text_hash"], other_than=row_id)
    if twin is not None:
        _mark_duplicate(transaction, row, main=twin.row_id, reason="text", now=now)
        _write_links(transaction, row_id, ())
        return "duplicate_text"
    facts = {
        **columns,
        "published_at": columns["published_at"] or row.published_at,
        "title": columns["title"] or row.title,
    }
    differs = any(getattr(row, name) != value for name, value in facts.items())
    facts |= {"reextracted_at": now}
    if differs:
        facts |= {"changed_seq": transaction.seq}
    transaction.connection.execute(sa.update(RAW).where(RAW.c.row_id == row_id).values(facts))
    if not differs:
        return "unchanged"
    _write_index(transaction, row, columns, revised=False, now=now)
    _write_links(transaction, row_id, link_hashes)
    return "rewritten"


def fail_article(
    transaction: LedgerTransaction,
    claim: ArticleClaim,
    reason: str,
    *,
    retry_at: datetime | None,
    now: datetime,
    facts: Mapping[str, Any] | None = None,
) -> bool:
    """Record a failure: the article is tried again at `retry_at`, or never when that is None.

    An article that was stored before stays stored. Return False if the claim was lost.
    """
    # `text_hash` is set: the article was stored and only its second fetch failed.
    given_up = "stored" if claim.text_hash else "error"
    return _close(
        transaction,
        claim,
        now,
        **(facts or {}),
        status=given_up if retry_at is None else "pending",
        next_try_at=retry_at,
        retries=claim.retries + 1,
        error_msg=reason,
        processed_at=now,
    )


def skip_article(
    transaction: LedgerTransaction,
    claim: ArticleClaim,
    reason: str,
    *,
    now: datetime,
    facts: Mapping[str, Any] | None = None,
) -> bool:
    """Record that policy forbids the article; return False if the claim was lost.

    `facts` are further columns, such as the rule that decided.
    """
    status = "stored" if claim.text_hash else "skipped"
    values = {**(facts or {}), "status": status, "error_msg": reason, "processed_at": now}
    return _close(transaction, claim, now, **values)


def defer_article(
    transaction: LedgerTransaction,
    claim: ArticleClaim,
    reason: str,
    *,
    retry_at: datetime,
    now: datetime,
) -> bool:
    """Return the article to the queue without counting a retry; False if the claim was lost."""
    return _close(
        transaction,
        claim,
        now,
        status="pending",
        next_try_at=retry_at,
        error_msg=reason,
        deferred_since=claim.deferred_since or now,
    )


def forget_article(transaction: LedgerTransaction, claim: ArticleClaim) -> bool:
    """Delete a claimed article and all that refers to it; return False if the claim was lost."""
    held = sa.select(RAW.c.row_id).where(held_by(claim)).with_for_update()
    if transaction.connection.execute(held).one_or_none() is None:
        return False
    delete_articles(transaction, [claim.row_id])
    return True


def delete_articles(transaction: LedgerTransaction, row_ids: Sequence[int]) -> None:
    """Delete rows of Raw with all that other tables have about them."""
    for table, column in (
        (REVISIONS, REVISIONS.c.row_id),
        (LINKS, LINKS.c.row_id),
        (FEED_ITEMS, FEED_ITEMS.c.row_id),
        (ARTICLE_STATES, ARTICLE_STATES.c.row_id),
        (ANALYSES, ANALYSES.c.row_id),
        (ALERT_MATCHES, ALERT_MATCHES.c.row_id),
        (ARTICLES_INDEX, ARTICLES_INDEX.c.row_id_raw),
        (RAW, RAW.c.row_id),
    ):
        transaction.connection.execute(sa.delete(table).where(column.in_(row_ids)))


def retry_time(now: datetime, *, retries: int, retry_seconds: int) -> datetime:
    """Return when to try again: the wait doubles with each failure, up to one day."""
    return now + timedelta(seconds=min(retry_seconds * 2**retries, 86_400))


def text_delta(old: str, new: str) -> str:
    """Return the removed and added lines as a unified diff without context."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    # The first two lines of a unified diff are file names.
    return "\n".join(list(lines)[2:])


def _close(
    transaction: LedgerTransaction, claim: ArticleClaim, now: datetime, /, **values: Any
) -> bool:
    connection = transaction.connection
    closed = connection.execute(
        sa.update(RAW)
        .where(held_by(claim))
        .values({**_UNLOCKED, "changed_seq": transaction.seq, **values})
        .returning(RAW.c.row_id)
    )
    if closed.one_or_none() is None:
        return False
    status, reason = values["status"], values["error_msg"]
    note_states(connection, [claim.row_id], status, now=now, reason=reason)
    if claim.attempt % _TRIMMED_EVERY == 0:
        trim_states(connection, claim.row_id)
    return True


def _row_of_url(transaction: LedgerTransaction, url_hash: str) -> int | None:
    """Return the row_id that ArticlesIndex holds for a URL, or None."""
    chosen = sa.select(ARTICLES_INDEX.c.row_id_raw).where(ARTICLES_INDEX.c.url_hash == url_hash)
    return transaction.connection.execute(chosen).scalar_one_or_none()


def _row_of_text(
    transaction: LedgerTransaction, text_hash: str, *, other_than: int
) -> sa.Row[Any] | None:
    chosen = sa.select(RAW).where(
        RAW.c.text_hash == text_hash, RAW.c.status == "stored", RAW.c.row_id != other_than
    )
    return transaction.connection.execute(chosen.limit(1)).one_or_none()


def _mark_duplicate(
    transaction: LedgerTransaction, row: sa.Row[Any], *, main: int, reason: str, now: datetime
) -> None:
    """Close the row as a duplicate and add its URLs and feeds to the main row."""
    transaction.connection.execute(
        sa.update(RAW)
        .where(RAW.c.row_id == row.row_id)
        .values(
            **_UNLOCKED,
            status="duplicate",
            error_msg="",
            processed_at=now,
            changed_seq=transaction.seq,
        )
    )
    transaction.connection.execute(
        sa.update(ARTICLES_INDEX)
        .where(ARTICLES_INDEX.c.row_id_raw == row.row_id)
        .values(row_id_raw=main, is_duplicate=True, reason=reason, changed_seq=transaction.seq)
    )
    why = f"same {reason} as row {main}"
    note_states(transaction.connection, [row.row_id], "duplicate", now=now, reason=why)
    # The row may have aliases of its own, from an earlier duplicate or redirect.
    aliases = (*row.aliases, row.article_url_canon)
    _add_to_main(transaction, main, aliases=aliases, sources=row.sources_list)


def _add_to_main(
    transaction: LedgerTransaction, main: int, *, aliases: Sequence[str], sources: Sequence[str]
) -> None:
    old = transaction.connection.execute(
        sa.select(RAW.c.aliases, RAW.c.sources_list).where(RAW.c.row_id == main)
    ).one()
    transaction.connection.execute(
        sa.update(RAW)
        .where(RAW.c.row_id == main)
        .values(
            aliases=tuple(dict.fromkeys((*old.aliases, *aliases))),
            sources_list=tuple(dict.fromkeys((*old.sources_list, *sources))),
            changed_seq=transaction.seq,
        )
    )


def _add_revision(
    transaction: LedgerTransaction, row: sa.Row[Any], columns: Mapping[str, Any], *, now: datetime
) -> StoreResult:
    """Record what changed between the stored text and the new one."""
    if row.text_hash == columns["text_hash"]:
        return "unchanged"
    count = sa.select(sa.func.count()).where(REVISIONS.c.row_id == row.row_id)
    transaction.connection.execute(
        sa.insert(REVISIONS).values(
            row_id=row.row_id,
            rev_n=transaction.connection.execute(count).scalar_one() + 1,
            revised_at=now,
            old_text_hash=row.text_hash,
            new_text_hash=columns["text_hash"],
            delta=text_delta(row.clean_text, columns["clean_text"]),
        )
    )
    return "revised"


def _write_article(
    transaction: LedgerTransaction, row: sa.Row[Any], columns: Mapping[str, Any], *, now: datetime
) -> None:
    moved = columns["url_hash"] != row.url_hash
    aliases = with_text(row.aliases, row.article_url_canon) if moved else row.aliases
    values = {
        **columns,
        **_UNLOCKED,
        "status": "stored",
        # The date and title of the page come first, those of the feed second.
        "published_at": columns["published_at"] or row.published_at,
        "title": columns["title"] or row.title,
        "full_text_expired_at": None,
        "aliases": aliases,
        "processed_at": now,
        # A revision stays in the daily file of the day when the article was first stored.
        "stored_at": row.stored_at or now,
        "next_try_at": None,
        "error_msg": "",
        "changed_seq": transaction.seq,
    }
    transaction.connection.execute(sa.update(RAW).where(RAW.c.row_id == row.row_id).values(values))
    note_states(transaction.connection, [row.row_id], "stored", now=now)


def _write_index(
    transaction: LedgerTransaction,
    row: sa.Row[Any],
    columns: Mapping[str, Any],
    *,
    revised: bool,
    now: datetime,
) -> None:
    facts: dict[str, Any] = {
        "text_hash": columns["text_hash"],
        "language": columns["language"],
        "category_guess": columns["category_guess"],
        "changed_seq": transaction.seq,
    }
    index = ARTICLES_INDEX.c
    if columns["url_hash"] != row.url_hash:
        _index_final_url(transaction, row, columns, now=now)
    transaction.connection.execute(
        sa.update(ARTICLES_INDEX)
        .where(index.url_hash == columns["url_hash"])
        .values(is_duplicate=False, reason="", rev_n=index.rev_n + int(revised), **facts)
    )


def _index_final_url(
    transaction: LedgerTransaction, row: sa.Row[Any], columns: Mapping[str, Any], *, now: datetime
) -> None:
    """Mark the URL of the feed as a redirect and add the final URL to ArticlesIndex."""
    old = ARTICLES_INDEX.c.url_hash == row.url_hash
    transaction.connection.execute(
        sa.update(ARTICLES_INDEX)
        .where(old)
        .values(is_duplicate=True, reason="redirect", changed_seq=transaction.seq)
    )
    if _row_of_url(transaction, columns["url_hash"]) is None:
        transaction.connection.execute(
            sa.insert(ARTICLES_INDEX).values(
                url_hash=columns["url_hash"],
                article_url_canon=columns["article_url_canon"],
                row_id_raw=row.row_id,
                first_seen=now,
                last_seen=now,
                changed_seq=transaction.seq,
            )
        )


def _write_links(transaction: LedgerTransaction, row_id: int, hashes: Sequence[str]) -> None:
    # A revision may link to other pages than the text before it.
    transaction.connection.execute(sa.delete(LINKS).where(LINKS.c.row_id == row_id))
    rows = [{"target_url_hash": key, "row_id": row_id} for key in dict.fromkeys(hashes)]
    if rows:
        transaction.connection.execute(sa.insert(LINKS), rows)
