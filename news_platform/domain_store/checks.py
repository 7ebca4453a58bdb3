"""Quick proofs after a build: counts equal stage 1, a sample of the index reads, no orphans."""

import random
from collections.abc import Iterable, Iterator
from datetime import datetime

import polars as pl

from news_platform.domain_store.building.gc import find_orphans
from news_platform.domain_store.building.sources import read_all, read_entries
from news_platform.domain_store.commit import read_current
from news_platform.domain_store.manifest import Manifest
from news_platform.domain_store.reading.fragments import iter_fragment_rows
from news_platform.domain_store.reading.lookup import DomainStore
from news_platform.domain_store.staging.staged import Staged, read_staged
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore

# So many of the newest batches are counted again; `store verify` walks all.
RECENT_BATCHES = 31
SAMPLED_DOMAINS = 20


def iter_count_problems(store: ObjectStore, buckets: Iterable[int]) -> Iterator[str]:
    """Compare the records of the newest batches in each bucket with what stage 1 wrote."""
    staged: Staged | None = None
    for bucket in buckets:
        manifest = read_current(store, bucket).manifest
        if manifest is None:
            continue
        staged = staged or read_staged(store, manifest.buckets)
        held = _records_by_batch(store, manifest)
        versions = staged.versions
        for batch in sorted(versions)[-RECENT_BATCHES:]:
            if manifest.taken.get(batch) != versions[batch]:
                yield f"bucket {bucket} lacks the present version of {batch}"
            elif (found := held.get(batch, 0)) != (wrote := staged.records(batch, bucket)):
                yield f"bucket {bucket} holds {found} records of {batch}, stage 1 wrote {wrote}"


def _records_by_batch(store: ObjectStore, manifest: Manifest) -> dict[str, int]:
    held: dict[str, int] = {}
    for segment, part in read_all(read_entries, store, manifest.segments):
        counted = part.group_by("batch").agg(pl.col("records").sum())
        held |= {batch: n for batch, n in counted.iter_rows() if batch in segment.live}
    return held


def iter_reading_problems(
    store: ObjectStore, buckets: Iterable[int], *, seed: int, sample: int = SAMPLED_DOMAINS
) -> Iterator[str]:
    """Read every fragment of a few domains, chosen by `seed`."""
    reader = DomainStore(store)
    names = [domain for bucket in buckets for domain in reader.catalog(bucket)["domain"]]
    for domain in random.Random(seed).sample(names, min(sample, len(names))):
        entry = reader.entry(domain)
        if entry is None:
            yield f"{domain!r} stands in the catalog and not in the index"
            continue
        try:
            strangers = sum(
                row.get("domain") != domain for row in iter_fragment_rows(store, entry.fragments)
            )
        except StorageError as error:
            yield str(error)
            continue
        if strangers:
            yield f"{domain!r} leads to {strangers} records of other domains"


def iter_orphan_problems(
    store: ObjectStore, buckets: Iterable[int], *, before: datetime
) -> Iterator[str]:
    """Name files that nothing knows and nobody has swept since `before`."""
    for bucket in buckets:
        current = read_current(store, bucket)
        for info in find_orphans(store, current, bucket=bucket, before=before):
            yield f"{store.uri(info.path)!r} belongs to no generation: `store compact` sweeps it"
