"""Empty the `tree` column of old days whose pages the domain store holds; all else stays.

The page sources are most of raw_news. The WARCs are recorded first, so that staging reads their
rows from the domain store from then on; then their files are written again without trees, each
replaced at once. An interrupted run is finished by the next one.
"""

import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial

from news_platform.ccnews.checks import read_footers
from news_platform.ccnews.retention import expire_verified, old_days
from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import RAW_NEWS, raw_news_day_prefix
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.commit.expired import TREE, expired_warc, read_expired, record_expired
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.retention import Expiry, expiry_of, last_expired_day
from news_platform.takedowns.build_filters import cleaned_later

DATASET = f"raw_news.{TREE}"
_NOT_STORED = (
    "the domain store does not hold it: run `news-platform store build`, or raise "
    "NEWS_PLATFORM_RETAIN_TREE_DAYS"
)


@dataclass(frozen=True, slots=True)
class ExpiringTrees:
    """A day to empty: WARCs that are not recorded yet, those that are, and the files to rewrite."""

    fresh: tuple[Collected, ...]
    unfinished: tuple[Collected, ...]
    files: Sequence[ObjectInfo]
    tree_bytes: int


@dataclass(frozen=True, slots=True)
class TreePlan:
    """The days to empty, and those of them that the domain store does not hold."""

    days: Mapping[str, ExpiringTrees]
    refused: Collection[str]

    @property
    def expiry(self) -> Expiry:
        """Return the files that the plan rewrites, and the bytes of their trees."""
        kept = {key: day for key, day in self.days.items() if key not in self.refused}
        return replace(
            expiry_of(DATASET, {key: day.files for key, day in kept.items()}),
            bytes=sum(day.tree_bytes for day in kept.values()),
            refused=dict.fromkeys(sorted(self.refused), _NOT_STORED),
        )


def plan_trees(
    store: ObjectStore,
    *,
    keep_days: int,
    now: datetime,
    stored_days: Callable[[Collection[str]], Collection[str]],
) -> TreePlan:
    """Find the days older than `keep_days`; `stored_days` returns those that the store holds."""
    newest = last_expired_day(now.date(), keep_days)
    return TreePlan(*old_days(store, _expiring, newest=newest, stored_days=stored_days))


def expire_trees(
    store: ObjectStore,
    plan: TreePlan,
    *,
    now: datetime,
    rows_by_warc: Callable[[str], Mapping[str, int]],
) -> Expiry:
    """Empty the days of the plan, each after all of its rows were read back from the store.

    `rows_by_warc` reads a day of the store and counts its rows. Days that are refused stay.
    """
    empty = partial(_empty, store, expired_at=now.isoformat(timespec="seconds"))
    with cleaned_later(store, {RAW_NEWS.name: list(plan.days)}):
        failed = expire_verified(plan.days, plan.refused, empty, rows_by_warc=rows_by_warc)
    done = {key: day for key, day in plan.days.items() if key not in failed}
    return replace(TreePlan(done, plan.refused).expiry, failed=failed)


def _empty(store: ObjectStore, day: ExpiringTrees, *, expired_at: str) -> None:
    both = (*day.fresh, *day.unfinished)
    for is_done in (False, True):
        record_expired(
            store,
            [
                expired_warc(one, expired_at=expired_at, column=TREE, is_done=is_done)
                for one in both
            ],
        )
        if not is_done:
            for info in day.files:
                store.put(info.path, without_trees(store.read(info.path)))


def without_trees(body: bytes) -> bytes:
    """Return a file of raw_news with every `tree` null, and all else as it was."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source, sink = pq.ParquetFile(io.BytesIO(body)), io.BytesIO()
    schema = source.schema_arrow
    place = schema.get_field_index(TREE)
    with pq.ParquetWriter(sink, schema, compression="zstd", compression_level=1) as writer:
        for number in range(source.num_row_groups):
            rows = source.read_row_group(number)
            nulls = pa.nulls(rows.num_rows, schema.field(place).type)
            writer.write_table(rows.set_column(place, schema.field(place), nulls))
    return sink.getvalue()


def _expiring(store: ObjectStore, day: date) -> ExpiringTrees:
    records = read_expired(store, [str(day)])
    markers = [one for one in read_collected(store, [day]) if not one.is_expired]
    fresh = tuple(one for one in markers if not one.is_tree_expired)
    unfinished = tuple(
        one for one in markers if one.is_tree_expired and not records[str(day), one.warc].is_done
    )
    named = {path for one in (*fresh, *unfinished) for path in one.news_paths().values()}
    files = [info for info in store.list(raw_news_day_prefix(day)) if info.path in named]
    footers = read_footers(store, day=day) if files else ()
    tree_bytes = sum(footer.tree_bytes for footer in footers if footer.path in named)
    return ExpiringTrees(fresh, unfinished, files, tree_bytes)
