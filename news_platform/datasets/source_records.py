"""Clean blocks of institutional pages with their provenance, and the pages that gave none."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime

import polars as pl

from news_platform.datasets.table import Column, Table


class _ByName:
    """Lets a row also be read by key, so that `dict(record.provenance)` is its JSON object."""

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
    """Where a block comes from; `section` is its heading path, None above the first heading."""

    institution: str
    url: str
    section: str | None = None
    fetched_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Meta(_ByName):
    """What is known about a block.

    `language_source` says who judged the language: the block itself, its section, its page, the
    page's own declaration, or nobody (`assumed`). `error` is set on the one record of a page that
    failed.
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
    """One block of text that a reader of the page would call content."""

    text: str
    provenance: Provenance
    meta: Meta


_INSTITUTION = Column("institution", pl.String(), "id of the institution, from the path")
_PROVENANCE = (
    Column("url", pl.String(), "address of the page"),
    Column("fetched_at", pl.Datetime("us", "UTC"), "when the page was fetched; null if unknown"),
    Column("snapshot", pl.String(), "path of the snapshot under the root"),
)

SOURCE_RECORDS = Table(
    name="source_records",
    room="source_records",
    description="Clean, ordered blocks of institutional pages with provenance, for language models",
    path="source_records/institution=ID/part-0.parquet",
    columns=(
        Column("text", pl.String(), "the block, whitespace normalised, never empty"),
        Column("section", pl.String(), "heading path joined by ' > '; null above all headings"),
        *_PROVENANCE,
        Column(
            "order", pl.Int64(), "position in its page, from 0, with gaps where blocks were dropped"
        ),
        Column("kind", pl.String(), "paragraph, item, row, table, term, definition, code, heading"),
        Column("language", pl.String(), "ISO 639-1 code; null if nobody could tell"),
        Column("language_probability", pl.Float64(), "0 to 1, of whoever judged; null if assumed"),
        Column("language_source", pl.String(), "block, section, page, declared or assumed"),
        Column("charset", pl.String(), "how the page's bytes were decoded"),
        Column("hints", pl.String(), "JSON object: list marker, depth, column names, term"),
    ),
    partition_columns=(_INSTITUTION,),
)

SOURCE_RECORDS_QUARANTINE = Table(
    name="source_records_quarantine",
    room="source_records",
    description="Pages that gave no blocks because they failed, each with its error and snapshot",
    path="quarantine/source_records/institution=ID/part-0.parquet",
    columns=(
        Column("text", pl.String(), "always empty"),
        *_PROVENANCE,
        Column("error", pl.String(), "why the page failed"),
        Column("charset", pl.String(), "how the page's bytes were decoded; null if they were not"),
    ),
    partition_columns=(_INSTITUTION,),
)


def records_path(institution: str) -> str:
    """Return where the records of an institution lie under the root."""
    return SOURCE_RECORDS.path.replace("ID", institution)


def quarantine_path(institution: str) -> str:
    """Return where the failed pages of an institution lie under the root."""
    return SOURCE_RECORDS_QUARANTINE.path.replace("ID", institution)
