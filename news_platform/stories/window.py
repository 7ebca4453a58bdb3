"""Link the articles of a day to those of the days before it, and publish their stories.

The terms of a day are stored for the days that follow. What a day takes from earlier days are their
terms and the stories of their articles, both from tables, so a day that is built twice is the same.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl

from news_platform.datasets.corpus import DELTA_TABLES, STATISTICS_COLUMNS
from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.datasets.stories import (
    COPY,
    FIRST,
    OWN_REPORT,
    STORIES,
    STORY_CHANGES,
    STORY_MEMBERS,
    STORY_TERMS,
)
from news_platform.isolation.boundary import boundary
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import iter_frames, read_table, write_table
from news_platform.stories.links import Link, Place, find_links
from news_platform.stories.similarity import BEST_SCORE, Sketches, load_model
from news_platform.stories.summaries import story_rows
from news_platform.stories.terms import Terms, article_terms, pack
from news_platform.takedowns.build_filters import without_covered
from news_platform.takedowns.match import Takedowns

_READ = (
    "url_hash",
    "source",
    "canonical_url",
    "domain",
    "language",
    "title",
    "fetched_at",
    "published_at",
    "text",
)


@dataclass(frozen=True, slots=True)
class StoryReport:
    """Counts of a day: articles, copies, links, and stories of at least two articles.

    `failed` articles raised an error, which is in the log, and are linked to no other. `content` is
    the fingerprint of the result: the days that follow are built from it.
    """

    articles: int
    copies: int
    linked: int
    failed: int
    stories: int
    languages: int
    largest: int
    changed_ids: int
    content: str


@dataclass(frozen=True, slots=True)
class _Article:
    """An article of the day, by the columns of the article tables, without its text."""

    url_hash: str
    source: str
    canonical_url: str
    domain: str
    language: str
    title: str | None
    fetched_at: datetime
    published_at: datetime | None
    terms: Terms

    @property
    def hour(self) -> int:
        """Return when it was published, or else fetched, in hours."""
        return int((self.published_at or self.fetched_at).timestamp() // 3600)


def _stored_sketches(store: ObjectStore, day: str) -> Sketches:
    """Return the sketches of an earlier day."""
    rows = read_table(store, STORY_TERMS.place.path(date=day), STORY_TERMS)
    return Sketches(
        _joined(rows["keys"], np.uint32),
        _joined(rows["weights"], np.uint8),
        _joined(rows["marks"], np.uint8),
        np.cumsum([0, *rows["weights"].bin.size().to_list()]).astype(np.int64),
        rows["language"].to_numpy().astype(np.str_),
        rows["domain"].to_numpy().astype(np.str_),
        rows["hour"].to_numpy(),
    )


def _joined(column: pl.Series, dtype: type[np.generic]) -> np.ndarray:
    return np.frombuffer(b"".join(column), dtype)


def link_window(
    store: ObjectStore, day: str, *, earlier: Sequence[str], takedowns: Takedowns
) -> StoryReport:
    """Give each article of a day its story, and store the result.

    `earlier` are the linked days of its window, oldest first. The tables may still hold articles
    that are taken down; they are left out.
    """
    left_out: Counter[str] = Counter()
    articles = _read_articles(store, day, takedowns, left_out)
    for one in earlier:
        if not store.exists(STORY_TERMS.place.path(date=one)):
            _write_terms(store, one, _originals(store, one, takedowns))
    known = _Known(store, earlier)
    copies = _copies(store, [*earlier, day], articles, known)
    originals = [one for one in articles if (one.url_hash, one.source) not in copies]
    _write_terms(store, day, originals)
    days = [partial(_stored_sketches, store, one) for one in (*earlier, day)]
    links = find_links(load_model(), days, known.root)
    rows = _member_rows(articles, originals, links, copies, known)
    members = pl.DataFrame(rows, schema=dict(STORY_MEMBERS.schema), orient="row")
    stories = story_rows(members, known.members, known.read_stories(store))
    changed = _write_changes(store, day, members)
    write_table(store, STORY_MEMBERS.place.path(date=day), members, STORY_MEMBERS)
    write_table(store, STORIES.place.path(date=day), stories, STORIES)
    return StoryReport(
        articles=members.height,
        copies=members.filter(pl.col("role") == COPY).height,
        linked=members.filter(pl.col("role") == OWN_REPORT).height,
        failed=left_out["failed"],
        stories=stories.height,
        languages=max(map(len, stories["languages"]), default=0),
        largest=max(stories["articles"], default=0),
        changed_ids=changed,
        content=_content(members, originals),
    )


def _content(members: pl.DataFrame, originals: Sequence[_Article]) -> str:
    """Return the fingerprint of all that later days take from a day."""
    chosen = members.select("story_id", "url_hash", "source", "seen_at", "linked_to", "role")
    terms = (f"{one.url_hash} {one.hour} {one.terms.keys.tobytes().hex()}" for one in originals)
    return fingerprint([*map(str, chosen.iter_rows()), *terms])


def _read_articles(
    store: ObjectStore, day: str, takedowns: Takedowns, left_out: Counter[str]
) -> list[_Article]:
    """Return the articles of a day in the order in which they were fetched."""
    found = list(_iter_articles(store, day, takedowns, left_out))
    return sorted(found, key=lambda one: (one.fetched_at, one.url_hash, one.source))


def _iter_articles(
    store: ObjectStore, day: str, takedowns: Takedowns, left_out: Counter[str]
) -> Iterator[_Article]:
    for table in DELTA_TABLES:
        for file in DeltaDataset(store, table, STATISTICS_COLUMNS).files():
            if file.partition == day:
                for frame in iter_frames(store, file.path, columns=(*_READ, "url")):
                    kept = without_covered(frame, table, takedowns).select(*_READ)
                    for row in kept.iter_rows(named=True):
                        yield _article(row, left_out)


def _article(row: dict[str, Any], left_out: Counter[str]) -> _Article:
    text, row["language"] = row.pop("text") or "", row["language"] or ""
    terms = None
    with boundary("article", row["canonical_url"]):
        terms = article_terms(row["title"] or "", text, row["language"])
    left_out["failed"] += terms is None
    return _Article(**row, terms=terms or pack(()))


def _originals(store: ObjectStore, day: str, takedowns: Takedowns) -> list[_Article]:
    """Return the articles of an earlier day that are no copies, in order."""
    members = read_table(store, STORY_MEMBERS.place.path(date=day), STORY_MEMBERS)
    kept = set(members.filter(pl.col("role") != COPY).select("url_hash", "source").rows())
    articles = _read_articles(store, day, takedowns, Counter())
    return [one for one in articles if (one.url_hash, one.source) in kept]


def _write_terms(store: ObjectStore, day: str, articles: Sequence[_Article]) -> None:
    rows = [
        (
            one.url_hash,
            one.language,
            one.domain,
            one.hour,
            one.terms.keys.tobytes(),
            one.terms.weights.tobytes(),
            one.terms.marks.tobytes(),
        )
        for one in articles
    ]
    frame = pl.DataFrame(rows, schema=dict(STORY_TERMS.schema), orient="row")
    write_table(store, STORY_TERMS.place.path(date=day), frame, STORY_TERMS)


class _Known:
    """The stories of the earlier days of a window."""

    def __init__(self, store: ObjectStore, days: Sequence[str]) -> None:
        self._days = days
        frames = [
            read_table(store, STORY_MEMBERS.place.path(date=day), STORY_MEMBERS).with_columns(
                day=pl.lit(number, pl.Int64)
            )
            for number, day in enumerate(days)
        ]
        empty = pl.DataFrame(schema={**STORY_MEMBERS.full_schema, "day": pl.Int64})
        self.members = pl.concat([empty, *frames])
        originals = self.members.filter(pl.col("role") != COPY)
        places = originals.with_columns(place=pl.int_range(pl.len()).over("day"))
        firsts = places.group_by("story_id", maintain_order=True).agg(
            pl.col("day", "place").first().name.prefix("root_")
        )
        rooted = places.join(firsts, on="story_id", how="left", maintain_order="left")
        self._roots = rooted.select("root_day", "root_place").to_numpy()
        self._hashes = rooted.select("url_hash", "story_id")
        counts = dict(places.group_by("day").len().iter_rows())
        self._starts = np.cumsum([0, *(counts.get(number, 0) for number in range(len(days)))])

    def root(self, place: Place) -> Place:
        """Return the first article of the window in the story of an article."""
        day, number = self._roots[self._starts[place[0]] + place[1]]
        return int(day), int(number)

    def named(self, place: Place) -> tuple[str, str]:
        """Return the url_hash of an article and its story."""
        row = self._hashes.row(int(self._starts[place[0]] + place[1]))
        return str(row[0]), str(row[1])

    def story_of(self, hashes: Sequence[str]) -> Mapping[str, str]:
        """Return the story of each of these articles that the window has, the oldest first."""
        found = self.members.filter(pl.col("url_hash").is_in(list(hashes)))
        rows = found.unique("url_hash", keep="first", maintain_order=True)
        return dict(rows.select("url_hash", "story_id").iter_rows())

    def read_stories(self, store: ObjectStore) -> pl.DataFrame:
        """Return the newest row of each story of the earlier days."""
        frames = [read_table(store, STORIES.place.path(date=day), STORIES) for day in self._days]
        rows = pl.concat([pl.DataFrame(schema=STORIES.full_schema), *frames])
        return rows.unique("story_id", keep="last", maintain_order=True)


def _copies(
    store: ObjectStore, days: Sequence[str], articles: Sequence[_Article], known: _Known
) -> Mapping[tuple[str, str], str]:
    """Return the articles of the last day that repeat another, with the url_hash of that one.

    An address that was fetched before is the same article; others repeat the first text of their
    cluster in near_duplicates.
    """
    before = known.story_of([one.url_hash for one in articles])
    firsts = _cluster_firsts(store, days)
    seen: set[str] = set()
    found: dict[tuple[str, str], str] = {}
    for one in articles:
        first = firsts.get((one.url_hash, one.source))
        if one.url_hash in before or one.url_hash in seen:
            found[one.url_hash, one.source] = one.url_hash
        elif first is not None and first != one.url_hash:
            found[one.url_hash, one.source] = first
        seen.add(one.url_hash)
    return found


def _cluster_firsts(store: ObjectStore, days: Sequence[str]) -> Mapping[tuple[str, str], str]:
    """Return the first article of the window in the cluster of each article of the last day."""
    paths = [NEAR_DUPLICATES.place.path(date=day) for day in days]
    stored = [path for path in paths if store.exists(path)]
    frames = [read_table(store, path, NEAR_DUPLICATES) for path in stored]
    if not frames or stored[-1] != paths[-1]:
        return {}
    rows = pl.concat(frames).filter(
        pl.col("jaccard").is_not_null() | pl.col("merged_ids").is_not_null()
    )
    merged = dict(
        rows.filter(pl.col("merged_ids").is_not_null())
        .select("merged_ids", "cluster_id")
        .explode("merged_ids")
        .iter_rows()
    )
    rows = rows.with_columns(pl.col("cluster_id").replace(merged).replace(merged))
    rows = rows.sort("date", "seen_at", "url_hash", "source")
    firsts = dict(rows.group_by("cluster_id").agg(pl.col("url_hash").first()).iter_rows())
    today = rows.filter(pl.col("date") == days[-1])
    chosen = today.select("url_hash", "source", "cluster_id").iter_rows()
    return {(url_hash, source): firsts[cluster] for url_hash, source, cluster in chosen}


def _member_rows(
    articles: Sequence[_Article],
    originals: Sequence[_Article],
    links: Mapping[int, Link],
    copies: Mapping[tuple[str, str], str],
    known: _Known,
) -> list[tuple[object, ...]]:
    """Return the rows of story_members, in order."""
    last = len(known._days)
    stories = dict(known.story_of(list(copies.values())))
    own: list[tuple[str, str | None, int | None, str]] = []
    for number, one in enumerate(originals):
        link = links.get(number)
        if link is None:
            own.append((one.url_hash, None, None, FIRST))
        elif link.to[0] == last:
            other = originals[link.to[1]]
            own.append((own[link.to[1]][0], other.url_hash, link.score, OWN_REPORT))
        else:
            earlier, story = known.named(link.to)
            own.append((story, earlier, link.score, OWN_REPORT))
        stories.setdefault(one.url_hash, own[-1][0])
    placed = {(one.url_hash, one.source): row for one, row in zip(originals, own, strict=True)}
    rows: list[tuple[object, ...]] = []
    for one in articles:
        key = (one.url_hash, one.source)
        if key in placed:
            story, to, score, role = placed[key]
        else:
            first = copies[key]
            story, to, score, role = stories.get(first, first), first, BEST_SCORE, COPY
        rows.append(
            (
                story,
                one.url_hash,
                one.source,
                one.canonical_url,
                one.domain,
                one.language,
                one.title,
                one.fetched_at,
                one.published_at,
                to,
                score,
                role,
            )
        )
    return rows


def _write_changes(store: ObjectStore, day: str, members: pl.DataFrame) -> int:
    """Store which ids the new rows of a day replace; return how many.

    A story goes on in the one that most of its articles of the day are in now; other parts split
    from it. What was written before stays, so that a build that was killed loses nothing.
    """
    path = STORY_MEMBERS.place.path(date=day)
    if not store.exists(path):
        return 0
    before = read_table(store, path, STORY_MEMBERS).select("url_hash", "source", old="story_id")
    both = before.join(members.select("url_hash", "source", "story_id"), on=["url_hash", "source"])
    moved = (
        both.filter(pl.col("old") != pl.col("story_id"))
        .group_by("old", "story_id")
        .len()
        .sort(["old", "len", "story_id"], descending=[False, True, False])
    )
    rows: list[tuple[str, str | None, str | None]] = []
    alive = set(members["story_id"])
    for old, parts in groupby(moved.iter_rows(), key=lambda row: row[0]):
        ids = [story for _, story, _ in parts]
        if old not in alive:
            rows.append((old, ids[0], None))
            ids = ids[1:]
        rows += ((story, None, old) for story in ids)
    if rows:
        changes = STORY_CHANGES.place.path(date=day)
        found = pl.DataFrame(rows, schema=dict(STORY_CHANGES.schema), orient="row")
        if store.exists(changes):
            kept = read_table(store, changes, STORY_CHANGES).select(found.columns)
            found = pl.concat([kept, found]).unique(maintain_order=True)
        write_table(store, changes, found, STORY_CHANGES)
    return len(rows)
