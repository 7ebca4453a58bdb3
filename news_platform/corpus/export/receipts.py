"""What lets a stranger check an export: statements, a signature, sketches, and the script.

The manifest lists every file with its SHA-256 and is signed as a whole: the signature covers rows,
statements, papers and the versions of the takedowns. `verify_export.py` is copied into the
export; it uses none of our code. Sketches are a column, so that they go with their row.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from news_platform.corpus.export.filtering import QuotedStatement
from news_platform.errors import ConfigError, InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
STATEMENTS = "statements.jsonl"
SCRIPT = "verify_export.py"
# One byte each of as many MinHashes: 88 characters in Base64.
SKETCH_HASHES = 64
# Equal bytes from which two texts count as one: 96 % of pairs with a Jaccard of 0.8 have as many.
_ALIKE = 46
_BAND = 4

Signer = Callable[[bytes], bytes]


def load_signer(path: str) -> Signer:
    """Return the function that signs with the Ed25519 key of a PEM file."""
    # Only processes that sign load the library.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(Path(path).read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        message = (
            f"cannot read the signing key {path!r}: expected an Ed25519 key in PEM, no password"
        )
        raise ConfigError(message, thing="NEWS_PLATFORM_EXPORT_SIGNER") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{path!r} is not an Ed25519 key", thing="NEWS_PLATFORM_EXPORT_SIGNER")
    return key.sign


def write_statements(folder: Path, statements: Iterable[QuotedStatement]) -> None:
    """Write the statements that rows name, one JSON object per line, by id."""
    found = {one.id: {"id": one.id, **one.as_json()} for one in statements}
    lines = (json.dumps(found[key], ensure_ascii=False) + "\n" for key in sorted(found))
    (folder / STATEMENTS).write_text("".join(lines), encoding="utf-8")


def copy_script(folder: Path) -> None:
    """Put the script that checks the export into it."""
    (folder / SCRIPT).write_bytes(Path(__file__).with_name(SCRIPT).read_bytes())


def file_digests(folder: Path) -> Mapping[str, str]:
    """Return the SHA-256 of every file of an export but its manifest and signature."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in (MANIFEST, SIGNATURE):
            with path.open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def write_manifest(folder: Path, document: Mapping[str, object], sign: Signer | None) -> None:
    """Write the manifest, which says whether it is signed, and its signature."""
    written = {**document, "is_signed": sign is not None, "files": file_digests(folder)}
    body = (json.dumps(written, ensure_ascii=False, indent=1) + "\n").encode()
    if sign is not None:
        (folder / SIGNATURE).write_bytes(base64.b64encode(sign(body)) + b"\n")
    (folder / MANIFEST).write_bytes(body)


def manifest_differences(wanted: Mapping[str, object], found: Mapping[str, object]) -> list[str]:
    """Return the fields in which two manifests differ, with both values."""
    return [
        f"{name}: expected {_short(wanted.get(name))}, found {_short(found.get(name))}"
        for name in sorted({*wanted, *found} - {"files", "is_signed"})
        if wanted.get(name) != found.get(name)
    ]


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{hashlib.sha256(text.encode()).hexdigest()[:12]}…"


class EarlierExports:
    """The sketches of earlier exports, to leave out what they hold."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.digests = {_manifest_digest(folder) for folder in folders}
        texts = [text for folder in folders for text in _iter_sketches(folder)]
        self._exact = frozenset(texts)
        self._rows = _matrix(text for text in texts if len(text) == _LENGTH)
        self._bands: dict[bytes, list[int]] = {}
        for number, row in enumerate(self._rows):
            for key in _band_keys(row):
                self._bands.setdefault(key, []).append(number)

    def hold(self, sketch: str) -> bool:
        """Return whether an earlier export has this text or a near-duplicate of it."""
        if sketch in self._exact:
            return True
        if len(sketch) != _LENGTH:
            return False
        row = _matrix([sketch])[0]
        near = {number for key in _band_keys(row) for number in self._bands.get(key, ())}
        if not near:
            return False
        return bool(((self._rows[sorted(near)] == row).sum(axis=1) >= _ALIKE).any())


_LENGTH = len(base64.b64encode(bytes(SKETCH_HASHES)))


def _matrix(sketches: Iterable[str]) -> "npt.NDArray[np.uint8]":
    import numpy as np  # only exports with exceptions pay for it

    found = b"".join(map(base64.b64decode, sketches))
    return np.frombuffer(found, dtype=np.uint8).reshape(-1, SKETCH_HASHES)


def _band_keys(row: "npt.NDArray[np.uint8]") -> Iterator[bytes]:
    body = row.tobytes()
    for start in range(0, SKETCH_HASHES, _BAND):
        yield bytes([start]) + body[start : start + _BAND]


def _manifest_digest(folder: Path) -> str:
    try:
        return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{str(folder)!r} is not an export", thing=str(folder)) from error


def _iter_sketches(folder: Path) -> Iterator[str]:
    for path in sorted((folder / "data").iterdir()):
        if path.suffix == ".parquet":
            rows = pl.read_parquet(path, columns=["sketch"])
        else:
            rows = pl.read_ndjson(path).select("sketch")
        yield from rows["sketch"].drop_nulls()
