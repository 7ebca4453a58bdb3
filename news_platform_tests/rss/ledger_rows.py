"""Write the rows and read the full texts of a ledger under test."""

import gzip
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from news_platform.rss.article_files import full_text_path
from news_platform.rss.ledger.tables import ANALYSES, ARTICLES_INDEX, FEEDS, RAW
from news_platform.rss.ledger.transactions import note_metrics, write_config, write_transaction
from news_platform.storage.objects.store import ObjectStore

NOW = datetime(2025, 11, 3, 20, tzinfo=UTC)


def add_article(engine: sa.Engine, **values: Any) -> int:
    """Add one article and its index row; return its row_id."""
    return add_articles(engine, [values])[0]


def add_articles(engine: sa.Engine, rows: list[dict[str, Any]]) -> list[int]:
    """Add articles and their index rows in one transaction; return their row_ids."""
    with write_transaction(engine) as transaction:
        first = (
            transaction.connection.execute(sa.select(sa.func.max(RAW.c.row_id))).scalar_one() or 0
        )
        made = [
            _article(first + n, values, seq=transaction.seq)
            for n, values in enumerate(rows, start=1)
        ]
        transaction.connection.execute(sa.insert(RAW), made)
        transaction.connection.execute(
            sa.insert(ARTICLES_INDEX), [_index_row(row, seq=transaction.seq) for row in made]
        )
        return [row["row_id"] for row in made]


def _article(row_id: int, values: dict[str, Any], *, seq: int) -> dict[str, Any]:
    url = f"https://outlet.example/{row_id}"
    return {
        "row_id": row_id,
        "feed_url": "https://outlet.example/feed",
        "article_url": url,
        "article_url_canon": url,
        "url_hash": f"{row_id:064x}",
        "text_hash": f"{row_id:064x}",
        "found_at": NOW,
        "title": f"Title {row_id}",
        "status": "stored",
        "changed_seq": seq,
        **values,
    }


def _index_row(row: dict[str, Any], *, seq: int) -> dict[str, Any]:
    return {
        "url_hash": row["url_hash"],
        "text_hash": row["text_hash"],
        "article_url_canon": row["article_url_canon"],
        "row_id_raw": row["row_id"],
        "first_seen": NOW,
        "last_seen": NOW,
        "changed_seq": seq,
    }


def change_article(engine: sa.Engine, row_id: int, **values: Any) -> None:
    """Update the given columns of an article."""
    change_articles(engine, [row_id], **values)


def change_articles(engine: sa.Engine, row_ids: list[int], **values: Any) -> None:
    """Update the given columns of several articles."""
    with write_transaction(engine) as transaction:
        chosen = sa.update(RAW).where(RAW.c.row_id.in_(row_ids))
        transaction.connection.execute(chosen.values(changed_seq=transaction.seq, **values))


def see_again(engine: sa.Engine, row_ids: Sequence[int], *, at: datetime) -> None:
    """Record that a feed lists these articles again, as a poll does."""
    with write_transaction(engine) as transaction:
        for table, key, seen in (
            (RAW, RAW.c.row_id, "last_seen_rss"),
            (ARTICLES_INDEX, ARTICLES_INDEX.c.row_id_raw, "last_seen"),
        ):
            values = {seen: at, "seen_seq": transaction.seq}
            transaction.connection.execute(
                sa.update(table).where(key.in_(row_ids)).values(**values)
            )


def add_feed(engine: sa.Engine, url: str, **values: Any) -> None:
    """Add one feed."""
    row = {"feed_url": url, "feed_url_canon": url, "status": "active", "lang": "en", **values}
    with write_transaction(engine) as transaction:
        transaction.connection.execute(sa.insert(FEEDS).values(changed_seq=transaction.seq, **row))


def add_analysis(engine: sa.Engine, row_id: int, **values: Any) -> None:
    """Add the analysis of one article."""
    row = {"row_id": row_id, "summary": "In short.", "analysed_at": NOW, **values}
    with write_transaction(engine) as transaction:
        seq = transaction.seq
        transaction.connection.execute(sa.insert(ANALYSES).values(changed_seq=seq, **row))


def add_metric(engine: sa.Engine, metric: str, value: float) -> None:
    """Add one Diagnostics row."""
    with write_transaction(engine) as transaction:
        note_metrics(transaction, "poll", {metric: value}, now=NOW)


def set_config(engine: sa.Engine, key: str, value: str) -> None:
    """Set a Config key."""
    with write_transaction(engine) as transaction:
        write_config(transaction, key, value, now=NOW)


def read_full_text(store: ObjectStore, url_hash: str) -> str:
    """Return the full text of a URL; raise NotFound if there is none."""
    return gzip.decompress(store.read(full_text_path(url_hash))).decode("utf-8")
