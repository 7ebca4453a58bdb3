"""Compare the snapshots of each page: which blocks were added, removed or changed.

The changes of an institution follow from its records alone: the snapshots of one address are
compared in the order of their dates. A snapshot without records, as that of a failed page, says
nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import polars as pl

from news_platform.datasets.source_records import (
    SOURCE_RECORD_CHANGES,
    SOURCE_RECORDS,
    SourceRecord,
    records_path,
)
from news_platform.errors import ConfigError, FetchError
from news_platform.source_records.snapshots import UNDATED
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.takedowns.build_filters import without_hidden
from news_platform.text.normalize import jaccard, words
from news_platform.web.webhook import post_json

# A removed and an added block of one section with this share of common words are one that changed.
_SIMILAR = 0.5
# Bounds the time for two pages of which nearly all blocks differ.
_MAX_COMPARED = 250_000
# A message to a chat is read by people; the dataset has all.
_POSTED = 20


def changes_of(records: Sequence[SourceRecord]) -> pl.DataFrame:
    """Return the changes between the snapshots of every page, oldest first."""
    pages: dict[str, dict[str, list[SourceRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        pages[record.provenance.url][record.meta.snapshot or ""].append(record)
    rows = [
        row
        for snapshots in pages.values()
        for before, after in pairwise(sorted(snapshots.values(), key=_date))
        for row in _compared(before, after)
    ]
    return pl.DataFrame(rows, schema=dict(SOURCE_RECORD_CHANGES.schema), orient="row")


def _date(snapshot: Sequence[SourceRecord]) -> tuple[object, str]:
    first = snapshot[0]
    return first.provenance.fetched_at or UNDATED, first.meta.snapshot or ""


def _compared(
    before: Sequence[SourceRecord], after: Sequence[SourceRecord]
) -> Iterator[dict[str, object]]:
    """Yield the changes between two snapshots of a page; a block that only moved is the same."""
    old, new = ({one.text for one in records} for records in (before, after))
    removed = [one for one in before if one.text not in new]
    added = [one for one in after if one.text not in old]
    times = {
        "url": after[0].provenance.url,
        "snapshot": after[0].meta.snapshot,
        "fetched_at": after[0].provenance.fetched_at,
        "before_snapshot": before[0].meta.snapshot,
        "before_fetched_at": before[0].provenance.fetched_at,
    }
    is_few = len(removed) * len(added) <= _MAX_COMPARED
    for record in added:
        earlier = _earlier(record, removed) if is_few else None
        if earlier is not None:
            removed.remove(earlier)
        yield {**times, **_change(earlier, record)}
    for record in removed:
        yield {**times, **_change(record, None)}


def _earlier(record: SourceRecord, removed: Sequence[SourceRecord]) -> SourceRecord | None:
    """Return the removed block of the same section that is most similar, if it is enough so."""
    own = frozenset(words(record.text))
    section = record.provenance.section
    near = [one for one in removed if one.provenance.section == section]
    ranked = [(jaccard(own, frozenset(words(one.text))), -one.meta.order, one) for one in near]
    similarity, _, best = max(ranked, key=lambda rank: rank[:2], default=(0.0, 0, None))
    return best if similarity >= _SIMILAR else None


def _change(before: SourceRecord | None, after: SourceRecord | None) -> dict[str, object]:
    last = after or before
    kind = "changed" if before and after else "added" if after else "removed"
    return {
        "change": kind,
        "section": last.provenance.section if last else None,
        "kind": last.meta.kind if last else None,
        "order": last.meta.order if last else None,
        "before": before.text if before else None,
        "after": after.text if after else None,
    }


def new_changes(store: ObjectStore, institution: str, found: pl.DataFrame) -> pl.DataFrame:
    """Return the changes in snapshots of which no records are stored yet.

    The first build has nothing new: its changes are the past. Snapshots that were known may differ
    by the rules of another version, which is not news either.
    """
    path = records_path(institution)
    if not store.exists(path):
        return found.clear()
    known = read_table(store, path, SOURCE_RECORDS).select("snapshot").unique()
    return found.join(known, on="snapshot", how="anti", nulls_equal=True)


def scan_changes(store: ObjectStore, *, institution: str = "") -> pl.LazyFrame:
    """Return the changes that readers may see, of all institutions or one, newest first."""
    engine = ParquetEngine(store, SOURCE_RECORD_CHANGES)
    rows = engine.scan([institution] if institution else None)
    shown = without_hidden(rows, SOURCE_RECORD_CHANGES, store)
    return shown.sort("fetched_at", "institution", "url", "order", descending=[True, *[False] * 3])


def tell_changes(
    changes: pl.DataFrame, institution: str, *, url: str | None, secret: str | None
) -> str | None:
    """Post what is new at an institution to a webhook; return why it was not accepted, if so."""
    if url is None or changes.is_empty():
        return None
    counts = dict(changes["change"].value_counts().sort("change").iter_rows())
    told = ", ".join(f"{count} {change}" for change, count in counts.items())
    document = {
        "text": f"{institution}: blocks {told} on {changes['url'].n_unique()} pages",
        "institution": institution,
        "counts": counts,
        "changes": changes.head(_POSTED)
        .select("url", "change", "section", "before", "after")
        .to_dicts(),
    }
    try:
        post_json(url, document, secret=secret or "")
    except (FetchError, ConfigError) as error:
        return f"the webhook did not accept the changes at {institution}: {error}"
    return None
