"""Documents in, clusters of near-identical texts out: of one batch, or as documents arrive.

A batch, such as a day of the crawl, is read twice: once for the band keys, 256 bytes a document,
and once more for the shingles of those few that may have a twin; its texts never fill the memory.
Arriving documents, such as articles, meet all earlier ones of their collection in a band table.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import sqlalchemy as sa

from news_platform.near_duplicates.bands import Assignment, BandTable
from news_platform.near_duplicates.candidates import Numbers, candidate_pairs
from news_platform.near_duplicates.clusters import Groups, cluster_id
from news_platform.near_duplicates.sketch import (
    ShingleHashes,
    SketchOptions,
    jaccard_of,
    sketch_of,
)

# Documents per transaction: others wait for the write lock meanwhile, about a fifth of a second.
_BATCH_DOCUMENTS = 100


@dataclass(frozen=True, slots=True)
class Document:
    """A text and the name it is known by, such as its URL."""

    document_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Member:
    """A document of a cluster of two or more, and its Jaccard with the member most like it."""

    cluster_id: str
    document_id: str
    jaccard: float


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What a batch held: documents, texts, comparisons, and what came of them."""

    documents: int
    too_short: int
    distinct_texts: int
    compared_pairs: int
    alike_pairs: int
    clusters: int
    members: int


@dataclass(frozen=True, slots=True)
class Clustering:
    """The members of all clusters, sorted by cluster and document, and the report."""

    members: tuple[Member, ...]
    report: ClusterReport


@dataclass(frozen=True, slots=True)
class _Text:
    """One distinct text: its key, its band keys, and the documents that have it, sorted."""

    key: str
    band_keys: Numbers
    holders: list[str]


def cluster_documents(
    read: Callable[[], Iterable[Document]], *, options: SketchOptions
) -> Clustering:
    """Return the clusters among the documents that `read` gives, whatever their order.

    A document id that comes again counts once, with its first text. A cluster is named after its
    first document in the order of ids.
    """
    texts, documents, too_short = _read_texts(read(), options)
    bands = np.array([text.band_keys for text in texts], dtype=np.int64)
    bands = bands.reshape(len(texts), options.bands)
    pairs = list(candidate_pairs(bands, min_shared=options.min_shared_bands))
    shingles = _read_shingles(read(), {row: texts[row] for pair in pairs for row in pair}, options)
    compared = ((pair, jaccard_of(shingles[pair[0]], shingles[pair[1]])) for pair in pairs)
    alike = {pair: jaccard for pair, jaccard in compared if jaccard >= options.threshold}
    members = _members(texts, alike)
    report = ClusterReport(
        documents=documents,
        too_short=too_short,
        distinct_texts=len(texts),
        compared_pairs=len(pairs),
        alike_pairs=len(alike),
        clusters=len({member.cluster_id for member in members}),
        members=len(members),
    )
    return Clustering(members, report)


def assign_clusters(
    documents: Iterable[Document], *, engine: sa.Engine, collection: str, options: SketchOptions
) -> Iterator[Assignment]:
    """Give each document its cluster among all that the collection has seen, and remember it.

    A document that comes again with the same text keeps its cluster; with another text it is judged
    anew. Clusters that turn out to be one take the name of the elder. Texts too short to be judged
    are left out.
    """
    arriving = iter(documents)
    while batch := list(islice(arriving, _BATCH_DOCUMENTS)):
        sketches = ((item.document_id, sketch_of(item.text, options)) for item in batch)
        judged = [(document_id, sketch) for document_id, sketch in sketches if sketch is not None]
        with engine.begin() as connection:
            table = BandTable(connection, collection, options)
            table.lock()
            assigned = [table.assign(document_id, sketch) for document_id, sketch in judged]
        yield from assigned


def _read_texts(
    documents: Iterable[Document], options: SketchOptions
) -> tuple[list[_Text], int, int]:
    """Return the distinct texts in the order of their first holders, and two counts."""
    texts: dict[str, _Text] = {}
    seen: set[str] = set()
    too_short = 0
    for document in documents:
        if document.document_id in seen:
            continue
        seen.add(document.document_id)
        sketch = sketch_of(document.text, options)
        if sketch is None:
            too_short += 1
            continue
        key = sketch.text_key
        text = texts.setdefault(key, _Text(key, np.array(sketch.band_keys), []))
        text.holders.append(document.document_id)
    for text in texts.values():
        text.holders.sort()
    return sorted(texts.values(), key=lambda text: text.holders[0]), len(seen), too_short


def _read_shingles(
    documents: Iterable[Document], wanted: Mapping[int, _Text], options: SketchOptions
) -> dict[int, ShingleHashes]:
    """Return the shingle hashes of the wanted texts, read from their first holders."""
    rows = {text.holders[0]: row for row, text in wanted.items()}
    shingles: dict[int, ShingleHashes] = {}
    for document in documents:
        row = rows.pop(document.document_id, None)
        if row is not None and (sketch := sketch_of(document.text, options)) is not None:
            shingles[row] = sketch.shingle_hashes
    return shingles


def _members(texts: list[_Text], alike: Mapping[tuple[int, int], float]) -> tuple[Member, ...]:
    groups = Groups(len(texts))
    best = [1.0 if len(text.holders) > 1 else 0.0 for text in texts]
    for pair, jaccard in alike.items():
        groups.join(*pair)
        for row in pair:
            best[row] = max(best[row], jaccard)
    members = []
    for row, text in enumerate(texts):
        if best[row]:
            first = texts[groups.first(row)]
            name = cluster_id(first.holders[0], first.key)
            members += [Member(name, holder, best[row]) for holder in text.holders]
    return tuple(sorted(members, key=lambda member: (member.cluster_id, member.document_id)))
