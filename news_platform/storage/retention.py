"""Delete what is older than its dataset keeps it: find its units, show them, and delete them.

The `keep` of a declaration is enough: `expiring_units` finds the old units of such a dataset. Those
of which something else must hold a copy, or must know that they are gone, find their own: a day, a
batch, a bucket. Nothing is deleted before its unit was released: the dataset makes sure that the
copy is whole, and records that the files are gone. An interrupted run leaves files that the next
one deletes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta

from news_platform.errors import Conflict, StorageError
from news_platform.storage.engines import FEW_UNITS, FileEngine, require_small_share
from news_platform.storage.objects.store import ObjectInfo, ObjectStore


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
    release: Callable[[], None] = lambda: None

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
        counted = {"objects": sum(self.objects.values()), "keys": sorted(self.objects)}
        return {**asdict(self), **counted}


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
    return replace(planned(dataset, left), failed=failed)


def expiring_units(engine: FileEngine, *, keep_days: int, now: datetime) -> dict[str, ExpiringUnit]:
    """Return the units whose newest file was written more than `keep_days` ago.

    Too many at once stay: a wrong clock makes everything look old.
    """
    stored, before = engine.files(), now - timedelta(days=keep_days)
    old = {
        unit: files
        for unit, files in stored.items()
        if max(info.modified_at for info in files) < before
    }
    waiting = ""
    try:
        cure = "check the clock and how long it is kept; go down step by step"
        losses = dict.fromkeys(old, 1)
        require_small_share(
            engine.dataset.name, losses, len(stored), few=FEW_UNITS, unit="units", cure=cure
        )
    except StorageError as error:
        waiting = str(error)
    return {unit: ExpiringUnit(files, waiting=waiting) for unit, files in old.items()}
