"""The root that most tests of the domain store use."""

import pytest

from news_platform.storage.objects.store import ObjectStore


@pytest.fixture
def root(local_store: ObjectStore) -> ObjectStore:
    """Return an empty local root."""
    return local_store
