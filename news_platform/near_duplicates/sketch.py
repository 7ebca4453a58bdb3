"""A text as its shingle hashes and its MinHash band keys: two alike texts share several keys."""

import hashlib
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rensa import RMinHash

from news_platform.errors import InputError
from news_platform.text.shingles import shingles

ShingleHashes = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class SketchOptions:
    """What counts as a near-duplicate, and how hard we look for it.

    Of two texts that share the fraction J of their shingles, `bands` of `rows` MinHash values make
    a candidate pair with probability 1 - (1 - J^rows)^bands: with 32 and 4 that is all but sure
    from J = 0.7 on. Candidates are then verified by their true Jaccard against `threshold`.
    """

    threshold: float = 0.8
    shingle_words: int = 3
    bands: int = 32
    rows: int = 4
    # Fewer words are a menu or an error page, and alike for no good reason.
    min_words: int = 20
    # One shared key is mostly chance; a pair at the threshold shares 13 on average.
    min_shared_bands: int = 2
    # Hostile pages have millions of words; the first of them tell as much.
    max_chars: int = 200_000

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold <= 1.0:
            raise InputError(f"threshold {self.threshold!r} is not within 0 and 1")
        if min(self.shingle_words, self.bands, self.rows, self.min_shared_bands) < 1:
            raise InputError(f"sizes and counts must be at least 1: {self!r}")

    @property
    def fingerprint(self) -> str:
        """Return what a stored sketch depends on; sketches of two fingerprints never meet."""
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
        """Return the same 16 hex digits for texts with the same shingles, and for no others."""
        return hashlib.sha256(self.shingle_hashes.tobytes()).hexdigest()[:16]


# Fixed for ever: another seed gives other keys, and stored ones would match nothing.
_SEED = 20_251_101


def sketch_of(text: str, options: SketchOptions) -> Sketch | None:
    """Return the sketch of a text, None when it has too few different words to be judged."""
    found = shingles(text[: options.max_chars], options.shingle_words)
    if len(found) < options.min_words - options.shingle_words + 1:
        return None
    hashes = RMinHash.hash_token_sets([found])
    matrix = RMinHash.digest_matrix_from_token_hash_sets(
        hashes, num_perm=options.bands * options.rows, seed=_SEED
    )
    # Half a hash is plenty: of a thousand shingles, one in five thousand texts confuses two.
    unique = np.unique(np.array(hashes[0], dtype=np.uint64).astype(np.uint32))
    return Sketch(unique, _band_keys(matrix.to_rows()[0], options.rows))


def jaccard_of(left: ShingleHashes, right: ShingleHashes) -> float:
    """Return the share of common shingles of two sorted sets."""
    common = int(np.intersect1d(left, right, assume_unique=True).size)
    return common / (left.size + right.size - common) if common else 0.0


def _band_keys(signature: list[int], rows: int) -> tuple[int, ...]:
    """Fold each band and its number into one key, so that keys of different bands never meet."""
    form = struct.Struct(f"<I{rows}I")
    keys = []
    for start in range(0, len(signature), rows):
        packed = form.pack(start, *signature[start : start + rows])
        digest = hashlib.blake2b(packed, digest_size=8).digest()
        keys.append(int.from_bytes(digest, "little", signed=True))
    return tuple(keys)
