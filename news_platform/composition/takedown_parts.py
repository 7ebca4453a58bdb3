"""Join the parts that all datasets register for takedowns, in the order in which they are served.

A dataset that is added registers here what it finds, how it removes it, and which fields of its
files name a page: `apply`, `verify`, the asset and the sensor then know it.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from news_platform.ccnews import takedown as crawl
from news_platform.composition.corpus_options import export_options, export_selection
from news_platform.corpus import takedown as corpus
from news_platform.corpus.export.monthly import MonthReport, build_month
from news_platform.domain_metadata import takedown as survey
from news_platform.domain_store.building import takedown as domain_store
from news_platform.errors import StorageError
from news_platform.near_duplicates import takedown as clusters
from news_platform.resources import Resources, build_options, open_full_texts, records_options
from news_platform.rss import files_takedown
from news_platform.rss import takedown as articles
from news_platform.search import takedown as search
from news_platform.search.reading import cache_folder, delete_old_copies
from news_platform.source_records import takedown as records
from news_platform.storage.objects.interfaces import INCOMING
from news_platform.storage.objects.local import gc_incoming
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.objects.versions import count_old_versions, delete_old_versions
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns import outside
from news_platform.takedowns.evidence import StoredTraces, VerifiedRoot
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import ApplyReport, TakedownPart, apply_takedowns
from news_platform.takedowns.removed_texts import read_removed_texts
from news_platform.takedowns.requests import (
    list_pending,
    read_aliases,
    read_states,
)
from news_platform.takedowns.verify import verify_objects, verify_store


def all_parts(resources: Resources) -> list[TakedownPart]:
    """Return the parts of every dataset; those of the ledger only if there is one."""
    store, now = resources.data_root.store, resources.clock.now()
    settings = resources.settings
    options = build_options(settings.domain_store, store)
    engine = existing_ledger(resources)
    home = _dagster_home(resources)
    found: list[TakedownPart] = [
        *([outside.takedown_part(home)] if home is not None else ()),
        *crawl.takedown_parts(store),
        *domain_store.takedown_parts(store, options=options, now=now),
        *records.takedown_parts(store, options=records_options(settings.source_records)),
        *survey.takedown_parts(store, engine=engine),
        *corpus.takedown_parts(store, export_month=partial(_export_month, resources)),
        *clusters.takedown_parts(
            store,
            days=settings.corpus.cluster_days,
            scratch=settings.corpus.scratch,
        ),
        *search.takedown_parts(store, now=now),
        *files_takedown.takedown_parts(store),
    ]
    if engine is None:
        return found
    full_texts = open_full_texts(resources.data_root)
    daily, ledger, workbook = articles.takedown_parts(store, engine=engine, full_texts=full_texts)
    return [*found, daily, ledger, workbook]


def _dagster_home(resources: Resources) -> Path | None:
    home = resources.settings.dagster_home
    return Path(home) if home and Path(home).is_dir() else None


def _export_month(resources: Resources, month: str, takedowns: Takedowns) -> MonthReport:
    store, settings = resources.data_root.store, resources.settings.corpus
    return build_month(
        store,
        month,
        selection=export_selection(settings),
        options=export_options(settings, store),
        takedowns=takedowns,
    )


def existing_ledger(resources: Resources) -> sa.Engine | None:
    """Return the ledger, or None for a root that has none: a takedown never creates one."""
    return resources.ledger.existing_engine()


def known_aliases(resources: Resources) -> list[tuple[str, str]]:
    """Return the addresses that the ledger knows to lead to one page."""
    engine = existing_ledger(resources)
    return articles.ledger_aliases(engine) if engine is not None else []


def apply_root(
    resources: Resources, *, search_again: bool = False, delete_versions: bool = False
) -> ApplyReport:
    """Remove what is stored of all requests, and finish what was interrupted.

    `delete_versions` also deletes all old versions that a versioned bucket keeps under the root.
    """
    store = resources.data_root.store
    if store.local_folder is not None:
        # What killed writers left there may hold anything.
        gc_incoming(store.local_folder / INCOMING)
    report = apply_takedowns(
        store,
        all_parts(resources),
        now=resources.clock.now(),
        aliases=known_aliases(resources),
        search_again=search_again,
    )
    # This machine's copies of indexes; others trim theirs when they are next used.
    delete_old_copies(store, cache_folder(store, resources.settings.search.cache))
    if delete_versions and not report.left:
        gone = delete_old_versions(store)
        return replace(report, notes=(f"{gone.count} old versions deleted",))
    notes = versions_note(store) if report.served else ()
    return replace(report, notes=(*report.notes, *notes))


def versions_note(store: ObjectStore) -> tuple[str, ...]:
    """Say which old versions of objects remain; nothing for a store that keeps none."""
    if store.url.startswith("gs://"):
        return ("noncurrent and soft-deleted objects of the bucket were not looked at",)
    try:
        old = count_old_versions(store)
    except StorageError as error:
        return (f"it is unknown whether the bucket keeps old versions: {error}",)
    if not old.count:
        return ()
    return (
        f"{old.count} old versions of {old.size_bytes} bytes remain in the bucket: "
        "`news-platform takedown apply --delete-versions` deletes all of them",
    )


def has_work(resources: Resources) -> bool:
    """Return whether something stored is still to be removed, from listings alone."""
    store, now = resources.data_root.store, resources.clock.now()
    states = read_states(store)
    is_asked = any(one.is_active("removal", now) and not one.is_applied for one in states)
    return is_asked or bool(list_pending(store))


def verify_root(
    resources: Resources, *, only: frozenset[str] = frozenset(), share: float | None = None
) -> VerifiedRoot:
    """Read everything that the root and the ledger hold, and look for what is taken down.

    `only` are the ids of the requests to look for, by default all that count.
    """
    store, now = resources.data_root.store, resources.clock.now()
    states = read_states(store)
    wanted = [
        one.request
        for one in states
        if (one.request.id in only if only else one.is_active("removal", now))
    ]
    takedowns = Takedowns.of(wanted, aliases=[*read_aliases(store), *known_aliases(resources)])
    engine = existing_ledger(resources)
    more = [partial(search.verify_indexes, store)]
    if engine is not None:
        more.append(partial(_verify_ledger, engine))
    if home := _dagster_home(resources):
        more.append(partial(outside.verify_files, home))
    full_texts = open_full_texts(resources.data_root)
    if not full_texts.url.startswith(store.url):
        more.append(partial(verify_objects, full_texts))
    texts = read_removed_texts(store)
    return verify_store(store, takedowns, texts=texts, share=share, more=more)


def _verify_ledger(engine: sa.Engine, evidence: StoredTraces) -> None:
    """Look at every row of every table of the ledger, on SQLite as on PostgreSQL."""
    with read_transaction(engine) as connection:
        found = sa.inspect(connection)
        for name in sorted(found.get_table_names()):
            columns = [str(column["name"]) for column in found.get_columns(name)]
            chosen: list[sa.ColumnElement[Any]] = [sa.column(column) for column in columns]
            rows = sa.select(*chosen).select_from(sa.table(name))
            for row in connection.execute(rows.execution_options(yield_per=500)):
                evidence.rows += 1
                _verify_row(evidence, name, dict(zip(columns, row, strict=True)))


def _verify_row(evidence: StoredTraces, table: str, row: Mapping[str, object]) -> None:
    from news_platform.takedowns.text_runs import RUN_BYTES

    for column, value in row.items():
        _verify_value(evidence, table, column, value)
    url = str(row.get("article_url_canon") or "")
    for name in ("url_hash", "page_ref"):
        evidence.name_page(str(row.get(name) or ""), url)
    texts = (value for value in row.values() if isinstance(value, str))
    long = [text.encode("utf-8", "replace") for text in texts if len(text) > RUN_BYTES]
    if long and evidence.texts.held_by(*long):
        evidence.add_text(f"ledger {table}", url)


# Columns that refer to other pages.
_REFERRING = {("article_links", "target_url_hash"), ("raw", "out_links")}
# The keys of spreadsheet rows are addresses and hashes, too. The address that a list of feeds has
# for one that has moved is a mention.
_KEYS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("sheet_rows", "key"): ("feed_url_canon", "url_hash"),
    ("feeds", "origin"): (),
}


def _verify_value(evidence: StoredTraces, table: str, name: str, value: object) -> None:
    place = f"ledger {table}"
    if not isinstance(value, str):
        return
    for known_as in _KEYS.get((table, name), (name,)):
        evidence.check_field(place, known_as, value)
    if (table, name) not in _REFERRING and name == "feed_url" and table == "feeds":
        evidence.check_field(place, "url", value)
    evidence.check_bytes(place, value.encode("utf-8", "replace"))
