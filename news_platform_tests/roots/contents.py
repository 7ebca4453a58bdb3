"""What a root holds, as numbers: rows by dataset, records by domain, rows by ledger table.

python -m news_platform_tests.roots.contents ROOT
"""

import json
import sys
from collections.abc import Mapping

import sqlalchemy as sa

import news_platform

LEDGER_TABLES = ("feeds", "raw", "articles_index", "diagnostics", "domain_queue")
FIRST_ARTICLE = "select url_hash, text_hash, title from raw where status = 'stored' order by row_id"


def read_contents(root: str) -> Mapping[str, object]:
    """Read everything once and count it."""
    news = news_platform.open(root)
    store = news.domain_store
    with news.ledger.connect() as connection:
        counts = {
            table: connection.execute(sa.text(f"select count(*) from {table}")).scalar()
            for table in LEDGER_TABLES
        }
        first = list(connection.execute(sa.text(FIRST_ARTICLE)).first() or ())
    return {
        "rows": {name: news[name].collect().height for name in news.tables},
        "domains": {domain: store.count(domain) for domain in store.domains()},
        "ledger": counts,
        "first_article": first,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(read_contents(sys.argv[1]), indent=1, sort_keys=True) + "\n")
