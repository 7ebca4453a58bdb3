"""Cluster the near-identical texts of one batch of documents, such as a day of the crawl.

The batch is read twice: once for the band keys, 256 bytes per document, and once more for the
shingles of the few documents that may have a near-duplicate. Its texts never fill the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from news_platform.isolation.boundary import boundary
from news_platform.near_duplicates.sketch import (
    SketchOptions,
    TextDocument,
    cluster_id,
    jaccard_of,
    sketch_of,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from news_platform.near_duplicates.sketch import ShingleHashes

    BandKeys = npt.NDArray[np.int64]

# A key shared by more documents comes from a page template. Each document is then compared with
# this many neighbours only, and the neighbours' neighbours hold the cluster together.
_MAX_NEIGHBOURS = 20


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A document in a cluster of at least two, and its Jaccard with the most similar member."""

    cluster_id: str
    document_id: str
    jaccard: float


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """Counts of one batch: documents, distinct texts, compared pairs and clusters.

    `failed` documents raised an error, which is in the log; they are compared with no other.
    """

    documents: int
    too_short: int
    distinct_texts: int
    compared_pairs: int
    alike_pairs: int
    clusters: int
    members: int
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Clustering:
    """The members of all clusters, sorted by cluster and document, and the report."""

    members: tuple[ClusterMember, ...]
    report: ClusterReport


@dataclass(frozen=True, slots=True)
class _Text:
    """One distinct text: its key, its band keys, and the sorted ids of its documents."""

    key: str
    band_keys: BandKeys
    document_ids: list[str]


def cluster_documents(
    read: Callable[[], Iterable[TextDocument]], *, options: SketchOptions
) -> Clustering:
    """Return the clusters of the documents that `read` yields; their order does not matter.

    `read` is called twice. A repeated document id counts once, with its first text. A cluster is
    named after its first document in the order of ids.
    """
    import numpy as np

    texts, documents, left_out = _read_texts(read(), options)
    bands = np.array([text.band_keys for text in texts], dtype=np.int64)
    bands = bands.reshape(len(texts), options.bands)
    pairs = list(candidate_pairs(bands, min_shared=options.min_shared_bands))
    # Shingles are kept only for candidates, so that a day of texts does not fill the memory.
    shingles = _read_shingles(read(), {row: texts[row] for pair in pairs for row in pair}, options)
    left_out["failed"] += len({row for pair in pairs for row in pair} - shingles.keys())
    pairs = [pair for pair in pairs if shingles.keys() >= set(pair)]
    compared = ((pair, jaccard_of(shingles[pair[0]], shingles[pair[1]])) for pair in pairs)
    alike = {pair: jaccard for pair, jaccard in compared if jaccard >= options.threshold}
    members = _members(texts, alike)
    report = ClusterReport(
        documents=documents,
        too_short=left_out["too_short"],
        distinct_texts=len(texts),
        compared_pairs=len(pairs),
        alike_pairs=len(alike),
        clusters=len({member.cluster_id for member in members}),
        members=len(members),
        failed=left_out["failed"],
    )
    return Clustering(members, report)


def _read_texts(
    documents: Iterable[TextDocument], options: SketchOptions
) -> tuple[list[_Text], int, Counter[str]]:
    """Return the distinct texts by first document id, the number read, and those left out."""
    import numpy as np

    texts: dict[str, _Text] = {}
    seen: set[str] = set()
    left_out: Counter[str] = Counter()
    for document in documents:
        if document.document_id in seen:
            continue
        seen.add(document.document_id)
        sketch = None
        with boundary("page", document.document_id) as unit:
            sketch = sketch_of(document.text, options)
        if sketch is None:
            left_out["failed" if unit.cause else "too_short"] += 1
            continue
        key = sketch.text_key
        text = texts.setdefault(key, _Text(key, np.array(sketch.band_keys), []))
        text.document_ids.append(document.document_id)
    for text in texts.values():
        text.document_ids.sort()
    return sorted(texts.values(), key=lambda text: text.document_ids[0]), len(seen), left_out


def _read_shingles(
    documents: Iterable[TextDocument], wanted: Mapping[int, _Text], options: SketchOptions
) -> dict[int, ShingleHashes]:
    """Return the shingle hashes of the wanted texts, read from their first documents."""
    rows = {text.document_ids[0]: row for row, text in wanted.items()}
    shingles: dict[int, ShingleHashes] = {}
    for document in documents:
        row = rows.pop(document.document_id, None)
        if row is None:
            continue
        with boundary("page", document.document_id):
            if (sketch := sketch_of(document.text, options)) is not None:
                shingles[row] = sketch.shingle_hashes
    return shingles


def _members(
    texts: list[_Text], alike: Mapping[tuple[int, int], float]
) -> tuple[ClusterMember, ...]:
    sets = DisjointSets(len(texts))
    # Documents with the same text are members even without a candidate pair.
    best = [1.0 if len(text.document_ids) > 1 else 0.0 for text in texts]
    for pair, jaccard in alike.items():
        sets.join(*pair)
        for row in pair:
            best[row] = max(best[row], jaccard)
    members = []
    for row, text in enumerate(texts):
        if best[row]:
            first = texts[sets.first(row)]
            name = cluster_id(first.document_ids[0], first.key)
            members += [ClusterMember(name, holder, best[row]) for holder in text.document_ids]
    return tuple(sorted(members, key=lambda member: (member.cluster_id, member.document_id)))


def candidate_pairs(keys: BandKeys, *, min_shared: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs of row numbers (low, high) that share at least `min_shared` band keys.

    `keys` has one row per document and one column per band.
    """
    import numpy as np

    count = keys.shape[0]
    met = [pairs for column in keys.T for pairs in _pairs_of_band(column, count)]
    if met:
        pairs, shared = np.unique(np.concatenate(met), return_counts=True)
        kept = pairs[shared >= min_shared]
        yield from zip((kept // count).tolist(), (kept % count).tolist(), strict=True)


def _pairs_of_band(column: BandKeys, count: int) -> Iterator[BandKeys]:
    """Yield arrays of the pairs that share a key of one band, each as low * count + high."""
    import numpy as np

    # A stable sort puts the rows with one key side by side, in their own order.
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    for distance in range(1, min(_MAX_NEIGHBOURS + 1, count)):
        same = ordered[distance:] == ordered[:-distance]
        if not same.any():
            return
        yield order[:-distance][same] * count + order[distance:][same]


class DisjointSets:
    """A union-find over the numbers from 0; the smallest number represents its set."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def join(self, left: int, right: int) -> None:
        """Merge the sets of two numbers."""
        low, high = sorted((self.first(left), self.first(right)))
        self._parents[high] = low

    def first(self, number: int) -> int:
        """Return the smallest number of the set."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]  # path halving keeps the trees flat
            number = parents[number]
        return number
