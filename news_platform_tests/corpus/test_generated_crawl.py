"""A generated crawl: whatever order days are rebuilt in, all that follows equals brute force.

Addresses change their texts, return, move and fail; WARCs come late, are collected again or vanish;
pages are taken down, and raw_news expires at random. After each change all stale units are rebuilt
in a random order, and corpus, clusters, index and export are computed from the pages alone.
"""

import random
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest

from news_platform.composition.takedown_parts import apply_root
from news_platform.corpus.crawl_pages import CorpusOptions
from news_platform.corpus.export.filtering import ExportSelection
from news_platform.corpus.export.pipeline import ExportOptions, export_corpus
from news_platform.corpus.pipeline import build_crawl_day, crawl_dataset
from news_platform.datasets.corpus import CRAWL_ARTICLES, SEARCH_INDEX
from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.domain_store.fragments import iter_warc_frames
from news_platform.domain_store.staging.rows import day_input
from news_platform.domain_store.staging.stage import stage_input
from news_platform.near_duplicates import pipeline as clusters
from news_platform.near_duplicates.reading import read_clusters
from news_platform.resources import Resources
from news_platform.search import pipeline as search
from news_platform.search.index_engine import IndexEngine, iter_hits
from news_platform.search.publish import place_of
from news_platform.setting_sections.features import CorpusSettings
from news_platform.settings import Settings
from news_platform.storage.commit.collected import (
    expire_collected,
    list_collected_day,
    parse_listed,
    retract_collected,
)
from news_platform.storage.commit.markers import read_inputs, read_markers, stale_partitions
from news_platform.storage.delta import DeltaEngine
from news_platform.storage.engines import ParquetEngine, remove_gone
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.units import stale_units
from news_platform.text.normalize import shingles
from news_platform_tests.corpus.hostile import QUICK
from news_platform_tests.corpus.pages import StoredPage, collect_pages
from news_platform_tests.domain_store.pages import SMALL, build
from news_platform_tests.near_duplicates.stories import story, variant
from news_platform_tests.takedowns.asked import ask

WINDOW = 4
FIRST = date(2025, 10, 20)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
OPTIONS = CorpusOptions(target=QUICK, workers=1)
Key = tuple[str, str]
"""The day and the address of an article."""


@dataclass(frozen=True, slots=True)
class Expected:
    """An article as brute force finds it."""

    text: str
    fetched_at: str


class GeneratedCrawl:
    """A root, the pages of every WARC in it, and the addresses that are taken down."""

    def __init__(self, folder: Path, *, days: int, seed: int) -> None:
        self.store: ObjectStore = open_store(str(folder / "root"))
        self.days = [(FIRST + timedelta(days=number)).isoformat() for number in range(days)]
        self.warcs: dict[tuple[str, str], list[StoredPage]] = {}
        self.texts: dict[str, str] = {}
        self.taken_down: set[str] = set()
        self._chance = random.Random(seed)
        self._serial = 0
        settings = Settings(
            root=self.store.url, corpus=CorpusSettings.model_construct(cluster_days=WINDOW)
        )
        self.resources = Resources(settings)
        for day in self.days:
            self.add(day)

    def add(self, day: str, warc: str = "") -> None:
        """Collect a WARC of a day, or replace one by other pages."""
        self._serial += 1
        name = warc or f"CC-NEWS-{day.replace('-', '')}000000-{self._serial:05}.warc.gz"
        pages = [self._page(day) for _ in range(self._chance.randint(3, 6))]
        self.warcs[day, name] = pages
        collect_pages(self.store, pages, day=day, warc=name)

    def _page(self, day: str) -> StoredPage:
        """Return a page: an address has any text on any day, and texts move between addresses."""
        uri = f"https://site{self._chance.randrange(4)}.example/{self._chance.randrange(4)}"
        seed, changed = self._chance.randrange(8), self._chance.choice((0, 0, 4, 9))
        text = variant(seed, changed=changed) if changed else story(seed)
        kind = self._chance.random()
        if kind < 0.1:
            text = f"a short text {seed}"
        html = f"<article><p>{text}</p></article>" if kind < 0.8 else "<h1>Not found</h1>"
        self.texts[html] = text
        second = self._chance.randrange(86_400)
        at = datetime.fromisoformat(f"{day}T00:00:00+00:00") + timedelta(seconds=second)
        return StoredPage(uri, html, at.isoformat())

    def change(self) -> None:
        """Change something, as time and people do."""
        held = sorted(self.warcs)
        day, warc = self._chance.choice(held)
        match self._chance.randrange(5):
            case 0:
                self.add(self._chance.choice(self.days))
            case 1:
                self.add(day, warc)
            case 2 if len(held) > len(self.days) // 2:
                del self.warcs[day, warc]
                retract_collected(self.store, day=date.fromisoformat(day), warc=warc)
            case 3:
                self.expire(day)
            case _:
                self.take_down()

    def expire(self, day: str) -> None:
        """Delete the raw_news files of a day, whose rows the domain store holds."""
        rows = day_input(self.store, day)
        stage_input(rows, store=self.store, batch=day, options=SMALL, now=NOW)
        build(self.store)
        found = list_collected_day(self.store, date.fromisoformat(day))
        markers = [one for one in parse_listed(self.store, found) if not one.is_expired]
        expire_collected(self.store, markers, expired_at=NOW.isoformat())
        self.store.delete(path for marker in markers for path in marker.news_paths().values())

    def take_down(self) -> None:
        """Remove one address for good, but not most of the crawl."""
        if len(self.taken_down) < 3:
            uri = f"https://site{self._chance.randrange(4)}.example/{self._chance.randrange(4)}"
            self.taken_down.add(uri)
            ask(self.store, "url", uri)
            assert apply_root(self.resources).left == {}

    def rebuild(self) -> None:
        """Rebuild what is stale, one unit after the other in a random order."""
        engines = (
            DeltaEngine(self.store, CRAWL_ARTICLES),
            ParquetEngine(self.store, NEAR_DUPLICATES),
            IndexEngine(self.store, NOW),
        )
        while stale := list(self._stale()):
            name, unit = self._chance.choice(stale)
            if name == CRAWL_ARTICLES.name:
                read = partial(iter_warc_frames, self.store)
                build_crawl_day(self.store, unit, options=OPTIONS, expired_rows=read)
            elif name == NEAR_DUPLICATES.name:
                clusters.build_day(self.store, unit, days=WINDOW)
            else:
                search.build_day(self.store, unit, now=NOW)
            for engine in engines:
                remove_gone(engine)

    def _stale(self) -> Iterator[Key]:
        wanted = clusters.wanted_days(self.store, days=WINDOW)
        held = read_inputs(self.store, NEAR_DUPLICATES.name)
        yield from (
            (CRAWL_ARTICLES.name, d) for d in stale_units(self.store, CRAWL_ARTICLES, OPTIONS)
        )
        yield from ((NEAR_DUPLICATES.name, day) for day in stale_partitions(wanted, held))
        yield from ((SEARCH_INDEX.name, day) for day in stale_units(self.store, SEARCH_INDEX))

    def expected(self) -> dict[Key, Expected]:
        """Return the articles of every day: of each address the one that was fetched last."""
        found: dict[Key, tuple[str, str, int, Expected]] = {}
        for (day, warc), pages in self.warcs.items():
            for number, page in enumerate(pages):
                if "<article>" in page.html and page.uri not in self.taken_down:
                    article = Expected(self.texts[page.html], page.fetched_at)
                    new = (page.fetched_at, warc, number, article)
                    found[day, page.uri] = max(found.get((day, page.uri), new), new, key=_order)
        return {key: one[3] for key, one in sorted(found.items())}


def _order(found: tuple[str, str, int, Expected]) -> tuple[str, str, int]:
    return found[:3]


def expected_clusters(articles: Mapping[Key, Expected]) -> dict[Key, Key]:
    """Return the first member of the cluster of every article, by comparing all pairs."""
    first = {key: key for key in articles}

    def root(key: Key) -> Key:
        return key if first[key] == key else root(first[key])

    sets = {text: shingles(text, 3) for text in {one.text for one in articles.values()}}
    for one, other in combinations(articles, 2):
        apart = date.fromisoformat(other[0]) - date.fromisoformat(one[0])
        left, right = sets[articles[one].text], sets[articles[other].text]
        is_near = apart.days < WINDOW and min(len(left), len(right)) >= 18
        if is_near and len(left & right) >= 0.8 * len(left | right):
            roots = sorted((root(one), root(other)))
            first[roots[1]] = roots[0]
    return {key: root(key) for key in articles}


def expected_export(articles: Mapping[Key, Expected]) -> set[Key]:
    """Return the first article of each text, and of these the first of each cluster."""
    named = expected_clusters(articles)
    texts: set[str] = set()
    used: set[Key] = set()
    chosen: set[Key] = set()
    for key in sorted(articles, key=lambda key: articles[key].fetched_at):
        if articles[key].text not in texts:
            texts.add(articles[key].text)
            if named[key] not in used:
                used.add(named[key])
                chosen.add(key)
    return chosen


def require_equal(crawl: GeneratedCrawl) -> None:
    """Compare all that is stored with what the pages give."""
    store, articles = crawl.store, crawl.expected()
    rows = crawl_dataset(store).scan().select("day", "canonical_url", "text").collect()
    assert {(day, url): text for day, url, text in rows.iter_rows()} == {
        key: one.text for key, one in articles.items()
    }
    assert rows.height == len(articles)
    named = read_clusters(store, crawl.days).select("date", "uri", "cluster_id")
    groups: dict[str, set[Key]] = {}
    for day, url, name in named.iter_rows():
        groups.setdefault(name, set()).add((day, url))
    wanted: dict[Key, set[Key]] = {}
    for key, first in expected_clusters(articles).items():
        wanted.setdefault(first, set()).add(key)
    assert sorted(map(sorted, groups.values())) == sorted(map(sorted, wanted.values()))
    indexed = {
        (hit.day, hit.canonical_url)
        for day, marker in read_markers(store, SEARCH_INDEX.name).items()
        for hit in iter_hits(store, place_of(marker))
        if hit.day == day
    }
    assert indexed == articles.keys()
    assert exported(crawl) == expected_export(articles)


def exported(crawl: GeneratedCrawl) -> set[Key]:
    with tempfile.TemporaryDirectory() as folder:
        options = ExportOptions(clusters_of=partial(read_clusters, crawl.store))
        export_corpus(crawl.store, Path(folder), ExportSelection(days=crawl.days), options)
        rows = pl.read_parquet(sorted((Path(folder) / "data").iterdir()))
        return set(rows.select("day", "url").iter_rows())


def run_orders(folder: Path, *, days: int, orders: int, seed: int) -> None:
    """Change the crawl and rebuild it as often as there are orders, and compare every time."""
    crawl = GeneratedCrawl(folder, days=days, seed=seed)
    for _ in range(orders):
        crawl.rebuild()
        require_equal(crawl)
        crawl.change()


def test_three_orders_of_a_short_crawl_equal_brute_force(tmp_path: Path) -> None:
    run_orders(tmp_path, days=4, orders=3, seed=3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_two_hundred_orders_of_sixty_days_equal_brute_force(tmp_path: Path, seed: int) -> None:
    run_orders(tmp_path, days=60, orders=40, seed=100 + seed)
