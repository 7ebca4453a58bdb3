"""Find the texts of a day that are near-identical to others of its window.

Candidates share band keys, in SQL over the stored keys; they are then verified by their exact
Jaccard. Both read their days part by part, so that the window does not fill the memory.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from news_platform.datasets.near_duplicates import bands_path, sketches_path
from news_platform.near_duplicates.sketch import SketchOptions, jaccard_of
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import iter_frames

if TYPE_CHECKING:
    from news_platform.near_duplicates.sketch import ShingleHashes

# Neighbours by band key that a text is compared with; a key that more share is of a template.
_MAX_NEIGHBOURS = 20
_MAX_CANDIDATES = 64
_COMPARED_AT_ONCE = 5_000
_MEMORY = "512MB"


@dataclass(frozen=True, slots=True)
class TextPair:
    """A text of the day, and a near-identical one: of the day by its key, or of an article."""

    left: str
    article: str
    text_key: str | None
    jaccard: float


# Places of two texts: (place of the day, day of the other, place of the other).
Candidate = tuple[int, str, int]


def find_candidates(
    store: ObjectStore, days: Sequence[str], options: SketchOptions, scratch: Path
) -> list[Candidate]:
    """Return the texts of the last day with those that share enough band keys, in SQL."""
    # Imported where they are used, as numpy is: every process loads this module.
    import duckdb

    files = [_local_copy(store, bands_path(day), scratch / f"{day}.parquet") for day in days]
    last = len(days) - 1
    union = " union all ".join(
        f"select {number} as day, place, {number == last} and is_new as is_new, "
        f"unnest(bands) as key from read_parquet({_quoted(file)})"
        for number, file in enumerate(files)
    )
    with duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": str(scratch)}) as sql:
        found = sql.execute(
            _CANDIDATES.replace("$bands", union),
            {"near": _MAX_NEIGHBOURS, "shared": options.min_shared_bands, "most": _MAX_CANDIDATES},
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


def alike_pairs(
    store: ObjectStore, today: str, candidates: Sequence[Candidate], options: SketchOptions
) -> list[TextPair]:
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
            if jaccard >= options.threshold:
                own = right.text_key if day == today else None
                found.append(TextPair(left.text_key, right.url_hash, own, jaccard))
    return found


@dataclass(frozen=True, slots=True)
class _StoredText:
    """A row of cluster_sketches."""

    text_key: str
    url_hash: str
    shingles: bytes

    @property
    def hashes(self) -> "ShingleHashes":
        """Return the hashes of the shingles."""
        import numpy as np

        return np.frombuffer(self.shingles, np.uint32)


def _read_places(
    store: ObjectStore, day: str, places: Collection[int]
) -> Mapping[int, _StoredText]:
    """Return some texts of a day by their places."""
    found: dict[int, _StoredText] = {}
    start = 0
    columns = ("text_key", "url_hash", "shingles")
    for frame in iter_frames(store, sketches_path(day), columns=columns):
        inside = sorted(place - start for place in places if start <= place < start + frame.height)
        for place, row in zip(inside, frame.select(*columns)[inside].rows(), strict=True):
            found[start + place] = _StoredText(*row)
        start += frame.height
    return found
