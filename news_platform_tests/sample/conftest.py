"""What the tests of the sample world share: one built world, and its parts by name."""

from collections.abc import Mapping

import pytest

from news_platform.sample.build import World, articles_of, build_world
from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.sites import Site, build_sites
from news_platform.sample.world import SEED


@pytest.fixture(scope="session")
def world() -> World:
    """Return the whole default world, in memory."""
    return build_world(SEED)


@pytest.fixture(scope="session")
def articles() -> tuple[SampleArticle, ...]:
    """Return every article of the default world."""
    return articles_of(SEED)


@pytest.fixture(scope="session")
def sites(articles: tuple[SampleArticle, ...]) -> Mapping[str, Site]:
    """Return what every host answers."""
    return build_sites(articles)
