"""Cluster the near-identical articles of a day with those of the days before it.

The texts of a day become sketches, stored for the days that follow; `window_candidates.py` finds
those that are near-identical. A cluster keeps the name of its oldest article; when an article joins
two clusters, the newer name points to the older one from then on, and readers resolve it
(`read_clusters`). Nothing that was written for an earlier day changes.
"""

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl

from news_platform.datasets.corpus import DELTA_TABLES, STATISTICS_COLUMNS
from news_platform.datasets.text_clusters import (
    CLUSTER_BANDS,
    CLUSTER_MERGES,
    CLUSTER_SKETCHES,
    TEXT_CLUSTERS,
    bands_path,
    clusters_path,
    merges_path,
    sketches_path,
)
from news_platform.isolation.boundary import boundary
from news_platform.near_duplicates.sketch import SketchOptions, cluster_id, sketch_of
from news_platform.near_duplicates.window_candidates import (
    TextPair,
    alike_pairs,
    find_candidates,
)
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table, scan_table, write_table
from news_platform.storage.parquet_batches import iter_frames

_READ = ("url_hash", "source", "url", "fetched_at", "text")


@dataclass(frozen=True, slots=True)
class WindowReport:
    """Counts of a day: its articles, distinct texts, compared pairs, and what came of them."""

    day: str
    articles: int
    distinct_texts: int
    compared_pairs: int
    joined: int
    merges: int
    too_short: int


@dataclass(slots=True)
class _Day:
    """The articles of a day and the sketches of their distinct texts."""

    articles: list[tuple[str, str, str, datetime, str | None]] = field(default_factory=list)
    sketches: dict[str, tuple[str, bytes, tuple[int, ...]]] = field(default_factory=dict)
    too_short: int = 0


def window_days(day: str, days: int) -> list[str]:
    """Return the days before `day` that its articles are compared with, oldest first."""
    last = date.fromisoformat(day)
    return [(last - timedelta(days=back)).isoformat() for back in range(days - 1, 0, -1)]


def cluster_window(
    store: ObjectStore, day: str, *, days: int, scratch: str | None = None
) -> WindowReport:
    """Give each article of a day a cluster among those of the window, and store the result."""
    options = SketchOptions()
    today = _sketch_day(store, day, options)
    earlier = [one for one in window_days(day, days) if store.exists(clusters_path(one))]
    for one in earlier:
        if not store.exists(bands_path(one)):  # expired: see `expire_sketches`
            _write_sketches(store, one, _sketch_day(store, one, options), {})
    twins = _twins(store, earlier, today)
    # Stored first: the day's own texts are candidates like those of earlier days.
    _write_sketches(store, day, today, twins)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        candidates = find_candidates(store, [*earlier, day], options, Path(folder))
    alike = alike_pairs(store, day, candidates, options)
    others = {pair.article for pair in alike if pair.text_key is None}
    known = _known(store, earlier, {*twins.values(), *others})
    found = _Clusters(known, today, twins, alike)
    write_table(store, merges_path(day), found.merges_frame(), CLUSTER_MERGES)
    write_table(store, clusters_path(day), found.frame(), TEXT_CLUSTERS)
    return WindowReport(
        day,
        articles=len(today.articles),
        distinct_texts=len(today.sketches),
        compared_pairs=len(candidates),
        joined=found.joined,
        merges=len(found.merges),
        too_short=today.too_short,
    )


def _sketch_day(store: ObjectStore, day: str, options: SketchOptions) -> _Day:
    found = _Day()
    rows = sorted(_articles(store, day), key=lambda row: (row[3], row[0], row[1]))
    for url_hash, source, url, seen_at, key in rows:
        found.articles.append((url_hash, source, url, seen_at, key.text_key if key else None))
        if key is not None and key.text_key not in found.sketches:
            found.sketches[key.text_key] = (url_hash, key.shingles, key.bands)
    found.too_short = sum(row[4] is None for row in rows)
    return found


@dataclass(frozen=True, slots=True)
class _StoredSketch:
    text_key: str
    shingles: bytes
    bands: tuple[int, ...]


def _articles(
    store: ObjectStore, day: str
) -> Iterator[tuple[str, str, str, datetime, _StoredSketch | None]]:
    options = SketchOptions()
    for table in DELTA_TABLES:
        for file in DeltaDataset(store, table, STATISTICS_COLUMNS).files():
            if file.partition == day:
                for frame in iter_frames(store, file.path, columns=_READ):
                    for url_hash, source, url, seen_at, text in frame.select(*_READ).iter_rows():
                        yield url_hash, source, url, seen_at, _sketch(url, text or "", options)


def _sketch(url: str, text: str, options: SketchOptions) -> _StoredSketch | None:
    with boundary("article", url):
        sketch = sketch_of(text, options)
        if sketch is None:
            return None
        return _StoredSketch(sketch.text_key, sketch.shingle_hashes.tobytes(), sketch.band_keys)
    return None


def _write_sketches(store: ObjectStore, day: str, today: _Day, twins: Mapping[str, str]) -> None:
    write_table(store, sketches_path(day), _sketch_frame(today), CLUSTER_SKETCHES)
    write_table(store, bands_path(day), _band_frame(today, twins), CLUSTER_BANDS)


def _sketch_frame(today: _Day) -> pl.DataFrame:
    rows = [(key, url_hash, shingles) for key, (url_hash, shingles, _) in today.sketches.items()]
    return pl.DataFrame(rows, schema=dict(CLUSTER_SKETCHES.schema), orient="row")


def _band_frame(today: _Day, twins: Mapping[str, str]) -> pl.DataFrame:
    """Return the band keys of the day's texts."""
    # A text that an earlier day has is compared no further: it is in that one's cluster.
    rows = [
        (place, list(bands), key not in twins)
        for place, (key, (_, _, bands)) in enumerate(today.sketches.items())
    ]
    return pl.DataFrame(rows, schema=dict(CLUSTER_BANDS.schema), orient="row")


def _twins(store: ObjectStore, days: Sequence[str], today: _Day) -> dict[str, str]:
    """Return the oldest article of the earlier days with each text that the day repeats."""
    found: dict[str, str] = {}
    for day in days:
        for frame in iter_frames(store, sketches_path(day), columns=("text_key", "url_hash")):
            for key, url_hash in frame.rows():
                if key in today.sketches:
                    found.setdefault(key, url_hash)
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    """The clusters of earlier articles, and when each cluster was first seen."""

    clusters: Mapping[str, str]
    first_seen: Mapping[str, datetime]


def _known(store: ObjectStore, days: Sequence[str], wanted: Collection[str]) -> _Known:
    """Read the clusters of some articles of earlier days, as they are now."""
    older = _merges(store)
    clusters: dict[str, str] = {}
    first_seen: dict[str, datetime] = {}
    for day in days:
        columns = ("url_hash", "cluster_id", "first_seen_at")
        for frame in iter_frames(store, clusters_path(day), columns=columns):
            for url_hash, name, seen_at in frame.select(*columns).iter_rows():
                if url_hash in wanted:
                    clusters.setdefault(url_hash, resolved := _resolved(name, older))
                    first_seen[resolved] = min(seen_at, first_seen.get(resolved, seen_at))
    return _Known(clusters, first_seen)


class _Clusters:
    """Joins the articles of a day with each other and with earlier clusters."""

    def __init__(
        self, known: _Known, today: _Day, twins: Mapping[str, str], alike: Iterable[TextPair]
    ) -> None:
        self.merges: dict[str, str] = {}
        self.joined = 0
        self._known = known
        self._today = today
        self._twins = twins
        self._parents: dict[str, str] = {}
        self._jaccard: dict[str, float] = {}
        self._seen: dict[str, datetime] = dict(known.first_seen)
        self._names: dict[str, str] = {}
        self._name_new_texts()
        for pair in alike:
            self._jaccard[pair.left] = max(pair.jaccard, self._jaccard.get(pair.left, 0.0))
            other = self._known.clusters.get(pair.article, "")
            right = other if pair.text_key is None else self._names[pair.text_key]
            if right:
                self._join(self._names[pair.left], right)
        self._look_back()

    def _look_back(self) -> None:
        """Let a cluster begin with an article of the day that was fetched before all others."""
        for _, _, _, seen_at, key in self._today.articles:
            if key is not None:
                name = self._root(self._names[key])
                self._seen[name] = min(seen_at, self._seen[name])

    def _name_new_texts(self) -> None:
        """Give each new text a cluster of its own, and each known text the one that it has."""
        seen = {url_hash: seen_at for url_hash, _, _, seen_at, _ in self._today.articles}
        for key, (url_hash, _, _) in self._today.sketches.items():
            name = self._known.clusters.get(self._twins.get(key, ""), "")
            if not name:
                name = cluster_id(url_hash, key)
                self._seen.setdefault(name, seen[url_hash])
            self._names[key] = name

    def _root(self, name: str) -> str:
        while (parent := self._parents.get(name, name)) != name:
            name = parent
        return name

    def _join(self, one: str, other: str) -> None:
        roots = {self._root(one), self._root(other)}
        if len(roots) < 2:
            return
        older, newer = sorted(roots, key=lambda name: (self._seen[name], name))
        self._parents[newer] = older
        if newer in self._known.first_seen:
            self.merges[newer] = older

    def frame(self) -> pl.DataFrame:
        """Return a row for each article of the day, in the order of arrival."""
        rows = [self._row(*article) for article in self._today.articles]
        return pl.DataFrame(rows, schema=dict(TEXT_CLUSTERS.schema), orient="row")

    def _row(
        self, url_hash: str, source: str, url: str, seen_at: datetime, key: str | None
    ) -> tuple[object, ...]:
        if key is None:  # too short to compare
            return url_hash, source, url, seen_at, cluster_id(url_hash, ""), seen_at, None
        first = self._today.sketches[key][0]
        name = self._root(self._names[key])
        is_twin = first != url_hash or key in self._twins
        jaccard = 1.0 if is_twin else self._jaccard.get(key)
        self.joined += jaccard is not None
        return url_hash, source, url, seen_at, name, self._seen[name], jaccard

    def merges_frame(self) -> pl.DataFrame:
        """Return the earlier clusters that ended, each with the one that goes on."""
        rows = [(name, self._root(name)) for name in sorted(self.merges)]
        return pl.DataFrame(rows, schema=dict(CLUSTER_MERGES.schema), orient="row")


def read_clusters(store: ObjectStore, days: Iterable[str]) -> pl.DataFrame:
    """Return the articles of these days with their clusters as they are now.

    Besides the columns of text_clusters: `members`, `sources` and `first_seen_at` of the cluster
    within these days.
    """
    paths = [path for day in days if store.exists(path := clusters_path(day))]
    rows = scan_table(store, paths, TEXT_CLUSTERS).collect()
    older = _merges(store)
    names = {name: _resolved(name, older) for name in rows["cluster_id"].unique()}
    cluster = pl.col("cluster_id").replace_strict(names, return_dtype=pl.String())
    return rows.with_columns(cluster_id=cluster).with_columns(
        first_seen_at=pl.col("first_seen_at").min().over("cluster_id"),
        members=pl.len().over("cluster_id"),
        sources=pl.col("source").n_unique().over("cluster_id"),
    )


def _merges(store: ObjectStore) -> Mapping[str, str]:
    paths = [info.path for info in store.list(CLUSTER_MERGES.name)]
    rows = scan_table(store, paths, CLUSTER_MERGES).select("cluster_id", "older_id").collect()
    return dict(rows.rows())


def _resolved(name: str, older: Mapping[str, str]) -> str:
    seen = {name}
    while (parent := older.get(name)) is not None and parent not in seen:
        seen.add(parent)
        name = parent
    return name


def day_clusters(store: ObjectStore, day: str) -> pl.DataFrame:
    """Return the stored rows of one day, unresolved."""
    return read_table(store, clusters_path(day), TEXT_CLUSTERS)
