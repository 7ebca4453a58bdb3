"""Serve takedowns over all datasets: each is searched and cleaned by the engine of its place.

Datasets that are made from others are built again from what is left; their markers keep their
fingerprints, so that nothing which follows becomes stale.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import TypeVar

import polars as pl

from news_platform.ccnews.maintenance import recount_day as recount_collected
from news_platform.composition.corpus_options import export_options, export_selection
from news_platform.composition.engines import existing_ledger, open_dataset
from news_platform.corpus.export.publish import build_month, delete_older_versions, remove_month
from news_platform.corpus.pipeline import recount_day as recount_articles
from news_platform.datasets.dataset import WHOLE, Column, Dataset, Place, Role
from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.datasets.registry import DATASETS
from news_platform.datasets.takedowns import TakedownRequest, TakedownScope
from news_platform.domain_store.catalog import write_catalog_now
from news_platform.errors import StorageError
from news_platform.near_duplicates.pipeline import clustered_days, days_before
from news_platform.near_duplicates.window import cluster_window
from news_platform.resources import Resources, open_full_texts, records_options
from news_platform.rss.export import LEDGER
from news_platform.rss.sheets.workbook import write_workbook_now
from news_platform.rss.takedown import LedgerPart, count_shown, ledger_aliases
from news_platform.search.reading import cache_folder, delete_old_copies
from news_platform.source_records.pipeline import build_institution
from news_platform.storage.commit.markers import read_inputs
from news_platform.storage.delta import DeltaEngine
from news_platform.storage.engines import DatasetEngine, ParquetEngine, PlainFilesEngine
from news_platform.storage.objects.interfaces import INCOMING
from news_platform.storage.objects.local import gc_incoming
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.objects.versions import count_old_versions, delete_old_versions
from news_platform.stories.pipeline import relink_days
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import (
    ApplyReport,
    EnginePart,
    TakedownPart,
    apply_takedowns,
    keep_aliases,
)
from news_platform.takedowns.requests import (
    add_request,
    clear_pending,
    find_mark,
    list_pending,
    mark_pending,
    read_aliases,
    read_states,
)
from news_platform.takedowns.rows import (
    TakedownTarget,
    forget_in_report,
    is_covered,
    may_be_covered,
)
from news_platform.text.readable import number_of

ResultT = TypeVar("ResultT")
# Not a dataset of its own: records of research files that were refused.
_QUARANTINE = Dataset(
    name="research_quarantine",
    group="domain_metadata",
    row="one refused record",
    description="Refused records of research files.",
    place=Place(
        "files", "quarantine/research/country={country}/category={category}/date={date}/{file}"
    ),
    columns=(Column("raw_url", Role.url, "address of the domain"),),
)


def all_parts(resources: Resources) -> list[TakedownPart]:
    """Return the parts of the ledger and of every dataset, parents first."""
    store = resources.data_root.store
    return [
        _ledger_part(resources),
        *(_dataset_part(resources, one) for one in DATASETS.values() if _is_cleaned(one)),
        EnginePart(partial(PlainFilesEngine, store, _QUARANTINE), _QUARANTINE.name),
    ]


def _ledger_part(resources: Resources) -> LedgerPart:
    full_texts = open_full_texts(resources.data_root)
    ledger, now = partial(existing_ledger, resources), resources.clock.now()
    return LedgerPart(resources.data_root.store, full_texts, ledger, now)


def _is_cleaned(dataset: Dataset) -> bool:
    """Return whether a dataset needs a part of its own; some are cleaned with their writer."""
    writer = DATASETS[dataset.writer]
    is_rebuilt = writer.name in _REBUILDS or writer.place.engine == "store"
    return dataset.removal != "never" and not (dataset.written_by and is_rebuilt)


def _dataset_part(resources: Resources, dataset: Dataset) -> TakedownPart:
    open_engine = partial(open_dataset, resources, dataset)
    if dataset.name in _REBUILDS:
        rebuild = partial(_REBUILDS[dataset.name], resources)
        return EnginePart(open_engine, dataset.name, _FOLLOWED.get(dataset.name, ""), rebuild)
    return EnginePart(open_engine, dataset.name, after=partial(_recount, resources))


def _recount(
    resources: Resources, engine: DatasetEngine, unit: str, target: TakedownTarget
) -> None:
    """Correct what the marker of a unit tells about it."""
    store, dataset = resources.data_root.store, engine.dataset
    if dataset.fingerprint == "collected":
        recount_collected(store, unit)
    if isinstance(engine, DeltaEngine):
        recount_articles(engine, unit)
    forget_in_report(store, dataset.writer, unit, target.takedowns)


def _build_captures(resources: Resources, day: str) -> None:
    # Loads the readers of WARCs, which no other part needs.
    from news_platform.ccnews.capture_index import build_index

    build_index(resources.data_root.store, day)


def _build_catalog(resources: Resources, _: str) -> None:
    store = resources.data_root.store
    if inputs := read_inputs(store, "domain_catalog").get(WHOLE):
        write_catalog_now(store, inputs=inputs)


def _build_records(resources: Resources, institution: str) -> None:
    options = records_options(resources.settings.source_records)
    build_institution(institution, store=resources.data_root.store, options=options)


def _build_clusters(resources: Resources, day: str) -> None:
    """Cluster a day again, and then those that follow it within the window."""
    store, settings = resources.data_root.store, resources.settings.corpus
    takedowns = Takedowns.read(store, use="removal")
    first, clustered = date.fromisoformat(day), set(clustered_days(store))
    for number in range(settings.cluster_days):
        one = (first + timedelta(days=number)).isoformat()
        if one in clustered:
            earlier = days_before(store, one, days=settings.cluster_days)
            scratch = settings.scratch
            cluster_window(store, one, earlier=earlier, takedowns=takedowns, scratch=scratch)


def _build_stories(resources: Resources, day: str) -> None:
    store = resources.data_root.store
    relink_days(store, day, takedowns=Takedowns.read(store, use="removal"))


def _build_export(resources: Resources, month: str) -> None:
    store, settings = resources.data_root.store, resources.settings.corpus
    selection, options = export_selection(settings), export_options(settings, store)
    if build_month(store, month, selection=selection, options=options).version is None:
        remove_month(store, month)
    else:
        delete_older_versions(store, month)


def _build_workbook(resources: Resources, _: str) -> None:
    if (engine := existing_ledger(resources)) is not None:
        write_workbook_now(engine, resources.data_root.store)


# Datasets that are built again from what is left. Their markers keep their fingerprints.
_REBUILDS: Mapping[str, Callable[[Resources, str], object]] = {
    "article_sheets": _build_workbook,
    "capture_index": _build_captures,
    "domain_catalog": _build_catalog,
    "near_duplicates": _build_clusters,
    "source_records": _build_records,
    # The rows of `stories` name no page; it is written with its members.
    "story_members": _build_stories,
    "training_export": _build_export,
}
# What they are made from, if that may lose rows which their own columns do not show.
_FOLLOWED = {
    "article_sheets": LEDGER,
    "domain_catalog": "domain_store",
    "source_records": "page_snapshots",
}


def known_aliases(resources: Resources) -> list[tuple[str, str]]:
    """Return the addresses that the ledger knows to lead to one page."""
    try:
        engine = existing_ledger(resources)
    except StorageError:
        return []  # its part says that it cannot be searched
    return ledger_aliases(engine) if engine is not None else []


def same_text_elsewhere(resources: Resources, takedowns: Takedowns) -> list[str]:
    """Return the addresses of pages with nearly the same text as a covered one, by their clusters.

    They are pages of their own: only a request for them removes them, too.
    """
    rows = ParquetEngine(resources.data_root.store, NEAR_DUPLICATES).scan()
    likely = rows.filter(may_be_covered("uri", takedowns)).select("uri", "cluster_id").collect()
    own = likely.filter(is_covered(likely["uri"], takedowns))["cluster_id"].unique()
    same = rows.filter(pl.col("cluster_id").is_in(own.to_list())).select("uri").collect()["uri"]
    return same.filter(~is_covered(same, takedowns)).unique().sort().to_list()


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
    notes = (*_ledger_notes(resources, report), *versions_note(store)) if report.removed else ()
    return replace(report, notes=notes)


def restore_obeying(
    resources: Resources, made_at: str, restore: Callable[[], ResultT]
) -> tuple[ResultT, int]:
    """Restore a ledger and remove what was taken down; also return how many rows and files went.

    Requests for stored data alone, which were served since the backup was made, count once more.
    """
    store, now = resources.data_root.store, resources.clock.now()
    wanted = [
        one.request
        for one in read_states(store)
        if one.is_active("removal", now)
        or (one.is_served_once(now) and one.request.requested_at.isoformat() >= made_at)
    ]
    if not wanted:
        return restore(), 0
    # Before: if this process is killed, the next `apply` cleans the ledger.
    mark_pending(store, LEDGER, [WHOLE])
    result = restore()
    aliases = [*read_aliases(store), *known_aliases(resources)]
    keep_aliases(store, aliases, now=now)
    target = TakedownTarget(Takedowns.of(wanted, aliases=aliases))
    removed = _ledger_part(resources).remove(WHOLE, target).rows
    clear_pending(store, LEDGER, WHOLE, mark=find_mark(store, LEDGER, WHOLE))
    return result, removed


def record_request(resources: Resources, request: TakedownRequest) -> StorageError | None:
    """Store a request, and remove from the ledger what it covers; return why that failed.

    The ledger has many readers, such as exports, alerts, sheets and analyses: none of them needs to
    know what is taken down. Readers of files hide it until `apply_root` has removed it.
    """
    store = resources.data_root.store
    add_request(store, request)
    if request.scope in (TakedownScope.future, TakedownScope.export):
        return None
    # Before: `apply_root` cleans the ledger again, packs it and builds what is made from it.
    mark_pending(store, LEDGER, [WHOLE])
    aliases = [*read_aliases(store), *known_aliases(resources)]
    keep_aliases(store, aliases, now=resources.clock.now())
    try:
        _ledger_part(resources).hide(TakedownTarget(Takedowns.of([request], aliases=aliases)))
    except StorageError as error:
        return error
    return None


def _ledger_notes(resources: Resources, report: ApplyReport) -> Iterator[str]:
    engine = existing_ledger(resources) if LEDGER in report.removed else None
    if engine is not None and (shown := count_shown(engine)):
        yield f"the next `rss sync` blanks {number_of(shown, 'row')} of the Google Sheet"
    if engine is not None and engine.dialect.name == "postgresql":
        yield "PostgreSQL keeps deleted rows until VACUUM FULL, and in its backups"


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
    is_asked = any(one.is_active("export", now) and not one.is_applied for one in states)
    return is_asked or bool(list_pending(store))
