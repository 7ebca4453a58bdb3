"""Cluster the near-identical articles of a day with those of the days before it.

The texts of a day become sketches, stored for the days that follow; `candidates.py` finds
those that are near-identical. A cluster keeps the name of its oldest article; when an article joins
two clusters, the newer name points to the older one from then on, and readers resolve it
(`reading.py`). Nothing that was written for an earlier day changes.
"""

import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl

from news_platform.datasets.corpus import DELTA_TABLES, STATISTICS_COLUMNS
from news_platform.datasets.near_duplicates import (
    CLUSTER_BANDS,
    CLUSTER_SKETCHES,
    NEAR_DUPLICATES,
)
from news_platform.isolation.boundary import boundary
from news_platform.near_duplicates.candidates import (
    ArticleKey,
    Sketch,
    TextPair,
    alike_pairs,
    cluster_id,
    find_candidates,
    sketch_of,
)
from news_platform.near_duplicates.reading import iter_merges, resolved_name
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import iter_frames, write_table
from news_platform.takedowns.build_filters import without_covered
from news_platform.takedowns.match import Takedowns

_READ = ("url_hash", "source", "url", "fetched_at", "text")


@dataclass(frozen=True, slots=True)
class WindowReport:
    """Counts of a day: its articles, distinct texts, compared pairs, and what came of them.

    `members` are articles with a near-duplicate in `clusters`; `failed` ones raised an error, which
    is in the log, and are compared with no other. `content` is the fingerprint of the result: the
    days that follow are built from it.
    """

    articles: int
    too_short: int
    failed: int
    distinct_texts: int
    compared_pairs: int
    members: int
    clusters: int
    merges: int
    content: str


@dataclass(frozen=True, slots=True)
class _SeenArticle:
    """An article of the day and the key of its text; None if it is not compared."""

    day: str
    source: str
    url_hash: str
    url: str
    seen_at: datetime
    text_key: str | None

    @property
    def key(self) -> ArticleKey:
        """Return what tells it from all others."""
        return self.day, self.source, self.url_hash


@dataclass(slots=True)
class _Day:
    """The articles of a day and the sketches of their distinct texts."""

    articles: list[_SeenArticle] = field(default_factory=list)
    sketches: dict[str, tuple[ArticleKey, Sketch]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


def window_days(day: str, days: int) -> list[str]:
    """Return the days before `day` that its articles are compared with, oldest first."""
    last = date.fromisoformat(day)
    return [(last - timedelta(days=back)).isoformat() for back in range(days - 1, 0, -1)]


def cluster_window(
    store: ObjectStore,
    day: str,
    *,
    earlier: Sequence[str],
    takedowns: Takedowns,
    scratch: str | None = None,
) -> WindowReport:
    """Give each article of a day a cluster, and store the result.

    `earlier` are the clustered days that it is compared with, oldest first. The tables may still
    hold articles that are taken down; they are left out.
    """
    today = _sketch_day(store, day, takedowns)
    for one in earlier:
        if not store.exists(CLUSTER_BANDS.place.path(date=one)):  # expired: see `expire_sketches`
            _write_sketches(store, one, _sketch_day(store, one, takedowns), ())
    twins = _twins(store, earlier, today)
    # Stored first: the day's own texts are candidates like those of earlier days.
    _write_sketches(store, day, today, twins)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        candidates = find_candidates(store, [*earlier, day], Path(folder))
    alike = alike_pairs(store, day, candidates)
    others = {pair.article for pair in alike if pair.text_key is None}
    known = _known(store, earlier, {*twins.values(), *others})
    found = _Clusters(known, today, twins, alike)
    rows = found.frame(_earlier_sizes(store, earlier, known, found))
    write_table(store, NEAR_DUPLICATES.place.path(date=day), rows, NEAR_DUPLICATES)
    members = rows.filter(pl.col("jaccard").is_not_null())
    return WindowReport(
        articles=len(today.articles),
        too_short=today.left_out["too_short"],
        failed=today.left_out["failed"],
        distinct_texts=len(today.sketches),
        compared_pairs=len(candidates),
        members=members.height,
        clusters=members["cluster_id"].n_unique(),
        merges=len(found.merges),
        content=_content(rows, today),
    )


def _content(rows: pl.DataFrame, today: _Day) -> str:
    """Return the fingerprint of all that later days take from a day."""
    chosen = rows.select("url_hash", "source", "seen_at", "cluster_id", "first_seen_at")
    keys = (article.text_key for article in today.articles)
    return fingerprint(f"{row} {key}" for row, key in zip(chosen.iter_rows(), keys, strict=True))


def _sketch_day(store: ObjectStore, day: str, takedowns: Takedowns) -> _Day:
    found = _Day()
    rows = sorted(
        _articles(store, day, takedowns, found.left_out),
        key=lambda row: (row[0].seen_at, row[0].url_hash, row[0].source),
    )
    for article, sketch in rows:
        found.articles.append(article)
        if sketch is not None and article.text_key not in found.sketches:
            found.sketches[sketch.text_key] = (article.key, sketch)
    return found


def _articles(
    store: ObjectStore,
    day: str,
    takedowns: Takedowns,
    left_out: Counter[str],
) -> Iterator[tuple[_SeenArticle, Sketch | None]]:
    for table in DELTA_TABLES:
        for file in DeltaDataset(store, table, STATISTICS_COLUMNS).files():
            if file.partition == day:
                for frame in iter_frames(store, file.path, columns=(*_READ, "canonical_url")):
                    kept = without_covered(frame, table, takedowns)
                    for url_hash, source, url, seen_at, text in kept.select(*_READ).iter_rows():
                        sketch = _sketch(url, text or "", left_out)
                        key = sketch.text_key if sketch else None
                        yield _SeenArticle(day, source, url_hash, url, seen_at, key), sketch


def _sketch(url: str, text: str, left_out: Counter[str]) -> Sketch | None:
    found = None
    with boundary("article", url) as unit:
        found = sketch_of(text)
    if found is None:
        left_out["failed" if unit.cause else "too_short"] += 1
    return found


def _write_sketches(store: ObjectStore, day: str, today: _Day, twins: Collection[str]) -> None:
    write_table(
        store, CLUSTER_SKETCHES.place.path(date=day), _sketch_frame(today), CLUSTER_SKETCHES
    )
    write_table(store, CLUSTER_BANDS.place.path(date=day), _band_frame(today, twins), CLUSTER_BANDS)


def _sketch_frame(today: _Day) -> pl.DataFrame:
    rows = [
        (key, source, url_hash, sketch.shingle_hashes.tobytes())
        for key, ((_, source, url_hash), sketch) in today.sketches.items()
    ]
    return pl.DataFrame(rows, schema=dict(CLUSTER_SKETCHES.schema), orient="row")


def _band_frame(today: _Day, twins: Collection[str]) -> pl.DataFrame:
    """Return the band keys of the day's texts."""
    # A text that an earlier day has is compared no further: it is in that one's cluster.
    rows = [
        (place, list(sketch.band_keys), key not in twins)
        for place, (key, (_, sketch)) in enumerate(today.sketches.items())
    ]
    return pl.DataFrame(rows, schema=dict(CLUSTER_BANDS.schema), orient="row")


def _twins(store: ObjectStore, days: Sequence[str], today: _Day) -> dict[str, ArticleKey]:
    """Return the oldest article of the earlier days with each text that the day repeats."""
    found: dict[str, ArticleKey] = {}
    columns = ("text_key", "source", "url_hash")
    for day in days:
        for frame in iter_frames(store, CLUSTER_SKETCHES.place.path(date=day), columns=columns):
            for key, source, url_hash in frame.select(*columns).iter_rows():
                if key in today.sketches:
                    found.setdefault(key, (day, source, url_hash))
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    """The clusters of earlier articles, and when each cluster was first seen.

    `older` leads from clusters that ended before the day to those that went on.
    """

    clusters: Mapping[ArticleKey, str]
    first_seen: Mapping[str, datetime]
    older: Mapping[str, str]


def _known(store: ObjectStore, days: Sequence[str], wanted: Collection[ArticleKey]) -> _Known:
    """Read the clusters of some articles of earlier days, as they are before the day."""
    older = dict(iter_merges(store, days))
    clusters: dict[ArticleKey, str] = {}
    first_seen: dict[str, datetime] = {}
    for day in days:
        columns = ("source", "url_hash", "cluster_id", "first_seen_at")
        for frame in iter_frames(store, NEAR_DUPLICATES.place.path(date=day), columns=columns):
            for source, url_hash, name, seen_at in frame.select(*columns).iter_rows():
                if (day, source, url_hash) in wanted:
                    resolved = clusters[day, source, url_hash] = resolved_name(name, older)
                    first_seen[resolved] = min(seen_at, first_seen.get(resolved, seen_at))
    return _Known(clusters, first_seen, older)


def _earlier_sizes(
    store: ObjectStore, days: Sequence[str], known: _Known, found: "_Clusters"
) -> Mapping[str, int]:
    """Return how many articles of earlier days the clusters of the day have."""
    older = {**known.older, **found.merges}
    names = {name: resolved_name(name, older) for name in (*older, *known.first_seen)}
    wanted = {name: root for name, root in names.items() if root in found.roots}
    sizes: Counter[str] = Counter()
    for day in days:
        for frame in iter_frames(
            store, NEAR_DUPLICATES.place.path(date=day), columns=("cluster_id",)
        ):
            sizes.update(wanted[name] for name in frame["cluster_id"] if name in wanted)
    return sizes


class _Clusters:
    """Joins the articles of a day with each other and with earlier clusters."""

    def __init__(
        self,
        known: _Known,
        today: _Day,
        twins: Mapping[str, ArticleKey],
        alike: Iterable[TextPair],
    ) -> None:
        self.merges: dict[str, str] = {}
        self._known = known
        self._today = today
        self._twins = twins
        self._parents: dict[str, str] = {}
        self._jaccard: dict[str, float] = {}
        self._seen: dict[str, datetime] = dict(known.first_seen)
        self._names: dict[str, str] = {}
        self._name_new_texts()
        self._name_copies()
        for pair in alike:
            self._join_pair(pair)
        self._look_back()
        self.merges = {name: self._root(name) for name in sorted(self.merges)}

    @property
    def roots(self) -> frozenset[str]:
        """Return the clusters that the day's compared articles are in."""
        return frozenset(map(self._root, self._names.values()))

    def _name_new_texts(self) -> None:
        """Give each new text a cluster of its own, and each known text the one that it has."""
        seen = {article.key: article.seen_at for article in self._today.articles}
        for key, (article, _) in self._today.sketches.items():
            twin = self._twins.get(key)
            name = self._known.clusters.get(twin, "") if twin else ""
            if not name:
                name = cluster_id(article, key)
                self._seen.setdefault(name, seen[article])
            self._names[key] = name

    def _name_copies(self) -> None:
        """Record the texts that several articles of the window have."""
        counts = Counter(article.text_key for article in self._today.articles)
        copied = (key for key in self._names if counts[key] > 1 or key in self._twins)
        self._jaccard = dict.fromkeys(copied, 1.0)

    def _join_pair(self, pair: TextPair) -> None:
        for key in (pair.left, pair.text_key):
            if key is not None:
                self._jaccard[key] = max(pair.jaccard, self._jaccard.get(key, 0.0))
        other = self._known.clusters.get(pair.article, "")
        right = other if pair.text_key is None else self._names[pair.text_key]
        if right:
            self._join(self._names[pair.left], right)

    def _look_back(self) -> None:
        """Let a cluster begin with an article of the day that was fetched before all others."""
        for article in self._today.articles:
            if article.text_key is not None:
                name = self._root(self._names[article.text_key])
                self._seen[name] = min(article.seen_at, self._seen[name])

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

    def frame(self, earlier: Mapping[str, int]) -> pl.DataFrame:
        """Return a row for each article of the day, in the order of arrival.

        `earlier` has the number of articles that clusters have on earlier days.
        """
        names = [self._name(one) for one in self._today.articles]
        sizes = Counter(names)
        sizes.update({name: count for name, count in earlier.items() if name in sizes})
        ended: dict[str, list[str]] = {}
        for name, root in self.merges.items():
            ended.setdefault(root, []).append(name)
        rows = []
        for article, name in zip(self._today.articles, names, strict=True):
            jaccard = self._jaccard.get(article.text_key or "")
            first = self._seen.get(name, article.seen_at)
            # The first article of a cluster says which others ended in it.
            own = (article.url_hash, article.source, article.seen_at, first, ended.pop(name, None))
            rows.append((name, article.url, jaccard, sizes[name], *own))
        return pl.DataFrame(rows, schema=dict(NEAR_DUPLICATES.schema), orient="row")

    def _name(self, article: _SeenArticle) -> str:
        if article.text_key is None:
            return cluster_id(article.key, "")
        return self._root(self._names[article.text_key])
