"""Articles about a few events in several languages, stored as days of a root."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.datasets.stories import STORIES, STORY_MEMBERS
from news_platform.near_duplicates import pipeline as near_duplicates
from news_platform.storage.commit.markers import stale_partitions
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.storage.units import built_inputs
from news_platform.stories.pipeline import build_day, linked_days, wanted_days
from news_platform.web.urls import url_hash
from news_platform_tests.corpus.articles import article, store_articles

START = datetime(2025, 11, 1, 9, tzinfo=UTC)

Written = tuple[str, str, str]
"""Language, title and text."""

BRIDGE = (
    "en",
    "Three dead as Kalderin bridge collapses in Ostrava storm",
    "Three people died and 17 were injured when the Kalderin bridge near Ostrava collapsed during "
    "storm Maren on Saturday, police said. Mayor Petra Holubova said rescue workers searched the "
    "Odra river for 4 missing drivers. The bridge, built in 1974, carried 12,400 cars a day. "
    "Engineer Tomas Vrba had warned about cracks in a report of 2023.",
)
BRIDGE_AGAIN = (
    "en",
    "Ostrava bridge collapse: rescuers search for missing drivers",
    "Rescue workers in Ostrava were searching the Odra river for missing drivers after the "
    "Kalderin bridge collapsed in storm Maren, killing three people and leaving 17 injured. Mayor "
    "Petra Holubova ordered an inquiry. Tomas Vrba, an engineer, found cracks in the bridge "
    "in 2023. Some 12,400 cars used the bridge of 1974 every day, officials said.",
)
BRIDGE_GERMAN = (
    "de",
    "Drei Tote nach Einsturz der Kalderin-Brücke in Ostrava",
    "Beim Einsturz der Kalderin-Brücke bei Ostrava sind während des Sturms Maren drei Menschen ums "
    "Leben gekommen, 17 wurden verletzt, teilte die Polizei mit. Bürgermeisterin Petra Holubova "
    "sagte, Rettungskräfte suchten in der Odra nach 4 vermissten Fahrern. Über die Brücke aus dem "
    "Jahr 1974 fuhren täglich 12.400 Autos. "
    "Der Ingenieur Tomas Vrba hatte 2023 vor Rissen gewarnt.",
)
BRIDGE_LATER = (
    "en",
    "Engineer Vrba questioned over Kalderin bridge collapse in Ostrava",
    "Prosecutors questioned engineer Tomas Vrba on Monday about cracks in the Kalderin bridge near "
    "Ostrava, which collapsed in storm Maren and killed three people. Mayor Petra Holubova said "
    "the city paid 2.6 million for repairs to the firm Stavmost. The Odra river is closed "
    "to boats. 17 people were injured when the bridge of 1974 fell.",
)
CHESS = (
    "en",
    "Ilya Demchenko wins chess title in Almaty after tie-break",
    "Ilya Demchenko won the world junior chess title in Almaty, beating Sofia Lindqvist in a rapid "
    "tie-break after 11 draws. The 19-year-old from Lviv takes home a prize of 75,000 dollars and "
    "plays in the Candidates tournament in Toronto next spring, organisers said.",
)
VINEYARD = (
    "fr",
    "Le gel détruit un tiers des vignes autour de Saint-Aubrac",
    "Le gel tardif a détruit près d'un tiers des vignes autour de Saint-Aubrac, selon la chambre "
    "d'agriculture. La vigneronne Colette Marchandeau estime ses pertes à 340 000 euros. Le préfet "
    "a promis une aide pour les 58 exploitations touchées par la nuit du 3 avril.",
)


def day(number: int) -> str:
    """Return the day that is so many days after the first."""
    return (START + timedelta(days=number)).date().isoformat()


def hash_of(name: str) -> str:
    """Return the url_hash of the article of a site."""
    return url_hash(f"https://{name}.example/")


class Events:
    """A root whose days of articles are stored and linked."""

    def __init__(self, store: ObjectStore, scratch: Path) -> None:
        self.store, self.scratch = store, scratch

    def add(self, number: int, written: Mapping[str, Written]) -> None:
        """Store the articles of a day, by the name of their site, one minute apart."""
        rows = []
        for minute, (name, (language, title, text)) in enumerate(written.items()):
            moment = START + timedelta(days=number, minutes=minute)
            given = {"language": language, "title": title, "published_at": moment}
            rows.append(article(f"https://{name}.example/", text, fetched_at=moment, **given))
        store_articles(self.store, day(number), rows, self.scratch)

    def build(self, *numbers: int) -> None:
        """Cluster and link some days, in this order."""
        for number in numbers:
            near_duplicates.build_day(self.store, day(number), days=14)
            build_day(self.store, day(number))

    def settle(self) -> None:
        """Build what is out of date until nothing is."""
        for _ in range(40):
            texts = near_duplicates.wanted_days(self.store, days=14)
            built = built_inputs(self.store, NEAR_DUPLICATES)
            for one in sorted(stale_partitions(texts, built)):
                near_duplicates.build_day(self.store, one, days=14)
            stale = self.stale()
            if not stale:
                return
            build_day(self.store, min(stale))
        raise AssertionError(f"still stale: {self.stale()}")

    def stale(self) -> set[str]:
        """Return the days that are out of date."""
        return set(stale_partitions(wanted_days(self.store), built_inputs(self.store, STORIES)))

    def members(self, number: int) -> pl.DataFrame:
        """Return the articles of a day with their stories."""
        return read_table(self.store, STORY_MEMBERS.place.path(date=day(number)), STORY_MEMBERS)

    def stories(self, number: int) -> pl.DataFrame:
        """Return the stories of a day."""
        return read_table(self.store, STORIES.place.path(date=day(number)), STORIES)

    def tables(self) -> dict[str, tuple[list[tuple[object, ...]], list[tuple[object, ...]]]]:
        """Return all that is published, by day."""
        found = {}
        for one in linked_days(self.store):
            members = read_table(self.store, STORY_MEMBERS.place.path(date=one), STORY_MEMBERS)
            stories = read_table(self.store, STORIES.place.path(date=one), STORIES)
            found[one] = (members.rows(), stories.rows())
        return found
