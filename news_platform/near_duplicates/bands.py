"""Assign arriving documents to clusters among all earlier ones, with a band table in SQL.

Each document has one row with its shingle hashes and one narrow row per band key. Keys are salted
with the collection and the sketch options, so that collections never match each other and the
narrow table needs no column for them.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import sqlalchemy as sa

from news_platform.isolation.boundary import boundary
from news_platform.near_duplicates.sketch import (
    Sketch,
    SketchOptions,
    TextDocument,
    cluster_id,
    jaccard_of,
    sketch_of,
)

METADATA = sa.MetaData()
_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")

TEXTS = sa.Table(
    "near_duplicate_texts",
    METADATA,
    sa.Column("sequence", _SERIAL, primary_key=True, autoincrement=True),
    sa.Column("collection", sa.Text, nullable=False),
    sa.Column("document_id", sa.Text, nullable=False),
    sa.Column("sketch", sa.Text, nullable=False),
    sa.Column("text_key", sa.Text, nullable=False),
    sa.Column("cluster_id", sa.Text, nullable=False),
    sa.Column("jaccard", sa.Double),
    sa.Column("shingle_hashes", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("collection", "document_id", name="near_duplicate_texts_document"),
    sa.Index("near_duplicate_texts_cluster", "collection", "cluster_id"),
    sa.Index("near_duplicate_texts_text", "collection", "text_key"),
)
BANDS = sa.Table(
    "near_duplicate_bands",
    METADATA,
    sa.Column("key", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column(
        "sequence",
        _SERIAL,
        sa.ForeignKey(TEXTS.c.sequence, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    sa.Index("near_duplicate_bands_sequence", "sequence"),
    # The primary key is the whole row; without a rowid SQLite stores it once.
    sqlite_with_rowid=False,
)
# Candidates come in the order of shared keys, near-duplicates first; after 64, the others merely
# share a page template.
_MAX_CANDIDATES = 64
# Any constant works, as long as all our processes take the same PostgreSQL advisory lock.
_ADVISORY_LOCK = 7_236_120_456
# Documents per transaction: other writers wait for its lock, about a fifth of a second.
_BATCH_DOCUMENTS = 100


@dataclass(frozen=True, slots=True)
class Assignment:
    """The cluster of a document, and its Jaccard with the most similar earlier one, or None."""

    document_id: str
    cluster_id: str
    jaccard: float | None


@dataclass(frozen=True, slots=True)
class FailedDocument:
    """A document that raised an error; it is compared again when its text changes."""

    document_id: str
    cause: str


def assign_clusters(
    documents: Iterable[TextDocument], *, engine: sa.Engine, collection: str, options: SketchOptions
) -> Iterator[Assignment | FailedDocument]:
    """Assign each document to a cluster among all documents of the collection, and store it.

    A document that arrives again with the same text keeps its cluster; with another text it is
    compared again. Clusters that a document joins take the name of the oldest one. Texts that are
    too short to compare are left out.
    """
    arriving = iter(documents)
    while batch := list(islice(arriving, _BATCH_DOCUMENTS)):
        sketches = ((item.document_id, _sketch(item, options)) for item in batch)
        sketched = [(document_id, sketch) for document_id, sketch in sketches if sketch is not None]
        with engine.begin() as connection:
            table = BandTable(connection, collection, options)
            table.lock()
            assigned = [_assign(table, document_id, sketch) for document_id, sketch in sketched]
        yield from assigned


def _sketch(document: TextDocument, options: SketchOptions) -> Sketch | FailedDocument | None:
    with boundary("article", document.document_id) as unit:
        return sketch_of(document.text, options)
    return FailedDocument(document.document_id, unit.cause)


def _assign(
    table: "BandTable", document_id: str, sketch: Sketch | FailedDocument
) -> Assignment | FailedDocument:
    if isinstance(sketch, FailedDocument):
        return sketch
    # The savepoint keeps the changes for the other documents of the transaction.
    with boundary("article", document_id) as unit, table.connection.begin_nested():
        return table.assign(document_id, sketch)
    return FailedDocument(document_id, unit.cause)


@dataclass(frozen=True, slots=True)
class BandTable:
    """One collection of documents and their clusters, in the caller's transaction."""

    connection: sa.Connection
    collection: str
    options: SketchOptions

    def lock(self) -> None:
        """Block other writers until the transaction ends, so that no two near-duplicates miss.

        Nothing to do on SQLite: its write transactions hold the write lock from the start.
        """
        if self.connection.dialect.name == "postgresql":
            self.connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))

    def assign(self, document_id: str, sketch: Sketch) -> Assignment:
        """Store the document and return its cluster; an unchanged text changes nothing."""
        known = self._row(TEXTS.c.document_id == document_id)
        if known is not None:
            if (known.text_key, known.sketch) == (sketch.text_key, self.options.fingerprint):
                return Assignment(document_id, known.cluster_id, known.jaccard)
            # The text or the options changed: compare the document like a new one.
            self._remove(known)
        # An exact copy needs no candidate search and no band keys of its own.
        twin = self._row(TEXTS.c.text_key == sketch.text_key, self._is_comparable())
        if twin is not None:
            found = Assignment(document_id, twin.cluster_id, 1.0)
        else:
            found = self._assigned_by_bands(document_id, sketch)
        self._insert(found, sketch, with_bands=twin is None)
        return found

    def assignments(self) -> list[Assignment]:
        """Return all documents with their clusters, in the order of arrival."""
        query = sa.select(TEXTS.c.document_id, TEXTS.c.cluster_id, TEXTS.c.jaccard)
        ours = query.where(TEXTS.c.collection == self.collection).order_by(TEXTS.c.sequence)
        return [Assignment(*row) for row in self.connection.execute(ours)]

    def members(self, name: str) -> list[str]:
        """Return the documents of a cluster, in the order of arrival."""
        query = sa.select(TEXTS.c.document_id).order_by(TEXTS.c.sequence)
        is_member = sa.and_(TEXTS.c.collection == self.collection, TEXTS.c.cluster_id == name)
        return list(self.connection.scalars(query.where(is_member)))

    def _row(self, *conditions: sa.ColumnElement[bool]) -> sa.Row[Any] | None:
        query = sa.select(TEXTS).where(TEXTS.c.collection == self.collection, *conditions)
        return self.connection.execute(query.order_by(TEXTS.c.sequence).limit(1)).first()

    def _is_comparable(self) -> sa.ColumnElement[bool]:
        return TEXTS.c.sketch == self.options.fingerprint

    def _assigned_by_bands(self, document_id: str, sketch: Sketch) -> Assignment:
        alike = [
            (jaccard, cluster)
            for cluster, hashes in self._candidates(sketch)
            if (jaccard := _jaccard(sketch, hashes)) >= self.options.threshold
        ]
        if not alike:
            return Assignment(document_id, cluster_id(document_id, sketch.text_key), None)
        name = self._merged({cluster for _, cluster in alike})
        return Assignment(document_id, name, max(jaccard for jaccard, _ in alike))

    def _candidates(self, sketch: Sketch) -> list[tuple[str, bytes]]:
        shared = sa.func.count()
        met = (
            sa.select(BANDS.c.sequence)
            .where(BANDS.c.key.in_(self._salted(sketch.band_keys)))
            .group_by(BANDS.c.sequence)
            .having(shared >= self.options.min_shared_bands)
            .order_by(shared.desc(), BANDS.c.sequence)
            .limit(_MAX_CANDIDATES)
            .subquery()
        )
        query = sa.select(TEXTS.c.cluster_id, TEXTS.c.shingle_hashes)
        rows = self.connection.execute(query.join(met, met.c.sequence == TEXTS.c.sequence))
        return [(row.cluster_id, row.shingle_hashes) for row in rows]

    def _merged(self, names: set[str]) -> str:
        """Merge clusters under the name of the one whose first member arrived first."""
        if len(names) == 1:
            return names.pop()
        is_one = sa.and_(TEXTS.c.collection == self.collection, TEXTS.c.cluster_id.in_(names))
        query = sa.select(TEXTS.c.cluster_id).where(is_one).order_by(TEXTS.c.sequence).limit(1)
        eldest: str = self.connection.scalars(query).one()
        self.connection.execute(sa.update(TEXTS).where(is_one).values(cluster_id=eldest))
        return eldest

    def _insert(self, found: Assignment, sketch: Sketch, *, with_bands: bool) -> None:
        row = {
            "collection": self.collection,
            "document_id": found.document_id,
            "sketch": self.options.fingerprint,
            "text_key": sketch.text_key,
            "cluster_id": found.cluster_id,
            "jaccard": found.jaccard,
            "shingle_hashes": sketch.shingle_hashes.tobytes(),
        }
        insert = sa.insert(TEXTS).values(row).returning(TEXTS.c.sequence)
        sequence = self.connection.scalars(insert).one()
        if with_bands:  # a document with the same text has the same keys stored already
            keys = self._salted(sketch.band_keys)
            self.connection.execute(
                sa.insert(BANDS), [{"key": key, "sequence": sequence} for key in set(keys)]
            )

    def _remove(self, row: sa.Row[Any]) -> None:
        """Delete a document whose text changed; pass its band keys to one with its old text."""
        twin = self._row(
            TEXTS.c.text_key == row.text_key,
            TEXTS.c.sketch == row.sketch,
            TEXTS.c.sequence != row.sequence,
        )
        if twin is not None:
            moved = sa.update(BANDS).where(BANDS.c.sequence == row.sequence)
            self.connection.execute(moved.values(sequence=twin.sequence))
        self.connection.execute(sa.delete(TEXTS).where(TEXTS.c.sequence == row.sequence))

    def _salted(self, keys: Iterable[int]) -> list[int]:
        name = f"{self.collection}\n{self.options.fingerprint}".encode()
        salt = int.from_bytes(hashlib.sha256(name).digest()[:8], "little", signed=True)
        return [key ^ salt for key in keys]


def _jaccard(sketch: Sketch, stored: bytes) -> float:
    import numpy as np

    return jaccard_of(sketch.shingle_hashes, np.frombuffer(stored, dtype=np.uint32))
