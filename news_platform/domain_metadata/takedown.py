"""Remove taken-down domains from the survey: its files, its tables, its queue, its quarantine.

A takedown of single pages touches no survey: robots.txt and sitemaps only mention them.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.domain_metadata import PROD_FOLDER
from news_platform.datasets.domain_queue import DATASET as QUEUE_DATASET
from news_platform.datasets.domain_surveys import (
    AI_POLICY_CHANGES,
    DOMAIN_SURVEYS,
    USAGE_SIGNALS,
)
from news_platform.domain_metadata.messages import is_taken_down
from news_platform.domain_metadata.pipeline import METADATA_DATASET
from news_platform.domain_metadata.queue import QUEUE
from news_platform.storage.commit.markers import change_report, read_markers
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import path_values, read_table, write_table
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart

QUARANTINE = "research_quarantine"
_QUARANTINE_FOLDER = "quarantine/research"


def takedown_parts(store: ObjectStore, *, engine: sa.Engine | None) -> list[TakedownPart]:
    """Return the parts of the survey; those of the queue only with a ledger."""
    parts: list[TakedownPart] = [
        SimplePart(METADATA_DATASET, partial(find_folders, store), partial(delete_folders, store)),
        SimplePart(QUARANTINE, partial(find_dropped, store), partial(clean_dropped, store)),
    ]
    parts += [
        SimplePart(table.name, partial(find_rows, store, table), partial(clean_rows, store, table))
        for table in (DOMAIN_SURVEYS, USAGE_SIGNALS, AI_POLICY_CHANGES)
    ]
    if engine is not None:
        queue = SimplePart(
            QUEUE_DATASET,
            partial(find_messages, engine),
            lambda _, it: delete_messages(engine, it),
        )
        parts.append(queue)
    return parts


def _covered_files(
    store: ObjectStore, folder: str, takedowns: Takedowns
) -> Iterator[tuple[str, ObjectInfo]]:
    """Yield the files of covered domains, each with the folder of its batch."""
    for info in store.list(folder) if takedowns.domains else ():
        batch, _, domain = info.path.rpartition("/")[0].rpartition("/")
        if takedowns.covers_domain(domain):
            yield batch, info


def find_folders(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered domains with files, by the folder of their batch."""
    found: dict[str, set[str]] = {}
    for batch, info in _covered_files(store, PROD_FOLDER, takedowns):
        found.setdefault(batch, set()).add(info.path.split("/")[-2])
    return {batch: len(domains) for batch, domains in found.items()}


def delete_folders(store: ObjectStore, batch: str, takedowns: Takedowns) -> RemovedData:
    """Delete the files of covered domains; the batch keeps its marker."""
    infos = [info for _, info in _covered_files(store, batch, takedowns)]
    store.delete(info.path for info in infos)
    _forget_slowest(store, batch, takedowns)
    domains = {info.path.split("/")[-2] for info in infos}
    return RemovedData(len(domains), sum(info.size_bytes for info in infos))


def _forget_slowest(store: ObjectStore, batch: str, takedowns: Takedowns) -> None:
    """Remove covered domains from what the marker of the batch tells about its run."""
    key = "|".join(path_values(f"{batch}/").values())
    marker = read_markers(store, METADATA_DATASET).get(key)
    if marker is None:
        return

    def change(report: Mapping[str, object]) -> Mapping[str, object]:
        slowest = report.get("slowest")
        given = slowest if isinstance(slowest, list) else []
        kept = [one for one in given if not takedowns.covers_domain(str(one[0]))]
        return {**report, "slowest": kept} if len(kept) < len(given) else report

    change_report(store, marker, change)


def find_rows(store: ObjectStore, table: Dataset, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the rows of covered domains by day."""
    found: dict[str, int] = {}
    for info in store.list(table.path.partition("/")[0]) if takedowns.domains else ():
        rows = read_table(store, info.path, table)
        if count := int(_is_covered(rows, takedowns).sum()):
            found[path_values(info.path)["date"]] = count
    return found


def _is_covered(rows: pl.DataFrame, takedowns: Takedowns) -> pl.Series:
    gone = [one for one in rows["domain"].unique() if takedowns.covers_domain(one)]
    return rows["domain"].is_in(gone)


def clean_rows(store: ObjectStore, table: Dataset, day: str, takedowns: Takedowns) -> RemovedData:
    """Write the table of a day again without the rows of covered domains."""
    path = table.path.replace("{date}", day)
    before = store.find(path)
    if before is None:
        return RemovedData()
    rows = read_table(store, path, table)
    gone = _is_covered(rows, takedowns)
    if not gone.any():
        return RemovedData()
    write_table(store, path, rows.filter(~gone), table)
    after = store.head(path).size_bytes
    return RemovedData(int(gone.sum()), max(0, before.size_bytes - after), after)


def find_dropped(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered records in the quarantine of research files, by file."""
    found = {}
    for info in store.list(_QUARANTINE_FOLDER) if takedowns else ():
        lines = store.read(info.path).splitlines()
        if count := sum(_is_line_covered(line, takedowns) for line in lines):
            found[info.path] = count
    return found


def clean_dropped(store: ObjectStore, path: str, takedowns: Takedowns) -> RemovedData:
    """Write a file of the quarantine again without covered records."""
    body = store.read(path) if store.exists(path) else b""
    lines = body.splitlines()
    kept = [line for line in lines if not _is_line_covered(line, takedowns)]
    if len(kept) == len(lines):
        return RemovedData()
    written = b"".join(line + b"\n" for line in kept)
    store.put(path, written)
    return RemovedData(len(lines) - len(kept), len(body) - len(written), len(written))


def _is_line_covered(line: bytes, takedowns: Takedowns) -> bool:
    try:
        record = json.loads(line).get("record")
    except (ValueError, AttributeError):
        return False
    return is_taken_down(record, takedowns)


def find_messages(engine: sa.Engine, takedowns: Takedowns) -> Mapping[str, int]:
    """Return how many messages of the queue are about covered domains."""
    found = len(_covered_ids(engine, takedowns))
    return {"all": found} if found else {}


def _covered_ids(engine: sa.Engine, takedowns: Takedowns) -> list[int]:
    if not takedowns.domains:
        return []
    with read_transaction(engine) as connection:
        rows = connection.execute(sa.select(QUEUE.c.id, QUEUE.c.domain)).all()
    return [row.id for row in rows if takedowns.covers_domain(row.domain)]


def delete_messages(engine: sa.Engine, takedowns: Takedowns) -> RemovedData:
    """Delete the messages about covered domains."""
    ids = _covered_ids(engine, takedowns)
    with engine.begin() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA secure_delete = ON")
        gone = sa.delete(QUEUE).where(QUEUE.c.id == sa.bindparam("gone"))
        if ids:
            connection.execute(gone, [{"gone": one} for one in ids])
    return RemovedData(len(ids))
