"""Read what is known about one domain over time: its surveys and what changed between them."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from news_platform.datasets.domain_surveys import DOMAIN_SURVEYS, USAGE_SIGNALS
from news_platform.domain_metadata.change_inputs import tabled_days
from news_platform.domain_metadata.table import (
    CHANGES_DATASET,
    TABLE_DATASET,
    build_changes,
    build_table,
    build_usage_signals,
    read_changes,
    read_facts,
)
from news_platform.storage.commit.markers import read_inputs, read_markers, stale_partitions
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import stale_units

_SURVEY_COLUMNS = (
    "date",
    "outcome",
    "robots_status",
    "usage_statements",
    "usage_index",
    "usage_search",
    "usage_ai_input",
    "usage_ai_train",
    "llms_txt",
)


@dataclass(frozen=True, slots=True)
class DomainHistory:
    """The surveys of a domain and the changes between them, oldest first."""

    domain: str
    surveys: tuple[dict[str, object], ...]
    changes: tuple[dict[str, object], ...]


def build_stale_tables(store: ObjectStore) -> list[str]:
    """Build the daily tables that differ from their surveys; return the days."""
    days: set[str] = set()
    for dataset, build in ((DOMAIN_SURVEYS, build_table), (USAGE_SIGNALS, build_usage_signals)):
        for day in sorted(stale_units(store, dataset)):
            build(day, store=store)
            days.add(day)
    stale = stale_partitions(tabled_days(store), read_inputs(store, CHANGES_DATASET))
    for day in sorted(stale):
        build_changes(day, store=store)
    return sorted({*days, *stale})


def read_history(store: ObjectStore, domain: str) -> DomainHistory:
    """Return the surveys and changes of a domain from the daily tables."""
    surveys = [
        row
        for day in sorted(read_markers(store, TABLE_DATASET))
        for row in _rows(read_facts(store, day), domain, _SURVEY_COLUMNS)
    ]
    changes = [
        row
        for day in sorted(read_markers(store, CHANGES_DATASET))
        for row in _rows(read_changes(store, day), domain)
    ]
    return DomainHistory(domain, tuple(surveys), tuple(changes))


def _rows(
    frame: pl.DataFrame, domain: str, columns: tuple[str, ...] = ()
) -> Iterator[dict[str, object]]:
    found = frame.filter(pl.col("domain") == domain)
    yield from (found.select(columns) if columns else found.drop("domain")).iter_rows(named=True)
