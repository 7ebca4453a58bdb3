"""Read everything that a root and its ledger hold, and look for what is taken down."""

from pathlib import Path

from news_platform.composition.engines import existing_ledger
from news_platform.composition.takedown_parts import known_aliases
from news_platform.datasets.dataset import Role
from news_platform.datasets.takedowns import TakedownScope
from news_platform.domain_metadata.queue import FILES, QUEUE
from news_platform.errors import StorageError
from news_platform.resources import Resources, open_full_texts
from news_platform.rss.article_files import FULL_TEXT_FOLDER, PAGES_FOLDER, OwnedFiles
from news_platform.rss.export import LEDGER
from news_platform.rss.ledger.tables import METADATA
from news_platform.search.index_engine import iter_hits
from news_platform.search.publish import index_folder, stored_builds
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import sqlite_path
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.requests import read_aliases, read_states
from news_platform.takedowns.verify import (
    VerificationReport,
    verify_exports,
    verify_objects,
    verify_tables,
)


def verify_root(
    resources: Resources, *, only: frozenset[str] = frozenset(), share: float | None = None
) -> VerificationReport:
    """Read everything that the root and the ledger hold, and look for what is taken down.

    `only` are the ids of the requests to look for, by default all that count. Only exports are
    searched for what must not be exported.
    """
    store, now = resources.data_root.store, resources.clock.now()
    exported = [
        one.request
        for one in read_states(store)
        if (one.request.id in only if only else one.is_active("export", now))
    ]
    wanted = [one for one in exported if one.scope is not TakedownScope.export]
    aliases = [*read_aliases(store), *known_aliases(resources)]
    tables = {one.name: one for one in (*METADATA.tables.values(), QUEUE, FILES)}
    takedowns = Takedowns.of(wanted, aliases=aliases, exported=exported)
    report = VerificationReport(takedowns, tables)
    if len(exported) > len(wanted):
        verify_exports(store, report)
    if not takedowns:
        return report
    ledger = _verify_ledger(resources, report)
    verify_objects(store, report, share=share, ledger=ledger)
    full_texts = open_full_texts(resources.data_root)
    if not full_texts.url.startswith(store.url):
        verify_objects(full_texts, report, within=f"{FULL_TEXT_FOLDER}/", share=share)
    _verify_indexes(store, report)
    return report


def _verify_ledger(resources: Resources, report: VerificationReport) -> Path | None:
    """Read all rows; return the file of the ledger, if it is one and can be read."""
    try:
        engine = existing_ledger(resources)
        if engine is None:
            return None
        verify_tables(engine, report)
        owned = OwnedFiles.read(engine)
    except StorageError as error:
        report.unreadable[LEDGER] = str(error)
        return None
    texts = (f"{FULL_TEXT_FOLDER}/{path}" for path in owned.full_texts)
    report.owned = frozenset((*texts, *(f"{PAGES_FOLDER}/{path}" for path in owned.pages)))
    return sqlite_path(engine.url)


def _verify_indexes(store: ObjectStore, report: VerificationReport) -> None:
    """Look at every article of every stored build; one that cannot be read may hold anything."""
    for place in stored_builds(store):
        folder = index_folder(place.key, place.build)
        try:
            for hit in iter_hits(store, place):
                report.rows += 1
                report.check_value(folder, Role.url, hit.url)
                report.check_value(folder, Role.url, hit.canonical_url)
        except StorageError:
            report.find(folder, "an unfinished index, which cannot be read")
