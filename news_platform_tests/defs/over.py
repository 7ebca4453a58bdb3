"""Resources over a store that a test has opened, and a clock that a test sets."""

from dataclasses import dataclass
from datetime import datetime

from news_platform.resources import Clock, Resources, open_resources
from news_platform.settings import Settings
from news_platform.storage.commit.root import claim_root, read_world, resume
from news_platform.storage.objects.store import ObjectStore, open_store


def over(store: ObjectStore) -> Resources:
    """Return the resources of the root that is this store; a new one is not paused."""
    return open_resources(Settings(root=resumed(store.url)))


def resumed(root: str) -> str:
    """Make a new real root that an operator has resumed, and return it."""
    store = open_store(root)
    if read_world(store) is None:
        claim_root(store, sample=False)
        resume(store)
    return root


@dataclass(frozen=True, slots=True)
class SteppedClock(Clock):
    """A clock that stands at one moment."""

    at: datetime

    def now(self) -> datetime:
        return self.at
