"""A worker process that tests can kill: it claims articles, waits, and stores them.

It writes one line per step to its log: `claim ROW ATTEMPT SECONDS`, with the start of the lease,
and `stored ROW ATTEMPT SECONDS`.
"""

import hashlib
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from news_platform.rss.ledger.article_queue import ArticleClaim, claim_articles
from news_platform.rss.ledger.article_store import store_article
from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.storage.sql.engine import open_engine, read_transaction

LEASE_SECONDS = 2
BATCH = 4


def main(url: str, owner: str, log: Path, dawdle_seconds: float) -> None:
    """Work until every row is stored."""
    engine = open_engine(url)
    with log.open("a", buffering=1) as lines:
        while True:
            now = datetime.now(UTC)
            claims = claim_articles(
                engine, owner, limit=BATCH, lease_seconds=LEASE_SECONDS, now=now
            )
            for claim in claims:
                lines.write(f"claim {claim.row_id} {claim.attempt} {now.timestamp():.3f}\n")
            time.sleep(dawdle_seconds if claims else 0.3)
            for claim in claims:
                with write_transaction(engine) as transaction:
                    now = datetime.now(UTC)
                    row = article_row(claim, fetched_at=now)
                    result = store_article(transaction, claim, row, link_hashes=(), now=now)
                lines.write(f"{result} {claim.row_id} {claim.attempt} {time.time():.3f}\n")
            if not claims and _all_done(engine):
                return


def article_row(claim: ArticleClaim, *, fetched_at: datetime) -> dict[str, Any]:
    """Return the columns of an article for a claim, with a text of its own."""
    return {
        "article_url_canon": claim.url_canon,
        "url_hash": claim.url_hash,
        "text_hash": (text_hash := hashlib.sha256(claim.url_canon.encode()).hexdigest()),
        "unique_text_hash": text_hash,
        "stated_published_at": None,
        "fetched_at": fetched_at,
        "published_at": None,
        "language": "en",
        "title": "t",
        "subtitle": "",
        "authors": (),
        "section": "",
        "tags": (),
        "article_type": "news",
        "clean_text": "text",
        "clean_text_len": 4,
        "full_text_ref": "x",
        "full_text_len": 4,
        "word_count": 1,
        "out_links": (),
        "category_guess": "other",
    }


def _all_done(engine: sa.Engine) -> bool:
    with read_transaction(engine) as connection:
        left = sa.select(sa.func.count()).where(RAW.c.status.in_(("pending", "processing")))
        return connection.execute(left).scalar_one() == 0
