"""Digests of everything a root holds: rows by dataset, records by domain, ledger, workbook.

Two versions of the code that give the same rows give the same digests, whatever files they write.

python -m news_platform_tests.goldens ROOT > news_platform_tests/goldens.json
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from zipfile import ZipFile

import sqlalchemy as sa

import news_platform
from news_platform.api import NewsData
from news_platform.storage.sql.ledger_backup import read_tables

# What names the run or the moment of a build, not its content.
_VOLATILE = frozenset(
    {"lock_owner", "attempt", "changed_seq", "seen_seq", "lease_until", "finished_at"}
)
# Tables that record what was sent or claimed, and the version of the schema.
_BOOKKEEPING = ("alembic", "article_states", "lease", "outbox", "sheet_")
# The time of a file stands for that of an unreadable snapshot.
_FILE_TIMES = frozenset({"source_records_quarantine"})


def digest(rows: Iterable[object]) -> dict[str, object]:
    """Return the number of rows and a hash that does not depend on their order."""
    lines = sorted(json.dumps(row, default=str, ensure_ascii=False, sort_keys=True) for row in rows)
    found = hashlib.sha256("\n".join(lines).encode("utf-8", "replace"))
    return {"rows": len(lines), "sha256": found.hexdigest()[:16]}


def read_goldens(root: Path) -> Mapping[str, Mapping[str, object]]:
    """Read everything once."""
    news = news_platform.open(root)
    names = sorted(name for name in news.tables if name not in _FILE_TIMES)
    found = {name: digest(news[name].collect().iter_rows()) for name in names}
    store = news.domain_store
    found["domain_store"] = digest(
        {"domain": domain, **record}
        for domain in store.domains()
        for record in store.records(domain)
    )
    if news.known_ledger() is not None:
        found |= _ledger(news)
    for path in sorted(root.glob("article_sheets/*.xlsx")):
        found[f"workbook {path.name}"] = digest(_cells(path))
    return found


def _ledger(news: NewsData) -> dict[str, dict[str, object]]:
    found = {}
    with news.ledger.connect() as connection:
        for name, table in sorted(read_tables(connection).items()):
            if not any(part in name for part in _BOOKKEEPING):
                columns = [column for column in table.columns if column.name not in _VOLATILE]
                rows = connection.execute(sa.select(*columns)).mappings()
                found[f"ledger {name}"] = digest(dict(row) for row in rows)
    return found


def _cells(path: Path) -> Iterable[str]:
    with ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith(("xl/worksheets", "xl/sharedStrings")):
                yield archive.read(name).decode()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(read_goldens(Path(sys.argv[1])), indent=1) + "\n")
