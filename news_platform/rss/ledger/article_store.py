"""Write extracted articles to the ledger: their columns, revisions, duplicates, aliases and links.

Each result is written in one ledger transaction, and only while the worker's claim holds the row.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from news_platform.articles.article import titles_agree
from news_platform.rss.ledger.article_queue import (
    DUE,
    UNLOCKED,
    ArticleClaim,
    held_by,
    note_states,
)
from news_platform.rss.ledger.tables import ARTICLES_INDEX, LINKS, RAW, REVISIONS
from news_platform.rss.ledger.transactions import LedgerTransaction
from news_platform.web.urls import url_hash

StoreResult = Literal[
    "stored", "revised", "unchanged", "duplicate_url", "duplicate_text", "kept", "retry", "lost"
]


def store_article(
    transaction: LedgerTransaction,
    claim: ArticleClaim,
    columns: Mapping[str, Any],
    *,
    link_hashes: Sequence[str],
    now: datetime,
    is_stated: bool = False,
    compared_with: int | None = None,
) -> StoreResult:
    """Store the article, or mark its row as a duplicate of the row that was there first.

    `columns` are the columns of Raw that the page fills, `link_hashes` the URL hashes of the pages
    it links to. `is_stated` says that the URL is not where the page was found but the one that it
    states. An article that has a text never becomes a duplicate: it keeps that text. Without a
    `full_text_ref` nothing is stored: the file belonged to another article when it was due.
    A page in doubt is a duplicate only of the article that it was `compared_with`.
    """
    writer = _Writer(transaction, now)
    held = sa.select(RAW.c.row_id).where(held_by(claim)).with_for_update()
    # Locked until the commit, so that no other worker can claim the row in between.
    if transaction.connection.execute(held).one_or_none() is None:
        return "lost"
    row = writer.row(claim.row_id)
    if row.text_hash and (reason := taken_by(transaction.connection, row.row_id, columns)):
        writer.close(row, error_msg=reason)
        return "kept"
    # Found by the final URL: the page may have redirected to an article that is known.
    main = writer.row_of_url(columns["url_hash"])
    if main is not None and main.row_id != row.row_id:
        if main.text_hash and columns["full_text_ref"]:
            # Another process has just stored it; the file of its text is ours now.
            writer.close(main, error_msg="", **DUE)
        if is_stated and not titles_agree(main.title, columns["title"]):
            # A page of the same template.
            return writer.retry(row, "another article has its address")
        if main.text_hash and _is_unsure_of(main, columns, compared_with):
            return writer.retry(row, "another article leads to its page")
        if main.text_hash:
            writer.mark_duplicate(row, main=main.row_id, reason="url")
            return "duplicate_url"
        # The known address has failed or waits until now: this is its text.
        row, other = (row, main) if row.text_hash else (main, row)
        writer.mark_duplicate(other, main=row.row_id, reason="url")
    if not columns["full_text_ref"]:
        return writer.retry(row, "another article had its address")
    return writer.store_text(row, columns, link_hashes, compared_with)


def _is_unsure_of(
    other: sa.Row[Any], columns: Mapping[str, Any], compared_with: int | None
) -> bool:
    """Return whether a page in doubt was judged before this other article had it, too."""
    return bool(columns.get("page_doubt")) and other.row_id != compared_with


@dataclass(frozen=True, slots=True)
class AddressHolder:
    """The article with an address or text; it is doubtful if its page may be that of another."""

    row_id: int
    title: str
    is_doubtful: bool


def other_holders(
    connection: sa.Connection, row_id: int, urls: Iterable[str]
) -> dict[str, AddressHolder]:
    """Return the other articles that ArticlesIndex holds for canonical URLs."""
    raw, keys = RAW.c, {url_hash(url): url for url in urls}
    is_doubtful = sa.and_(raw.page_doubt != "", raw.text_hash != "")
    chosen = (
        sa.select(ARTICLES_INDEX.c.url_hash, raw.row_id, raw.title, is_doubtful)
        .join(RAW, ARTICLES_INDEX.c.row_id_raw == raw.row_id)
        .where(ARTICLES_INDEX.c.url_hash.in_(keys), raw.row_id != row_id)
    )
    return {keys[row[0]]: AddressHolder(*row[1:]) for row in connection.execute(chosen)}


def text_holder(
    connection: sa.Connection, row_id: int, unique_text_hash: str | None
) -> AddressHolder | None:
    """Return the other article that has this text, or None."""
    twin = _twin(connection, unique_text_hash, other_than=row_id)
    if twin is None:
        return None
    is_doubtful = bool(twin.page_doubt and twin.text_hash)
    return AddressHolder(twin.row_id, twin.title, is_doubtful)


def retract_article(
    transaction: LedgerTransaction, row_id: int, reason: str, *, now: datetime
) -> None:
    """Take the text of another page back from a stored article, and make an error of it.

    It keeps `unique_text_hash`, by which the next article that shows this text is judged.
    """
    writer = _Writer(transaction, now)
    chosen = sa.select(RAW).where(RAW.c.row_id == row_id, RAW.c.text_hash != "")
    row = transaction.connection.execute(chosen.with_for_update()).one_or_none()
    if row is None:
        return
    emptied = {
        "text_hash": "",
        "clean_text": "",
        "clean_text_len": 0,
        "full_text_ref": "",
        "page_ref": "",
    }
    writer.update_raw(row_id, **UNLOCKED, **emptied, status="error", error_msg=reason)
    writer.write_links(row_id, ())
    note_states(transaction.connection, [row_id], "error", now=now, reason=reason)


def owner_of_text(connection: sa.Connection, row_id: int, url_hash: str) -> int | None:
    """Return the other article that has a text under this address, and so its file, or None."""
    index, raw = ARTICLES_INDEX.c, RAW.c
    chosen = (
        sa.select(raw.row_id)
        .join(ARTICLES_INDEX, index.row_id_raw == raw.row_id)
        .where(index.url_hash == url_hash, raw.text_hash != "", raw.row_id != row_id)
    )
    return connection.execute(chosen).scalar_one_or_none()


def taken_by(connection: sa.Connection, row_id: int, columns: Mapping[str, Any]) -> str:
    """Return why an article that has a text must not get these columns, or ''.

    Its page has come to show another article, or leads to one.
    """
    main = owner_of_text(connection, row_id, columns["url_hash"])
    if main is not None:
        return f"its page leads to row {main}"
    twin = _twin(connection, columns["unique_text_hash"], other_than=row_id)
    return "" if twin is None else f"its page has the text of row {twin.row_id}"


def _twin(
    connection: sa.Connection, unique_text_hash: str | None, *, other_than: int
) -> sa.Row[Any] | None:
    """Return the other row that has this text, or None."""
    if unique_text_hash is None:
        return None
    is_same = RAW.c.unique_text_hash == unique_text_hash
    return connection.execute(
        sa.select(RAW).where(is_same, RAW.c.row_id != other_than)
    ).one_or_none()


def lock_stored(transaction: LedgerTransaction, row_id: int, page_ref: str) -> sa.Row[Any] | None:
    """Return a stored article that still has this page, locked until the end; None if it has not.

    It may be worked on, or be a duplicate, or have a newer text by now.
    """
    is_same = (RAW.c.row_id == row_id, RAW.c.status == "stored", RAW.c.page_ref == page_ref)
    return transaction.connection.execute(
        sa.select(RAW).where(*is_same).with_for_update()
    ).one_or_none()


def rewrite_article(
    transaction: LedgerTransaction,
    row: sa.Row[Any],
    columns: Mapping[str, Any],
    *,
    link_hashes: Sequence[str],
    now: datetime,
) -> Literal["rewritten", "unchanged", "duplicate_text"]:
    """Replace what was extracted from a stored article; this is not a revision of its publisher.

    `row` is the article as `lock_stored` has returned it in this transaction.
    """
    writer, row_id = _Writer(transaction, now), row.row_id
    twin = writer.twin(row_id, columns["unique_text_hash"])
    if twin is not None and (twin.found_at, twin.row_id) < (row.found_at, row_id):
        writer.mark_duplicate(row, main=twin.row_id, reason="text")
        return "duplicate_text"
    if twin is not None:
        writer.mark_duplicate(twin, main=row_id, reason="text")
    facts = _with_feed_facts(row, columns)
    if all(getattr(row, name) == value for name, value in facts.items()):
        seen = sa.update(RAW).where(RAW.c.row_id == row_id).values(reextracted_at=now)
        transaction.connection.execute(seen)
        return "unchanged"
    writer.update_raw(row_id, **facts, reextracted_at=now)
    writer.write_index(row, columns, revised=False)
    writer.write_links(row_id, link_hashes)
    return "rewritten"


def revision_delta(old: tuple[str, str], new: tuple[str, str]) -> str:
    """Return what changed between two titles and texts as a unified diff without context.

    Its first two lines, in place of file names, are the titles; they are left out if these are
    equal. Without a line of the text, only the headline has changed.
    """
    titles = [" ".join(title.split()) for title, _ in (old, new)]
    changed = [f"--- {titles[0]}", f"+++ {titles[1]}"] if titles[0] != titles[1] else []
    lines = difflib.unified_diff(old[1].splitlines(), new[1].splitlines(), lineterm="", n=0)
    return "\n".join([*changed, *list(lines)[2:]])


def _with_feed_facts(row: sa.Row[Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns; the date and title of the page come first, those of the feed second."""
    filled = ("published_at", "stated_published_at", "title")
    return {**columns, **{it: columns[it] or getattr(row, it) for it in filled}}


class _Writer:
    """The statements about one article, with the number of their transaction."""

    def __init__(self, transaction: LedgerTransaction, now: datetime) -> None:
        self.connection = transaction.connection
        self.seq = transaction.seq
        self.now = now

    def row(self, row_id: int) -> sa.Row[Any]:
        return self.connection.execute(sa.select(RAW).where(RAW.c.row_id == row_id)).one()

    def row_of_url(self, url_hash: str) -> sa.Row[Any] | None:
        """Return the row that ArticlesIndex holds for a URL, or None."""
        is_same = ARTICLES_INDEX.c.row_id_raw == RAW.c.row_id
        chosen = sa.select(RAW).join(ARTICLES_INDEX, is_same)
        found = self.connection.execute(chosen.where(ARTICLES_INDEX.c.url_hash == url_hash))
        return found.one_or_none()

    def update_raw(self, row_id: int, **values: Any) -> None:
        changed = sa.update(RAW).where(RAW.c.row_id == row_id)
        self.connection.execute(changed.values(changed_seq=self.seq, **values))

    def update_index(self, where: sa.ColumnElement[bool], **values: Any) -> None:
        changed = sa.update(ARTICLES_INDEX).where(where)
        self.connection.execute(changed.values(changed_seq=self.seq, **values))

    def close(self, row: sa.Row[Any], **columns: Any) -> None:
        """End the claim of a row that has a text; it is due if its publisher changed it since."""
        values = {**UNLOCKED, "status": "stored", "processed_at": self.now, "next_try_at": None}
        values |= {**columns, **(DUE if row.fetch_again else {})}
        self.update_raw(row.row_id, **values)
        reason = columns["error_msg"]
        note_states(self.connection, [row.row_id], values["status"], now=self.now, reason=reason)

    def retry(self, row: sa.Row[Any], reason: str) -> Literal["retry"]:
        """Let the row be fetched again at once: the ledger has changed since its page was read."""
        self.close(row, error_msg=reason, **DUE)
        return "retry"

    def twin(self, row_id: int, unique_text_hash: str | None) -> sa.Row[Any] | None:
        """Return the other article with this text; one that it was taken from gives it up."""
        twin = _twin(self.connection, unique_text_hash, other_than=row_id)
        if twin is None or twin.text_hash:
            return twin
        self.update_raw(twin.row_id, unique_text_hash=None)
        return None

    def store_text(
        self,
        row: sa.Row[Any],
        columns: Mapping[str, Any],
        link_hashes: Sequence[str],
        compared_with: int | None,
    ) -> StoreResult:
        """Store a text under an address that is free, or mark its row or its twin's as a copy."""
        known = _twin(self.connection, columns["unique_text_hash"], other_than=row.row_id)
        if known is not None and _is_unsure_of(known, columns, compared_with):
            return self.retry(row, "another article shows its text")
        twin = self.twin(row.row_id, columns["unique_text_hash"])
        if twin is not None and (
            twin.status != "stored" or (twin.found_at, twin.row_id) < (row.found_at, row.row_id)
        ):
            self.mark_duplicate(row, main=twin.row_id, reason="text")
            return "duplicate_text"
        if twin is not None:
            # The other one was found later and only finished first.
            self.mark_duplicate(twin, main=row.row_id, reason="text")
        result = self.store(self.row(row.row_id), columns)
        self.write_links(row.row_id, link_hashes)
        # Of the two, one was counted as stored already, and the other is the duplicate.
        return "duplicate_text" if twin is not None else result

    def store(self, row: sa.Row[Any], columns: Mapping[str, Any]) -> StoreResult:
        """Write the columns to a row that no other has the URL or the text of."""
        result = self.add_revision(row, columns) if row.text_hash else "stored"
        moved = [row.article_url_canon] if columns["url_hash"] != row.url_hash else []
        self.close(
            row,
            **_with_feed_facts(row, columns),
            full_text_expired_at=None,
            aliases=tuple(dict.fromkeys((*row.aliases, *moved))),
            # A revision stays in the daily file of the day when the article was first stored.
            stored_at=row.stored_at or self.now,
            error_msg="",
        )
        self.write_index(row, columns, revised=result == "revised")
        return result

    def mark_duplicate(self, row: sa.Row[Any], *, main: int, reason: str) -> None:
        """Close the row as a duplicate and add its URLs and feeds to the main row."""
        self.update_raw(
            row.row_id,
            **UNLOCKED,
            status="duplicate",
            error_msg="",
            processed_at=self.now,
            unique_text_hash=None,
        )
        self.write_links(row.row_id, ())
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
        """Record what changed between the stored headline and text and the new ones."""
        title = columns["title"] or row.title
        is_same_text = row.text_hash == columns["text_hash"]
        # The hash ignores case and spacing, so the text of an equal hash may differ in these.
        text = row.clean_text if is_same_text else columns["clean_text"]
        delta = revision_delta((row.title, row.clean_text), (title, text))
        if is_same_text and not delta:
            return "unchanged"
        count = sa.select(sa.func.count()).where(REVISIONS.c.row_id == row.row_id)
        self.connection.execute(
            sa.insert(REVISIONS).values(
                row_id=row.row_id,
                rev_n=self.connection.execute(count).scalar_one() + 1,
                revised_at=self.now,
                old_text_hash=row.text_hash,
                new_text_hash=columns["text_hash"],
                delta=delta,
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
