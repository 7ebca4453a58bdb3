"""Resources over a store that a test has opened, and a clock that a test sets."""

from dataclasses import dataclass
from datetime import datetime

from news_platform.resources import Clock, Resources, open_resources
from news_platform.settings import Settings
from news_platform.storage.objects.store import ObjectStore


def over(store: ObjectStore) -> Resources:
    """Return the resources of the root that is this store."""
    return open_resources(Settings(root=store.url))


@dataclass(frozen=True, slots=True)
class SteppedClock(Clock):
    """A clock that stands at one moment."""

    at: datetime

    def now(self) -> datetime:
        return self.at
