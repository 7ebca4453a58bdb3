"""Build training_export: the export of one month, stored under the root as a new version."""

import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from news_platform.corpus.export.card import ExportManifest
from news_platform.corpus.export.pipeline import EmptySelection, ExportOptions, export_corpus
from news_platform.corpus.export.publish import (
    delete_older_versions,
    publish_version,
    remove_month,
)
from news_platform.corpus.export.selection import ExportSelection
from news_platform.datasets.corpus import DELTA_TABLES, TRAINING_EXPORT
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import (
    delete_marker,
    read_inputs,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.build_filters import build_obeying
from news_platform.takedowns.match import Takedowns


@dataclass(frozen=True, slots=True)
class MonthReport:
    """The manifest of a month's export, None if no article of the month may be exported."""

    month: str
    version: str | None
    manifest: ExportManifest | None


def build_month(
    store: ObjectStore,
    month: str,
    *,
    selection: ExportSelection,
    options: ExportOptions,
    takedowns: Takedowns | None = None,
) -> MonthReport:
    """Export a month and make it the current version; `selection` is completed with its days.

    Articles that are taken down are left out; `takedowns` are by default those of the root.
    """
    inputs = wanted_inputs(store, TRAINING_EXPORT, selection).get(month)
    if inputs is None or inputs == REMOVED:
        remove_month(store, month)
        delete_marker(store, TRAINING_EXPORT.name, month)
        return MonthReport(month, None, None)
    days = {
        day
        for table in DELTA_TABLES
        for day in read_inputs(store, table.name)
        if day.startswith(month)
    }

    def export(found: Takedowns) -> MonthReport:
        obeying = replace(options, covers=found.covers)
        return _exported(store, month, replace(selection, days=sorted(days)), obeying)

    if takedowns is not None:
        report = export(takedowns)
    else:
        delete_older = partial(delete_older_versions, store, month)
        report = build_obeying(store, export, after_repeat=delete_older)
    body = report.manifest.as_json() if report.manifest else {"articles": 0}
    write_marker(
        store,
        TRAINING_EXPORT.name,
        month,
        inputs=inputs,
        report={**body, "version": report.version},
    )
    return report


def _exported(
    store: ObjectStore, month: str, selection: ExportSelection, options: ExportOptions
) -> MonthReport:
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        try:
            manifest = export_corpus(
                store, Path(name), selection, replace(options, require_languages=False)
            )
        except EmptySelection:
            remove_month(store, month)
            return MonthReport(month, None, None)
        return MonthReport(month, publish_version(store, month, Path(name)), manifest)
