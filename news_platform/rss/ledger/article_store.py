"""Write extracted articles to the ledger: their columns, revisions, duplicates, aliases and links.

Each result is written in one ledger transaction, and only while the worker's claim holds the row.
"""

import difflib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from news_platform.rss.ledger.article_queue import UNLOCKED, ArticleClaim, held_by, note_states
from news_platform.rss.ledger.tables import ARTICLES_INDEX, LINKS, RAW, REVISIONS
from news_platform.rss.ledger.transactions import LedgerTransaction

StoreResult = Literal["stored", "revised", "unchanged", "duplicate_url", "duplicate_text", "lost"]


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
    writer, held = _Writer(transaction, now), sa.select(RAW).where(held_by(claim))
    # Locked until the commit, so that no other worker can claim the row in between.
    row = transaction.connection.execute(held.with_for_update()).one_or_none()
    if row is None:
        return "lost"
    # Checked by the final URL: the page may have redirected to an article that is known.
    main = writer.row_of_url(columns["url_hash"])
    if main is not None and main != claim.row_id:
        writer.mark_duplicate(row, main=main, reason="url")
        return "duplicate_url"
    twin = writer.row_of_text(columns["text_hash"], other_than=claim.row_id)
    if twin is not None and (twin.found_at, twin.row_id) < (row.found_at, row.row_id):
        writer.mark_duplicate(row, main=twin.row_id, reason="text")
        return "duplicate_text"
    if twin is not None:
        # The other one was found later and only finished first.
        writer.mark_duplicate(twin, main=row.row_id, reason="text")
        writer.write_links(twin.row_id, ())
        row = transaction.connection.execute(held).one()
    result = writer.add_revision(row, columns) if row.text_hash else "stored"
    moved = columns["url_hash"] != row.url_hash
    writer.update_raw(
        row.row_id,
        **_with_feed_facts(row, columns),
        **UNLOCKED,
        status="stored",
        full_text_expired_at=None,
        aliases=tuple(dict.fromkeys((*row.aliases, *([row.article_url_canon] if moved else ())))),
        processed_at=now,
        # A revision stays in the daily file of the day when the article was first stored.
        stored_at=row.stored_at or now,
        next_try_at=None,
        error_msg="",
    )
    note_states(transaction.connection, [row.row_id], "stored", now=now)
    writer.write_index(row, columns, revised=result == "revised")
    writer.write_links(claim.row_id, link_hashes)
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
    writer = _Writer(transaction, now)
    chosen = sa.select(RAW).where(RAW.c.row_id == row_id, RAW.c.status == "stored")
    row = transaction.connection.execute(chosen.with_for_update()).one_or_none()
    if row is None:
        return "gone"
    twin = writer.row_of_text(columns["text_hash"], other_than=row_id)
    if twin is not None:
        writer.mark_duplicate(row, main=twin.row_id, reason="text")
        writer.write_links(row_id, ())
        return "duplicate_text"
    facts = _with_feed_facts(row, columns)
    if all(getattr(row, name) == value for name, value in facts.items()):
        seen = sa.update(RAW).where(RAW.c.row_id == row_id).values(reextracted_at=now)
        transaction.connection.execute(seen)
        return "unchanged"
    writer.update_raw(row_id, **facts, reextracted_at=now)
    writer.write_index(row, columns, revised=False)
    writer.write_links(row_id, link_hashes)
    return "rewritten"


def text_delta(old: str, new: str) -> str:
    """Return the removed and added lines as a unified diff without context."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    # The first two lines of a unified diff are file names.
    return "\n".join(list(lines)[2:])


def _with_feed_facts(row: sa.Row[Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns; the date and title of the page come first, those of the feed second."""
    return {**columns, **{it: columns[it] or getattr(row, it) for it in ("published_at", "title")}}


class _Writer:
    """The statements about one article, with the number of their transaction."""

    def __init__(self, transaction: LedgerTransaction, now: datetime) -> None:
        self.connection = transaction.connection
        self.seq = transaction.seq
        self.now = now

    def row_of_url(self, url_hash: str) -> int | None:
        """Return the row_id that ArticlesIndex holds for a URL, or None."""
        chosen = sa.select(ARTICLES_INDEX.c.row_id_raw).where(ARTICLES_INDEX.c.url_hash == url_hash)
        return self.connection.execute(chosen).scalar_one_or_none()

    def row_of_text(self, text_hash: str, *, other_than: int) -> sa.Row[Any] | None:
        chosen = sa.select(RAW).where(
            RAW.c.text_hash == text_hash, RAW.c.status == "stored", RAW.c.row_id != other_than
        )
        return self.connection.execute(chosen.limit(1)).one_or_none()

    def update_raw(self, row_id: int, **values: Any) -> None:
        changed = sa.update(RAW).where(RAW.c.row_id == row_id)
        self.connection.execute(changed.values(changed_seq=self.seq, **values))

    def update_index(self, where: sa.ColumnElement[bool], **values: Any) -> None:
        changed = sa.update(ARTICLES_INDEX).where(where)
        self.connection.execute(changed.values(changed_seq=self.seq, **values))

    def mark_duplicate(self, row: sa.Row[Any], *, main: int, reason: str) -> None:
        """Close the row as a duplicate and add its URLs and feeds to the main row."""
        closed = {**UNLOCKED, "status": "duplicate", "error_msg": "", "processed_at": self.now}
        self.update_raw(row.row_id, **closed)
        self.update_index(
            ARTICLES_INDEX.c.row_id_raw == row.row_id,
            row_id_raw=main,
            is_duplicate=True,
            reason=reason,
        )
        why = f"same {reason} as row {main}"
        note_states(self.connection, [row.row_id], "duplicate", now=self.now, reason=why)
        known = sa.select(RAW.c.aliases, RAW.c.sources_list).where(RAW.c.row_id == main)
        old = self.connection.execute(known).one()
        # The row may have aliases of its own, from an earlier duplicate or redirect.
        self.update_raw(
            main,
            aliases=tuple(dict.fromkeys((*old.aliases, *row.aliases, row.article_url_canon))),
            sources_list=tuple(dict.fromkeys((*old.sources_list, *row.sources_list))),
        )

    def add_revision(self, row: sa.Row[Any], columns: Mapping[str, Any]) -> StoreResult:
        """Record what changed between the stored text and the new one."""
        if row.text_hash == columns["text_hash"]:
            return "unchanged"
        count = sa.select(sa.func.count()).where(REVISIONS.c.row_id == row.row_id)
        self.connection.execute(
            sa.insert(REVISIONS).values(
                row_id=row.row_id,
                rev_n=self.connection.execute(count).scalar_one() + 1,
                revised_at=self.now,
                old_text_hash=row.text_hash,
                new_text_hash=columns["text_hash"],
                delta=text_delta(row.clean_text, columns["clean_text"]),
            )
        )
        return "revised"

    def write_index(self, row: sa.Row[Any], columns: Mapping[str, Any], *, revised: bool) -> None:
        index = ARTICLES_INDEX.c
        if columns["url_hash"] != row.url_hash:
            self.update_index(index.url_hash == row.url_hash, is_duplicate=True, reason="redirect")
            if self.row_of_url(columns["url_hash"]) is None:
                self.connection.execute(
                    sa.insert(ARTICLES_INDEX).values(
                        url_hash=columns["url_hash"],
                        article_url_canon=columns["article_url_canon"],
                        row_id_raw=row.row_id,
                        first_seen=self.now,
                        last_seen=self.now,
                        changed_seq=self.seq,
                    )
                )
        self.update_index(
            index.url_hash == columns["url_hash"],
            is_duplicate=False,
            reason="",
            rev_n=index.rev_n + int(revised),
            **{name: columns[name] for name in ("text_hash", "language", "category_guess")},
        )

    def write_links(self, row_id: int, hashes: Sequence[str]) -> None:
        # A revision may link to other pages than the text before it.
        self.connection.execute(sa.delete(LINKS).where(LINKS.c.row_id == row_id))
        rows = [{"target_url_hash": key, "row_id": row_id} for key in dict.fromkeys(hashes)]
        if rows:
            self.connection.execute(sa.insert(LINKS), rows)
