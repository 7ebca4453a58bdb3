"""The source_records dataset and its input: blocks of institutional pages with provenance.

Snapshots of the pages, as a crawler stored them, are the only input. Pages that failed go to the
quarantine table.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime

import polars as pl

from news_platform.datasets.table import Column, Table

SNAPSHOTS_FOLDER = "snapshots"
_KEY = "institution="
# 64 bits: among a billion records, two share an id with a probability of 3 %.
_ID_DIGITS = 16


class _ByName:
    """Make a row readable by key, so that `dict(record.provenance)` is its JSON object."""

    __slots__ = ()

    def keys(self) -> Iterator[str]:
        """Return the names of the fields in order."""
        return (entry.name for entry in fields(self))  # type: ignore[arg-type]  # rows are dataclasses

    def items(self) -> Iterator[tuple[str, object]]:
        """Return the fields by name, in order."""
        return ((name, getattr(self, name)) for name in self.keys())

    def __getitem__(self, name: str) -> object:
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)


@dataclass(frozen=True, slots=True)
class Provenance(_ByName):
    """The origin of a block; `section` is its heading path, None above the first heading."""

    institution: str
    url: str
    section: str | None = None
    fetched_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Meta(_ByName):
    """Facts about a block.

    `language_source` is where the language comes from: the text of the block, its section or its
    page, the page's declaration, or the default (`assumed`). `error` is set on the single record of
    a page that failed.
    """

    language: str | None = None
    charset: str | None = None
    hints: Mapping[str, str] = field(default_factory=dict)
    kind: str | None = None
    order: int = 0
    language_probability: float | None = None
    language_source: str | None = None
    snapshot: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One block of content of a page."""

    text: str
    provenance: Provenance
    meta: Meta

    @property
    def id(self) -> str:
        """Return the id of the record: a hash of its page, its place in it and its text.

        The same snapshot gives the same ids on every machine, whatever its path and age.
        """
        origin = self.provenance
        parts = (origin.institution, origin.url, str(self.meta.order), self.text)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:_ID_DIGITS]


_INSTITUTION = Column("institution", pl.String(), "id of the institution, from the path")
_PROVENANCE = (
    Column("url", pl.String(), "address of the page"),
    Column("fetched_at", pl.Datetime("us", "UTC"), "when the page was fetched; null if unknown"),
    Column("snapshot", pl.String(), "path of the snapshot under the root"),
)

SOURCE_RECORDS = Table(
    name="source_records",
    feature="source_records",
    description="Clean, ordered blocks of institutional pages with provenance, for language models",
    path="source_records/institution=ID/part-0.parquet",
    columns=(
        Column("text", pl.String(), "text of the block, whitespace normalized, never empty"),
        Column("section", pl.String(), "heading path joined by ' > '; null above all headings"),
        *_PROVENANCE,
        Column(
            "order", pl.Int64(), "position in its page, from 0, with gaps where blocks were dropped"
        ),
        Column("kind", pl.String(), "paragraph, item, row, table, term, definition, code, heading"),
        Column("language", pl.String(), "ISO 639-1 code; null if unknown"),
        Column("language_probability", pl.Float64(), "0 to 1, from the detector; null if assumed"),
        Column("language_source", pl.String(), "block, list, section, page, declared or assumed"),
        Column("charset", pl.String(), "charset used to decode the page"),
        Column("hints", pl.String(), "JSON object: list marker, depth, column names, term"),
        Column("id", pl.String(), "hash of institution, url, order and text"),
    ),
    partition_columns=(_INSTITUTION,),
)

SOURCE_RECORDS_QUARANTINE = Table(
    name="source_records_quarantine",
    feature="source_records",
    description="Pages that failed and have no blocks, each with its error and snapshot",
    path="quarantine/source_records/institution=ID/part-0.parquet",
    columns=(
        Column("text", pl.String(), "always empty"),
        *_PROVENANCE,
        Column("error", pl.String(), "why the page failed"),
        Column(
            "charset", pl.String(), "charset used to decode the page; null if it was not decoded"
        ),
    ),
    partition_columns=(_INSTITUTION,),
)


def records_path(institution: str) -> str:
    """Return the path of the records of an institution, relative to the root."""
    return SOURCE_RECORDS.path.replace("ID", institution)


def quarantine_path(institution: str) -> str:
    """Return the path of the failed pages of an institution, relative to the root."""
    return SOURCE_RECORDS_QUARANTINE.path.replace("ID", institution)


def samples_path(institution: str) -> str:
    """Return the path of an institution's sample records, relative to the root."""
    return f"samples/source_records/{institution}.json"


def institution_folder(institution: str) -> str:
    """Return the folder of the snapshots of an institution, relative to the root."""
    return f"{SNAPSHOTS_FOLDER}/{_KEY}{institution}"


def institution_of(path: str) -> str | None:
    """Return the institution in the path of a snapshot, or None for any other file."""
    parts = path.split("/")
    if len(parts) < 3 or parts[0] != SNAPSHOTS_FOLDER or not parts[1].startswith(_KEY):
        return None
    return parts[1].removeprefix(_KEY) or None
