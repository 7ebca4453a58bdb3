"""Keep what version 0.1 surveyed current: give its markers the fingerprints of today.

That version fingerprinted files by ETag, which on a local disk is the inode: every copy of a root
looked stale. This runs once, when a root is upgraded. A marker whose inputs cannot be shown to be
unchanged keeps its old name, and its partition is built once more.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from news_platform.datasets.domain_surveys import DOMAIN_SURVEYS
from news_platform.datasets.research_datasets import SUCCESS_SUFFIX, PartitionInfo
from news_platform.domain_metadata.change_inputs import tabled_days
from news_platform.domain_metadata.pipeline import METADATA_DATASET, QUEUE_DATASET
from news_platform.domain_metadata.raw_files import batch_files, research_inputs
from news_platform.domain_metadata.table import (
    CHANGES_DATASET,
    TABLE_DATASET,
    build_usage_signals,
    facts_frame,
    read_day_facts,
    read_facts,
)
from news_platform.storage.commit.markers import (
    Marker,
    fingerprint_of,
    name_part,
    read_markers,
    read_report,
    rename_marker,
    report_scope,
)
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore


def adopt_markers(store: ObjectStore) -> None:
    """Rename the markers of version 0.1 whose inputs are unchanged, parents before children."""
    queued, surveyed = read_markers(store, QUEUE_DATASET), read_markers(store, METADATA_DATASET)
    changed, chain = read_markers(store, CHANGES_DATASET), tabled_days(store)
    _adopt_queue(store, queued)
    _adopt_surveys(store, surveyed, queued)
    _adopt_tables(store, surveyed)
    now = tabled_days(store)
    for day, marker in changed.items():
        if marker.inputs == chain.get(day) and day in now:
            rename_marker(store, CHANGES_DATASET, marker, inputs=now[day])


def _adopt_queue(store: ObjectStore, queued: Mapping[str, Marker]) -> None:
    for key, infos in batch_files(store).items():
        marker = queued.get(key)
        if marker is None:
            continue
        if marker.inputs == fingerprint_of(infos) or _took_all(store, marker, infos):
            inputs = research_inputs(store, infos, built=None)
            rename_marker(store, QUEUE_DATASET, marker, inputs=inputs)


def _took_all(store: ObjectStore, marker: Marker, infos: Sequence[ObjectInfo]) -> bool:
    """Return whether the run that wrote the marker read as many files, all of them accepted.

    An accepted file never changes: its digest is in the ledger, and a check compares it.
    """
    is_accepted = all(store.exists(f"{info.path}{SUCCESS_SUFFIX}") for info in infos)
    return is_accepted and read_report(store, marker).get("files") == len(infos)


def _adopt_surveys(
    store: ObjectStore, surveyed: Mapping[str, Marker], queued: Mapping[str, Marker]
) -> None:
    """Rename the markers of surveys; `queued` are those of the queue before they were renamed."""
    named = read_markers(store, QUEUE_DATASET)
    for key, marker in surveyed.items():
        before = queued.get(key)
        if before is None or marker.scope:
            continue
        if marker.inputs == fingerprint_of([before]) or _covers(store, marker, named[key]):
            inputs = fingerprint_of([named[key]], name_part)
            scope = report_scope(read_report(store, marker))
            rename_marker(store, METADATA_DATASET, marker, inputs=inputs, scope=scope)


def _covers(store: ObjectStore, survey: Marker, queue: Marker) -> bool:
    """Return whether a survey counted every domain of a batch that was queued in one run."""
    queued, outcomes = read_report(store, queue), read_report(store, survey).get("outcomes")
    if queued.get("files_known") or not isinstance(outcomes, dict):
        return False
    return sum(outcomes.values()) == queued.get("new_domains")


def _adopt_tables(store: ObjectStore, surveyed: Mapping[str, Marker]) -> None:
    """Rename the markers of tables; `surveyed` are those of surveys before they were renamed."""
    before, named = _by_day(surveyed), _by_day(read_markers(store, METADATA_DATASET))
    for day, marker in read_markers(store, TABLE_DATASET).items():
        if day not in before or any(one.scope for one in before[day]):
            continue
        if marker.inputs == fingerprint_of(before[day]) or _holds_facts(store, day):
            inputs = fingerprint_of(named[day], name_part)
            rename_marker(store, TABLE_DATASET, marker, inputs=inputs)
            # Version 0.1 read no statements about use, so the table of this day is empty.
            build_usage_signals(day, store=store)


def _by_day(surveyed: Mapping[str, Marker]) -> Mapping[str, list[Marker]]:
    days: dict[str, list[Marker]] = {}
    for key, marker in surveyed.items():
        days.setdefault(str(PartitionInfo.parse(key).date), []).append(marker)
    return days


def _holds_facts(store: ObjectStore, day: str) -> bool:
    """Return whether the table of a day has exactly the facts that are stored."""
    with suppress(NotFound):
        stored = read_facts(store, day).select(list(DOMAIN_SURVEYS.schema))
        return stored.equals(facts_frame(read_day_facts(store, day)))
    return False
