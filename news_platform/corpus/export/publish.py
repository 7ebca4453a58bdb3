"""Put a finished export in its place: a local folder, or a version of a month under a root.

A reader of the folder or of the current version sees the old export or the new one, whenever the
writer dies.
"""

import ctypes
import hashlib
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from news_platform.corpus.export.card import ExportManifest, is_ours
from news_platform.corpus.export.filtering import ExportSelection
from news_platform.corpus.export.pipeline import EmptySelection, ExportOptions, export_corpus
from news_platform.corpus.export.receipts import MANIFEST
from news_platform.datasets.corpus import CURRENT, DELTA_TABLES, TRAINING_EXPORT, export_folder
from news_platform.errors import InputError, StorageError
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import (
    read_inputs,
    write_marker,
)
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.build_filters import build_obeying
from news_platform.takedowns.match import Takedowns

_PARTIAL = ".partial-"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_VERSION_HEX = 12


def require_replaceable(output: Path) -> None:
    """Raise InputError unless the folder can be made, is empty, or holds an earlier export."""
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise InputError(f"{str(output)!r} is not a folder: choose another one", thing=str(output))
    if not output.parent.is_dir():
        raise InputError(
            f"there is no folder {str(output.parent)!r}: create it first", thing=str(output)
        )
    if output.is_dir() and any(output.iterdir()):
        manifest = output / MANIFEST
        if not (manifest.is_file() and is_ours(manifest.read_bytes())):
            raise InputError(
                f"{str(output)!r} exists and is not an export: nothing was written; "
                "choose another folder",
                thing=str(output),
            )


@contextmanager
def replacing_folder(output: Path) -> Iterator[Path]:
    """Yield an empty folder beside the output; afterwards it takes the output's place."""
    output = output.absolute()
    require_replaceable(output)
    # Left by an export that was killed.
    for left in output.parent.glob(f"{_PARTIAL}{output.name}-*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = output.parent / f"{_PARTIAL}{output.name}-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    try:
        yield folder
        _swap(folder, output)
    finally:
        # By now the earlier export, or an unfinished one.
        shutil.rmtree(folder, ignore_errors=True)


def _swap(folder: Path, output: Path) -> None:
    """Give the folder the name of the output in one step, if the system can."""
    if not output.exists():
        folder.rename(output)
    elif not _exchanged(folder, output):
        aside = folder.with_name(f"{folder.name}-old")
        output.rename(aside)
        folder.rename(output)
        shutil.rmtree(aside, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders atomically; return False where that is not possible."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    names = (os.fsencode(one), os.fsencode(other))
    done: int = rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)
    return done == 0


def publish_version(store: ObjectStore, month: str, folder: Path) -> str:
    """Store an export under a root and make it the current version of the month; return it.

    Versions are named by their content. The version before stays for its readers until the next
    export; older ones are deleted.
    """
    version = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()[:_VERSION_HEX]
    base, before = export_folder(month), current_version(store, month)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        # The manifest last: a version that has one is complete.
        if path.is_file() and name != MANIFEST:
            store.put(f"{base}/{version}/{name}", path)
    store.put(f"{base}/{version}/{MANIFEST}", folder / MANIFEST)
    store.put(f"{base}/{CURRENT}", version.encode())
    kept = (*tuple(f"{base}/{name}/" for name in (version, before) if name), f"{base}/{CURRENT}")
    store.delete([info.path for info in store.list(base) if not info.path.startswith(kept)])
    return version


def delete_older_versions(store: ObjectStore, month: str) -> None:
    """Delete every version of a month but the current one at once, also from under its readers."""
    base = export_folder(month)
    kept = (f"{base}/{current_version(store, month)}/", f"{base}/{CURRENT}")
    store.delete([info.path for info in store.list(base) if not info.path.startswith(kept)])


def current_version(store: ObjectStore, month: str) -> str | None:
    """Return the name of the current version of a month, or None without one."""
    try:
        return store.read(f"{export_folder(month)}/{CURRENT}").decode()
    except NotFound:
        return None


def version_files(store: ObjectStore, month: str) -> list[str]:
    """Return the paths of the shards of the current version of a month."""
    version = current_version(store, month)
    if version is None:
        raise StorageError(f"training_export has no month {month!r}", thing=month)
    folder = f"{export_folder(month)}/{version}/data"
    return [info.path for info in store.list(folder)]


def remove_month(store: ObjectStore, month: str) -> None:
    """Delete all versions of a month, the pointer first."""
    base = export_folder(month)
    store.delete([f"{base}/{CURRENT}"])
    store.delete([info.path for info in store.list(base)])


@dataclass(frozen=True, slots=True)
class MonthReport:
    """The manifest of a month's export, None if no article of the month may be exported."""

    month: str
    version: str | None
    manifest: ExportManifest | None


def build_month(
    store: ObjectStore,
    month: str,
    *,
    selection: ExportSelection,
    options: ExportOptions,
) -> MonthReport:
    """Export a month and make it the current version; `selection` is completed with its days.

    Articles that are taken down are left out. A month without days stays as it is.
    """
    inputs = wanted_inputs(store, TRAINING_EXPORT, selection).get(month, REMOVED)
    if inputs == REMOVED:
        return MonthReport(month, None, None)
    days = {
        day
        for table in DELTA_TABLES
        for day in read_inputs(store, table.name)
        if day.startswith(month)
    }

    def export(found: Takedowns) -> MonthReport:
        obeying = replace(
            options,
            covers=found.covers_export,
            takedowns=found.fingerprint,
            lists=found.list_versions(),
        )
        return _exported(store, month, replace(selection, days=sorted(days)), obeying)

    delete_older = partial(delete_older_versions, store, month)
    report = build_obeying(store, export, after_repeat=delete_older)
    body = report.manifest.as_json() if report.manifest else {"articles": 0}
    write_marker(
        store,
        TRAINING_EXPORT.name,
        month,
        inputs=inputs,
        report={**body, "version": report.version},
    )
    return report


def _exported(
    store: ObjectStore, month: str, selection: ExportSelection, options: ExportOptions
) -> MonthReport:
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        try:
            manifest = export_corpus(
                store, Path(name), selection, replace(options, require_languages=False)
            )
        except EmptySelection:
            remove_month(store, month)
            return MonthReport(month, None, None)
        return MonthReport(month, publish_version(store, month, Path(name)), manifest)
