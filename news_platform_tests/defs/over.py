"""Resources over a store that a test has opened."""

from news_platform.resources import Resources, open_resources
from news_platform.settings import Settings
from news_platform.storage.objects.store import ObjectStore


def over(store: ObjectStore) -> Resources:
    """Return the resources of the root that is this store."""
    return open_resources(Settings(root=store.url))
