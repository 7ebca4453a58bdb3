"""Delete what is older than its dataset keeps it: find its units, show them, and delete them.

Each dataset finds its own old units: a day, a batch, a bucket. All else is the same for every
dataset. Nothing is deleted before its unit was released: the dataset makes sure that another copy
is whole, where there must be one, and records that the files are gone. An interrupted run leaves
files that the next one deletes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from news_platform.errors import Conflict, StorageError
from news_platform.storage.objects.store import ObjectInfo, ObjectStore


def _nothing() -> None:
    """Release a unit of which nothing is recorded."""


@dataclass(frozen=True, slots=True)
class ExpiringUnit:
    """The files of a unit that is older than its dataset keeps it.

    `waiting` says why it stays for now. `refused` says that nothing else holds it: a policy that
    would delete it is wrong as a whole. `release` raises StorageError if the copy that remains is
    damaged, and Conflict if the unit is being changed; else it records that the files are gone.
    """

    files: Sequence[ObjectInfo]
    waiting: str = ""
    refused: str = ""
    release: Callable[[], None] = _nothing

    @property
    def stays(self) -> bool:
        """Return whether the unit is not to be deleted now."""
        return bool(self.waiting or self.refused)


@dataclass(frozen=True, slots=True)
class Expiry:
    """What goes from a dataset, by unit, and what stays for now, failed or is refused, and why."""

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


def planned(dataset: str, units: Mapping[str, ExpiringUnit]) -> Expiry:
    """Return what `apply_retention` would delete."""
    going = {key: unit.files for key, unit in units.items() if not unit.stays and unit.files}
    return Expiry(
        dataset,
        {key: len(files) for key, files in going.items()},
        sum(info.size_bytes for files in going.values() for info in files),
        waiting={key: unit.waiting for key, unit in units.items() if unit.waiting},
        refused={key: unit.refused for key, unit in units.items() if unit.refused},
    )


def apply_retention(store: ObjectStore, dataset: str, units: Mapping[str, ExpiringUnit]) -> Expiry:
    """Delete the units that do not stay; one place for every dataset, whatever its engine."""
    left: dict[str, ExpiringUnit] = {}
    failed: dict[str, str] = {}
    for key, unit in units.items():
        left[key] = unit
        if unit.stays:
            continue
        try:
            unit.release()
        except Conflict as error:
            left[key] = ExpiringUnit(unit.files, waiting=f"it is being changed: {error}")
        except StorageError as error:
            failed[key] = str(error)
            del left[key]
        else:
            store.delete(info.path for info in unit.files)
    done = planned(dataset, left)
    return Expiry(dataset, done.objects, done.bytes, done.waiting, failed, done.refused)


def last_expired_day(today: date, keep_days: int) -> date:
    """Return the newest day that is older than `keep_days`."""
    return today - timedelta(days=keep_days + 1)
