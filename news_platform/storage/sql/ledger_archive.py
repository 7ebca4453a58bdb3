"""The file of a backup: a zip with a ledger as one SQLite file, and `manifest.json`.

The manifest has the SHA-256 of that file, so that a backup can be verified without a database.
"""

import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from news_platform.errors import NewsPlatformError, StorageError, require_format

MANIFEST, LEDGER = "manifest.json", "ledger.sqlite"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class LedgerManifest:
    """What a backup holds: the schema's revision, its moment (ISO 8601), and rows by table."""

    revision: str
    world: str
    made_at: str
    tables: Mapping[str, int]
    sha256: str = ""

    @property
    def rows(self) -> int:
        """Return the number of rows of all tables."""
        return sum(self.tables.values())


def write_archive(path: Path, ledger: Path, manifest: LedgerManifest) -> LedgerManifest:
    """Write a backup of a SQLite file; it gets its name only when it is whole."""
    building = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        complete = replace(manifest, sha256=_sha256(ledger))
        with zipfile.ZipFile(building, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            file.write(ledger, LEDGER)
            file.writestr(MANIFEST, json.dumps({"format": _FORMAT, **asdict(complete)}, indent=2))
        with unpacked(building, folder=path.parent), building.open("rb") as stored:
            os.fsync(stored.fileno())
        building.replace(path)
    except OSError as error:
        cause = error.strerror or str(error)
        message = f"cannot write the backup {str(path)!r}: {cause}"
        raise StorageError(message, thing=str(path)) from error
    finally:
        building.unlink(missing_ok=True)
    return complete


def read_manifest(path: Path) -> LedgerManifest:
    """Return what a backup says of itself; raise StorageError if the file is not a backup."""
    with _opened(path) as file:
        return _manifest(file, path)


@contextmanager
def unpacked(path: Path, *, folder: Path | None = None) -> Iterator[Path]:
    """Unpack the ledger of a backup for a while; raise StorageError if it is not as it was."""
    with _opened(path) as file, tempfile.TemporaryDirectory(dir=folder, prefix=".ledger-") as held:
        manifest, ledger = _manifest(file, path), Path(held) / LEDGER
        try:
            with file.open(LEDGER) as source, ledger.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except (zipfile.BadZipFile, KeyError, EOFError) as error:
            raise _damaged(path, f"{LEDGER}: {error}") from error
        if _sha256(ledger) != manifest.sha256:
            raise _damaged(path, f"{LEDGER} differs from {MANIFEST}")
        yield ledger


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        file = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise _damaged(path, f"it cannot be opened as a zip: {error}") from error
    with file:
        yield file


def _manifest(file: zipfile.ZipFile, path: Path) -> LedgerManifest:
    try:
        document = json.loads(file.read(MANIFEST))
        require_format(document.pop("format", None), _FORMAT, path=str(path))
        return LedgerManifest(**document)
    except NewsPlatformError:
        raise
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise _damaged(path, f"cannot read {MANIFEST}: {error}") from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(path: Path, cause: str) -> StorageError:
    message = f"{str(path)!r} is not a whole backup of a ledger: {cause}; use another backup"
    return StorageError(message, thing=str(path))
