"""Reduce texts to sketches, and find those of a day that are near-identical to others.

A sketch has the shingle hashes of a text and its MinHash band keys; similar texts share several.
Candidates share band keys, in SQL over the stored keys; they are then verified by their exact
Jaccard. Both read their days part by part, so that the window does not fill the memory.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rensa import RMinHash

from news_platform.datasets.near_duplicates import CLUSTER_BANDS, CLUSTER_SKETCHES
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import iter_frames
from news_platform.text.normalize import shingles

# numpy is imported by the functions that compute: processes that only plan save 0.1 s.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    ShingleHashes = npt.NDArray[np.uint32]


THRESHOLD = 0.8
"""The Jaccard from which two texts are near-identical."""
_SHINGLE_WORDS = 3
# Two texts that share the fraction J of their shingles become a candidate pair with probability
# 1 - (1 - J^rows)^bands: this is almost certain from J = 0.7 on.
_BANDS, _ROWS = 32, 4
# Shorter texts are menus and error pages, which are similar without being copies.
_MIN_WORDS = 20
# One shared key is mostly chance; a pair at the threshold shares 13 keys on average.
_MIN_SHARED_BANDS = 2
# Hostile pages have millions of words; the first ones are enough to compare.
MAX_CHARS = 200_000
SKETCH_VERSION = "-".join(
    map(
        str,
        (RMinHash.ALGORITHM_VERSION, _SHINGLE_WORDS, _BANDS, _ROWS, _MIN_WORDS, MAX_CHARS),
    )
)
"""What a stored sketch depends on; those of another version are not comparable."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """The sorted shingle hashes of a text and one key per band, as signed 64-bit integers.

    `text_key` are 16 hex digits that are equal exactly for texts with the same shingles.
    """

    text_key: str
    shingle_hashes: ShingleHashes
    band_keys: tuple[int, ...]


# Never change this: another seed gives other keys, which would not match the stored ones.
_SEED = 20_251_101


def sketch_of(text: str) -> Sketch | None:
    """Return the sketch of a text, or None if it has too few distinct words to compare."""
    import numpy as np

    found = _shingles(text)
    if found is None:
        return None
    hashes = RMinHash.hash_token_sets([found])
    matrix = RMinHash.digest_matrix_from_token_hash_sets(
        hashes, num_perm=_BANDS * _ROWS, seed=_SEED
    )
    # 32 of 64 bits suffice: with a thousand shingles, one text in five thousand has a collision.
    unique = np.unique(np.array(hashes[0], dtype=np.uint64).astype(np.uint32))
    text_key = hashlib.sha256(unique.tobytes()).hexdigest()[:16]
    return Sketch(text_key, unique, _band_keys(matrix.to_rows()[0]))


def _shingles(text: str) -> frozenset[str] | None:
    """Return the shingles of the beginning of a text; None if they are too few."""
    found = shingles(text[:MAX_CHARS], _SHINGLE_WORDS)
    return found if len(found) >= _MIN_WORDS - _SHINGLE_WORDS + 1 else None


def export_sketch(text: str, hashes: int = 64) -> str:
    """Return a byte each of some MinHashes of a text, in Base64; of a short text, its digest.

    It goes with the rows of an export: later exports can tell what earlier ones hold.
    """
    found = _shingles(text)
    if found is None:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()[:24]).decode()
    matrix = RMinHash.digest_matrix_from_token_hash_sets(
        RMinHash.hash_token_sets([found]), num_perm=hashes, seed=_SEED
    )
    return base64.b64encode(bytes(value & 255 for value in matrix.to_rows()[0])).decode()


ArticleKey = tuple[str, str, str]
"""Day, source and URL hash: an address may have another text on every day and in each source."""


def cluster_id(first: ArticleKey, text_key: str) -> str:
    """Return the name of the cluster whose first article is this one, with this text."""
    named = "\n".join((*first, text_key)).encode("utf-8", "replace")
    return hashlib.sha256(named).hexdigest()[:16]


def jaccard_of(left: ShingleHashes, right: ShingleHashes) -> float:
    """Return the Jaccard index of two sorted sets of shingle hashes."""
    import numpy as np

    common = int(np.intersect1d(left, right, assume_unique=True).size)
    return common / (left.size + right.size - common) if common else 0.0


def _band_keys(signature: list[int]) -> tuple[int, ...]:
    """Hash each band with its start, so that keys of different bands never match."""
    form = struct.Struct(f"<I{_ROWS}I")
    keys = []
    for start in range(0, len(signature), _ROWS):
        packed = form.pack(start, *signature[start : start + _ROWS])
        digest = hashlib.blake2b(packed, digest_size=8).digest()
        keys.append(int.from_bytes(digest, "little", signed=True))
    return tuple(keys)


# Neighbours by band key that a text is compared with; a key that more share is of a template.
_MAX_NEIGHBOURS = 20
_MAX_CANDIDATES = 64
_COMPARED_AT_ONCE = 5_000
_MEMORY = "512MB"


@dataclass(frozen=True, slots=True)
class TextPair:
    """A text of the day, and a near-identical one: of the day by its key, or of an article."""

    left: str
    article: ArticleKey
    text_key: str | None
    jaccard: float


# Places of two texts: (place of the day, day of the other, place of the other).
Candidate = tuple[int, str, int]


def find_candidates(store: ObjectStore, days: Sequence[str], scratch: Path) -> list[Candidate]:
    """Return the texts of the last day with those that share enough band keys, in SQL."""
    # Imported where they are used, as numpy is: every process loads this module.
    import duckdb

    files = [
        _local_copy(store, CLUSTER_BANDS.place.path(date=day), scratch / f"{day}.parquet")
        for day in days
    ]
    last = len(days) - 1
    union = " union all ".join(
        f"select {number} as day, place, {number == last} and is_new as is_new, "
        f"unnest(bands) as key from read_parquet({_quoted(file)})"
        for number, file in enumerate(files)
    )
    with duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": str(scratch)}) as sql:
        found = sql.execute(
            _CANDIDATES.replace("$bands", union),
            {"near": _MAX_NEIGHBOURS, "shared": _MIN_SHARED_BANDS, "most": _MAX_CANDIDATES},
        )
        return [(int(place), days[number], int(other)) for place, number, other in found.fetchall()]


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _local_copy(store: ObjectStore, path: str, copy: Path) -> Path:
    """Return a local file of the store, or a copy of a remote one: DuckDB reads local files."""
    if store.local_folder is not None:
        return store.local_folder / path
    copy.write_bytes(store.read(path))
    return copy


# Only keys of the day's new texts matter; each text meets its nearest neighbours by each key.
_CANDIDATES = """
with keys as ($bands), numbered as (
    select *, row_number() over (partition by key order by day, place) as number
    from keys where key in (select key from keys where is_new)
), shared as (
    select a.place, b.day as other_day, b.place as other, count(*) as bands
    from numbered a join numbered b
      on a.key = b.key and a.is_new and b.number < a.number and b.number >= a.number - $near
    group by all having count(*) >= $shared
)
select place, other_day, other from shared
qualify row_number() over (
    partition by place order by bands desc, other_day, other
) <= $most
order by place, other_day, other
"""


def alike_pairs(store: ObjectStore, today: str, candidates: Sequence[Candidate]) -> list[TextPair]:
    """Return the candidates whose texts are near-identical; part by part, to bound the memory."""
    found: list[TextPair] = []
    for at in range(0, len(candidates), _COMPARED_AT_ONCE):
        part = candidates[at : at + _COMPARED_AT_ONCE]
        wanted: dict[str, set[int]] = {today: {place for place, _, _ in part}}
        for _, day, place in part:
            wanted.setdefault(day, set()).add(place)
        texts = {day: _read_places(store, day, places) for day, places in wanted.items()}
        for place, day, other in part:
            left, right = texts[today][place], texts[day][other]
            jaccard = jaccard_of(left.hashes, right.hashes)
            if jaccard >= THRESHOLD:
                own = right.text_key if day == today else None
                article = (day, right.source, right.url_hash)
                found.append(TextPair(left.text_key, article, own, jaccard))
    return found


@dataclass(frozen=True, slots=True)
class _StoredText:
    """A row of cluster_sketches."""

    text_key: str
    source: str
    url_hash: str
    shingles: bytes

    @property
    def hashes(self) -> ShingleHashes:
        """Return the hashes of the shingles."""
        import numpy as np

        return np.frombuffer(self.shingles, np.uint32)


def _read_places(
    store: ObjectStore, day: str, places: Collection[int]
) -> Mapping[int, _StoredText]:
    """Return some texts of a day by their places."""
    found: dict[int, _StoredText] = {}
    start = 0
    columns = ("text_key", "source", "url_hash", "shingles")
    for frame in iter_frames(store, CLUSTER_SKETCHES.place.path(date=day), columns=columns):
        inside = sorted(place - start for place in places if start <= place < start + frame.height)
        for place, row in zip(inside, frame.select(*columns)[inside].rows(), strict=True):
            found[start + place] = _StoredText(*row)
        start += frame.height
    return found
