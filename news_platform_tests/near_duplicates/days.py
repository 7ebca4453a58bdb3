"""A root whose days of articles are stored and clustered one after the other."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from news_platform.corpus.pipeline import feed_dataset
from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.near_duplicates.pipeline import build_day, wanted_days
from news_platform.near_duplicates.reading import read_clusters
from news_platform.storage.commit.markers import stale_partitions
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.storage.units import built_inputs
from news_platform_tests.corpus.articles import article, store_articles

START = datetime(2025, 11, 1, 9, tzinfo=UTC)


def day(number: int) -> str:
    """Return the day that is so many days after the first."""
    return (START + timedelta(days=number)).date().isoformat()


class Corpus:
    """A root whose days are stored and clustered one after the other."""

    def __init__(self, store: ObjectStore, scratch: Path, window: int = 14) -> None:
        self.store, self.scratch, self.window = store, scratch, window

    def add(self, number: int, texts: Mapping[str, str], *, is_feed: bool = False) -> None:
        """Store the articles of a day, by the name of their site."""
        moment = START + timedelta(days=number)
        source = "feed" if is_feed else "crawl"
        rows = [
            article(f"https://{name}.example/", text, fetched_at=moment, source=source)
            for name, text in texts.items()
        ]
        dataset = feed_dataset(self.store) if is_feed else None
        store_articles(self.store, day(number), rows, self.scratch, dataset=dataset)

    def build(self, *numbers: int) -> None:
        """Cluster some days, in this order."""
        for number in numbers:
            build_day(self.store, day(number), days=self.window)

    def clusters(self, *numbers: int) -> dict[str, str]:
        """Return the clusters of some days as they are now, by the name of the site."""
        rows = read_clusters(self.store, [day(number) for number in numbers])
        names = rows["uri"].str.extract("https://(.*).example")
        return dict(zip(names, rows["cluster_id"], strict=True))

    def rows(self, number: int) -> pl.DataFrame:
        """Return what is stored of a day, with the names that it was built with."""
        return read_table(self.store, NEAR_DUPLICATES.place.path(date=day(number)), NEAR_DUPLICATES)

    def stale(self) -> set[str]:
        """Return the days that are out of date."""
        wanted = wanted_days(self.store, days=self.window)
        return set(stale_partitions(wanted, built_inputs(self.store, NEAR_DUPLICATES)))
