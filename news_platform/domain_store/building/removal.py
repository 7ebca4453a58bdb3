"""The brake on mass removal: count the records that a build would remove, and refuse too many.

Inputs that disappear are removed from the store, which is right for one day and a disaster for all
of them: an unmounted folder or a mistyped root looks like ten years of removed days.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date

from news_platform.datasets.domain_store import DOMAIN_BUCKETS
from news_platform.datasets.domain_store import ROOT as STORE
from news_platform.datasets.domain_store import STAGED_ROOT as STAGED
from news_platform.domain_store.building.verify import records_by_batch
from news_platform.domain_store.commit import read_current
from news_platform.domain_store.manifest import Manifest
from news_platform.domain_store.options import BuildOptions
from news_platform.domain_store.staging.stage import Staged
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.commit.markers import Marker, read_markers, read_report
from news_platform.storage.engines import require_small_share
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import wanted_inputs


@dataclass(frozen=True, slots=True)
class Removal:
    """The records that would go, by batch, out of the `held` records of the store."""

    batches: Mapping[str, int]
    held: int

    @property
    def records(self) -> int:
        """Return the number of records that would go."""
        return sum(self.batches.values())


def require_allowed(removal: Removal, options: BuildOptions) -> None:
    """Raise StorageError when more records would go than the options allow."""
    if not options.allow_removal:
        require_small_share(
            STORE,
            removal.batches,
            removal.held,
            share=options.removal_share,
            cure="restore their inputs, or repeat with --allow-removal (in Dagster with the run "
            "config `allow_removal: true`)",
        )


def staging_removal(store: ObjectStore, days: Collection[str] | None = None) -> Removal:
    """Count what staging all stale days would remove; nothing when it keeps the records of `days`.

    `days` are those that the caller stages now, None for all. All stale days count: each run of
    Dagster stages a few of them, and every one by itself looks harmless.
    """
    markers, wanted = read_markers(store, STAGED), wanted_inputs(store, DOMAIN_BUCKETS)
    stale = [day for day in wanted if day in markers and wanted[day] != markers[day].inputs]
    if not (stale if days is None else set(days) & set(stale)):
        return Removal({}, 0)
    # Many small files, read one after the other, would take minutes on an object store.
    with ThreadPoolExecutor(16) as pool:
        counts = pool.map(lambda marker: _staged_records(store, marker), markers.values())
        held = dict(zip(markers, counts, strict=True))
        now = dict(zip(stale, pool.map(lambda day: _collected_rows(store, day), stale)))  # noqa: B905
    lost = {day: held[day] - now[day] for day in stale if held[day] > now[day]}
    is_ours = days is None or not lost.keys().isdisjoint(days)
    return Removal(lost if is_ours else {}, sum(held.values()))


def _staged_records(store: ObjectStore, marker: Marker) -> int:
    return int(str(read_report(store, marker).get("records", 0)))


def _collected_rows(store: ObjectStore, day: str) -> int:
    return sum(marker.rows for marker in read_collected(store, [date.fromisoformat(day)]))


def building_removal(
    store: ObjectStore, manifests: Iterable[Manifest | None], staged: Staged
) -> Removal:
    """Count what building would remove from the whole store.

    `manifests` are those of the buckets that are built now. Only when these lose records are all
    other buckets read, too.
    """
    if not any(records > 0 for records in _lost(store, manifests, staged).values()):
        return Removal({}, 0)
    with ThreadPoolExecutor(16) as pool:
        currents = pool.map(lambda bucket: read_current(store, bucket), range(staged.buckets))
        everywhere = [current.manifest for current in currents]
    lost = _lost(store, everywhere, staged)
    held = sum(manifest.index.records for manifest in everywhere if manifest)
    return Removal({batch: count for batch, count in lost.items() if count > 0}, held)


def _lost(store: ObjectStore, manifests: Iterable[Manifest | None], staged: Staged) -> Counter[str]:
    """Return the records that each batch would lose in these buckets; negative when it gains."""
    lost: Counter[str] = Counter()
    for manifest in manifests:
        held = manifest.batch_inputs if manifest else {}
        changed = {batch for batch in held if staged.inputs.get(batch) != held[batch]}
        # A batch without records in this bucket cannot lose any here.
        if manifest is None or not changed - manifest.empty.keys():
            continue
        counts = records_by_batch(store, manifest)
        for batch in changed:
            new = staged.records(batch, manifest.bucket) if batch in staged.inputs else 0
            lost[batch] += counts.get(batch, 0) - new
    return lost
