"""What the tests of the sample world share: one built world, and its parts by name."""

from collections.abc import Mapping

import pytest

from news_platform.sample.newsroom import SampleArticle, publish
from news_platform.sample.sites import Site, build_sites
from news_platform.sample.world import build_world


@pytest.fixture(scope="session")
def world() -> Mapping[str, bytes]:
    """Return the whole world, in memory."""
    return build_world()


@pytest.fixture(scope="session")
def articles() -> tuple[SampleArticle, ...]:
    """Return every article of the world."""
    return publish()


@pytest.fixture(scope="session")
def sites(articles: tuple[SampleArticle, ...]) -> Mapping[str, Site]:
    """Return what every host answers."""
    return build_sites(articles)
