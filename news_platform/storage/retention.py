"""Pure: what a retention policy would delete from one dataset, and what was deleted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

from news_platform.storage.objects.store import ObjectInfo


@dataclass(frozen=True, slots=True)
class Expiry:
    """What goes from a dataset, by its key: a day, a batch, or whatever the dataset is made of.

    `waiting` has the keys that stay for now, each with the reason, `failed` those whose copy turned
    out to be damaged. `refused` has those that nothing else holds: a policy that would delete them
    is wrong as a whole.
    """

    dataset: str
    objects: Mapping[str, int] = field(default_factory=dict)
    bytes: int = 0
    waiting: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return the plan as a JSON document."""
        return {
            "dataset": self.dataset,
            "objects": sum(self.objects.values()),
            "bytes": self.bytes,
            "keys": sorted(self.objects),
            "waiting": dict(self.waiting),
            "failed": dict(self.failed),
            "refused": dict(self.refused),
        }


def expiry_of(dataset: str, found: Mapping[str, Iterable[ObjectInfo]]) -> Expiry:
    """Count the objects that go, by key."""
    infos = {key: list(each) for key, each in found.items()}
    size = sum(info.size_bytes for each in infos.values() for info in each)
    return Expiry(dataset, {key: len(each) for key, each in infos.items()}, size)


def last_expired_day(today: date, keep_days: int) -> date:
    """Return the newest day that is older than `keep_days`."""
    return today - timedelta(days=keep_days + 1)
