"""Reduce a text to its shingle hashes and MinHash band keys; similar texts share several keys."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rensa import RMinHash

from news_platform.errors import InputError
from news_platform.text.words import shingles

# numpy is imported by the functions that compute: processes that only read options save 0.1 s.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    ShingleHashes = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class SketchOptions:
    """The threshold for near-duplicates and the parameters of the search.

    Two texts that share the fraction J of their shingles become a candidate pair with probability
    1 - (1 - J^rows)^bands: with 32 bands of 4 rows this is almost certain from J = 0.7 on.
    Candidates are then verified by comparing their exact Jaccard with `threshold`.
    """

    threshold: float = 0.8
    shingle_words: int = 3
    bands: int = 32
    rows: int = 4
    # Shorter texts are menus and error pages, which are similar without being copies.
    min_words: int = 20
    # One shared key is mostly chance; a pair at the threshold shares 13 keys on average.
    min_shared_bands: int = 2
    # Hostile pages have millions of words; the first ones are enough to compare.
    max_chars: int = 200_000

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold <= 1.0:
            raise InputError(f"invalid threshold {self.threshold!r}: expected 0 < threshold <= 1")
        if min(self.shingle_words, self.bands, self.rows, self.min_shared_bands) < 1:
            raise InputError(f"invalid {self!r}: sizes and counts must be at least 1")

    @property
    def fingerprint(self) -> str:
        """Return the parameters that a stored sketch depends on; others are not comparable."""
        version = RMinHash.ALGORITHM_VERSION
        parts = (version, self.shingle_words, self.bands, self.rows, self.min_words, self.max_chars)
        return "-".join(map(str, parts))


@dataclass(frozen=True, slots=True)
class Sketch:
    """The sorted shingle hashes of a text and one key per band, as signed 64-bit integers."""

    shingle_hashes: ShingleHashes
    band_keys: tuple[int, ...]

    @property
    def text_key(self) -> str:
        """Return 16 hex digits that are equal exactly for texts with the same shingles."""
        return hashlib.sha256(self.shingle_hashes.tobytes()).hexdigest()[:16]


# Never change this: another seed gives other keys, which would not match the stored ones.
_SEED = 20_251_101


def sketch_of(text: str, options: SketchOptions) -> Sketch | None:
    """Return the sketch of a text, or None if it has too few distinct words to compare."""
    import numpy as np

    found = shingles(text[: options.max_chars], options.shingle_words)
    if len(found) < options.min_words - options.shingle_words + 1:
        return None
    hashes = RMinHash.hash_token_sets([found])
    matrix = RMinHash.digest_matrix_from_token_hash_sets(
        hashes, num_perm=options.bands * options.rows, seed=_SEED
    )
    # 32 of 64 bits suffice: with a thousand shingles, one text in five thousand has a collision.
    unique = np.unique(np.array(hashes[0], dtype=np.uint64).astype(np.uint32))
    return Sketch(unique, _band_keys(matrix.to_rows()[0], options.rows))


def cluster_id(document_id: str, text_key: str) -> str:
    """Return the name of the cluster whose first document has this id and text."""
    named = f"{document_id}\n{text_key}".encode("utf-8", "replace")
    return hashlib.sha256(named).hexdigest()[:16]


def jaccard_of(left: ShingleHashes, right: ShingleHashes) -> float:
    """Return the Jaccard index of two sorted sets of shingle hashes."""
    import numpy as np

    common = int(np.intersect1d(left, right, assume_unique=True).size)
    return common / (left.size + right.size - common) if common else 0.0


def _band_keys(signature: list[int], rows: int) -> tuple[int, ...]:
    """Hash each band with its start, so that keys of different bands never match."""
    form = struct.Struct(f"<I{rows}I")
    keys = []
    for start in range(0, len(signature), rows):
        packed = form.pack(start, *signature[start : start + rows])
        digest = hashlib.blake2b(packed, digest_size=8).digest()
        keys.append(int.from_bytes(digest, "little", signed=True))
    return tuple(keys)
