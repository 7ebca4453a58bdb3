"""What the changes of a day were computed from: its own tables, and corrections of earlier days.

The changes of a day compare each domain with its last survey on any earlier day. When the table of
an old day is built again, because an unfinished batch was tried once more, only those later days
are affected that surveyed a domain whose facts differ. Whoever writes a table records them first,
so that a crash in between leaves a day that is built once more in vain, never a wrong one.
"""

from collections.abc import Mapping, Set

import polars as pl

from news_platform.datasets.domain_surveys import (
    AI_POLICY_CHANGES,
    DOMAIN_SURVEYS,
    USAGE_SIGNALS,
)
from news_platform.datasets.table import Table
from news_platform.storage.commit.markers import (
    fingerprint,
    marker_path,
    read_inputs,
    read_markers,
    write_marker,
)
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.parquet import read_table

# Markers of this name say which days are affected by corrected tables of earlier days.
CORRECTIONS = "domain_surveys_corrections"
# What a later day reads of an earlier one, apart from the statements about use.
_COMPARED = (
    "domain",
    "country",
    "category",
    "robots_bytes",
    "ai_list_version",
    "ai_policies",
    "usage_statements",
)


def table_path(table: Table, day: str) -> str:
    """Return the file of a day."""
    return f"{table.name}/date={day}/part-0.parquet"


def tabled_days(store: ObjectStore) -> dict[str, str]:
    """Return the fingerprint of what the changes of each day are computed from.

    Only the names of the markers count: they contain the fingerprint of a table's inputs, so
    rewriting the same table does not make the assets that follow it stale.
    """
    tables, stated, corrected = (
        read_markers(store, name) for name in (DOMAIN_SURVEYS.name, USAGE_SIGNALS.name, CORRECTIONS)
    )
    return {
        day: fingerprint(one[day].path for one in (tables, stated, corrected) if day in one)
        for day in tables
    }


def record_correction(
    store: ObjectStore, day: str, frame: pl.DataFrame, table: Table, *, inputs: str
) -> list[str]:
    """Record which later days a new table of a day affects, before it is written; return them."""
    is_lost = not store.exists(table_path(table, day))
    if is_lost and _was_built_from(store, day, table, inputs):
        return []  # the file was lost, and comes back as it was
    later = [one for one in read_markers(store, DOMAIN_SURVEYS.name) if one > day]
    domains = _changed_domains(store, day, frame, table) if later else frozenset()
    affected = [one for one in sorted(later) if domains and _has_any(store, one, domains)]
    known = read_inputs(store, CORRECTIONS)
    for one in affected:
        cause = fingerprint([known.get(one, ""), table.name, day, *_rows(frame, table)])
        write_marker(store, CORRECTIONS, one, inputs=cause, report={"corrected": day})
    return affected


def _was_built_from(store: ObjectStore, day: str, table: Table, inputs: str) -> bool:
    """Return whether a lost table of a day was built from the same inputs.

    Its marker says so, or, if that was lost, too, the marker of the changes that were computed from
    it: their fingerprint has the names of the markers of both tables.
    """
    if read_inputs(store, table.name).get(day) == inputs:
        return True
    changes = read_inputs(store, AI_POLICY_CHANGES.name).get(day)
    corrected = read_markers(store, CORRECTIONS)
    other = USAGE_SIGNALS if table is DOMAIN_SURVEYS else DOMAIN_SURVEYS
    stated = read_markers(store, other.name).get(day)
    names = [
        marker_path(table.name, day, inputs=inputs),
        stated.path if stated else marker_path(other.name, day, inputs=inputs),
    ]
    if day in corrected:
        names.append(corrected[day].path)
    return changes == fingerprint(names)


def _changed_domains(store: ObjectStore, day: str, frame: pl.DataFrame, table: Table) -> Set[str]:
    try:
        before = _by_domain(read_table(store, table_path(table, day), table), table)
    except NotFound:
        before = {}
    now = _by_domain(frame, table)
    return {domain for domain in {*before, *now} if before.get(domain) != now.get(domain)}


def _by_domain(frame: pl.DataFrame, table: Table) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    counted = _counted(frame, table)
    for domain, row in zip(counted.get_column("domain"), _rows(frame, table), strict=True):
        found.setdefault(domain, set()).add(row)
    return found


def _rows(frame: pl.DataFrame, table: Table) -> list[str]:
    """Return as text what a later day reads of each row."""
    return _counted(frame, table).write_ndjson().splitlines()


def _counted(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Return what a later day reads; a survey that got no answer is not compared with."""
    if table is USAGE_SIGNALS:
        return frame.drop("collected_at", "date", strict=False)
    is_read = pl.col("ai_policies").is_not_null() | pl.col("usage_statements").is_not_null()
    return frame.filter(is_read).select(_COMPARED)


def _has_any(store: ObjectStore, day: str, domains: Set[str]) -> bool:
    path = table_path(DOMAIN_SURVEYS, day)
    surveyed = read_table(store, path, DOMAIN_SURVEYS).get_column("domain")
    return not domains.isdisjoint(surveyed)
