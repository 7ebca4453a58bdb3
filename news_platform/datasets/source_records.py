"""The source_records dataset and its input: blocks of institutional pages with provenance.

Snapshots of the pages, as a crawler stored them, are the only input. Pages that failed go to the
quarantine table.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    TEXTS,
    Column,
    Dataset,
    ParentDataset,
    Place,
    Role,
    RowSentence,
    Sensitivity,
    flag,
    number,
    parquet,
)

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
    """The origin of a block; `section` is its heading path, None above the first heading.

    `section_path` has the same headings one by one: a heading may contain " > ".
    """

    institution: str
    url: str
    section: str | None = None
    fetched_at: datetime | None = None
    section_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Meta(_ByName):
    """Facts about a block.

    `language_source` is where the language comes from: the text of the block, its section or its
    page, the page's declaration, or the default (`assumed`). `error` is set on the single record of
    a page that failed.
    """

    language: str | None = None
    charset: str | None = None
    hints: Mapping[str, str | list[str]] = field(default_factory=dict)
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


_INSTITUTION = Column("institution", Role.fact, "id of the institution, from the path")
_PROVENANCE = (
    Column("url", Role.url, "address of the page"),
    Column("fetched_at", Role.time, "when the page was fetched; null if unknown"),
    Column("snapshot", Role.file, "path of the snapshot under the root"),
)

_FROM_CONTENT = (
    "text",
    "section",
    "section_path",
    "order",
    "kind",
    "language",
    "language_probability",
    "language_source",
    "charset",
    "hints",
    "id",
)

SOURCE_RECORDS = Dataset(
    name="source_records",
    group="source_records",
    description="Clean, ordered blocks of an institution's pages, each with its section and its "
    "source, for language models. Menus, footers, other languages and duplicates are "
    "dropped; a page that cannot be read goes to quarantine with its error.",
    row="one block of clean text",
    place=parquet("source_records/institution={institution}/part-0.parquet"),
    partitions="institution",
    parents=(ParentDataset("page_snapshots"),),
    version=versions.SEGMENTER,
    sensitivity=Sensitivity.texts,
    cost="medium",
    freshness="changes only when snapshots are uploaded",
    beside=("samples/source_records/{institution}.json",),
    sentence=RowSentence(
        "A block of the page is stored: {kind}, language {language}.",
        at="fetched_at",
        source="{snapshot}",
    ),
    columns=(
        Column("text", Role.text, "text of the block, whitespace normalized, never empty"),
        Column("section", Role.text, "heading path joined by ' > '; null above all headings"),
        Column("section_path", Role.text, "the same headings as a list", TEXTS),
        *_PROVENANCE,
        Column(
            "order", Role.count, "position in its page, from 0, with gaps where blocks were dropped"
        ),
        Column("kind", Role.fact, "paragraph, item, row, table, term, definition, code, heading"),
        Column("language", Role.language, "ISO 639-1 code; null if unknown"),
        number("language_probability", "0 to 1, from the detector; null if assumed"),
        Column("language_source", Role.fact, "block, list, section, page, declared or assumed"),
        Column("charset", Role.fact, "charset used to decode the page"),
        Column(
            "hints",
            Role.text,
            "JSON object: list marker, depth, column names, term, link, email, phone, hours; "
            "also_in lists the sections of later blocks with the same text",
        ),
        Column("id", Role.fact, "hash of institution, url, order and text"),
    ),
    partition_columns=(_INSTITUTION,),
    sources={
        "page_snapshots.data.rawHtml": _FROM_CONTENT,
        "page_snapshots.data.html": _FROM_CONTENT,
        "page_snapshots.data.markdown": _FROM_CONTENT,
        "page_snapshots.data.metadata": (
            "url",
            "fetched_at",
            "language",
            "language_source",
            "charset",
            "id",
        ),
    },
)

SOURCE_RECORDS_QUARANTINE = Dataset(
    name="source_records_quarantine",
    group="source_records",
    description="Pages that failed and have no blocks, each with its error and snapshot.",
    row="one page that failed",
    place=parquet("quarantine/source_records/institution={institution}/part-0.parquet"),
    partitions="institution",
    written_by="source_records",
    version=versions.SEGMENTER,
    sentence=RowSentence(
        "The snapshot of the page failed: {error}.", "failed", at="fetched_at", source="{snapshot}"
    ),
    columns=(
        Column("text", Role.text, "always empty"),
        *_PROVENANCE,
        Column("error", Role.text, "why the page failed"),
        Column("charset", Role.fact, "charset used to decode the page; null if it was not decoded"),
    ),
    partition_columns=(_INSTITUTION,),
)


SOURCE_RECORD_CHANGES = Dataset(
    name="source_record_changes",
    group="source_records",
    description="Blocks that were added, removed or changed between two snapshots of a page.",
    row="one block that differs between two snapshots",
    place=parquet("source_record_changes/institution={institution}/part-0.parquet"),
    partitions="institution",
    written_by="source_records",
    version=versions.SEGMENTER,
    sensitivity=Sensitivity.texts,
    sentence=RowSentence(
        "A block of the page was {change}.", "changed", at="fetched_at", source="{snapshot}"
    ),
    columns=(
        *_PROVENANCE,
        Column("before_snapshot", Role.file, "path of the snapshot that it is compared with"),
        Column("before_fetched_at", Role.time, "when that was fetched; null if unknown"),
        Column("change", Role.fact, "added, removed or changed"),
        Column("section", Role.text, "heading path of the block"),
        Column("kind", Role.fact, "as in source_records"),
        Column("order", Role.count, "position in its page, of a removed block in the earlier one"),
        Column("before", Role.text, "text of the block in the earlier snapshot; null if added"),
        Column("after", Role.text, "text of the block in the later snapshot; null if removed"),
    ),
    partition_columns=(_INSTITUTION,),
)


PAGE_SNAPSHOTS = Dataset(
    name="page_snapshots",
    group="source_records",
    description="Pages of institutions as a crawler stored them: Firecrawl v2 JSON, HTML, Markdown "
    "or text. Nothing is fetched; a file in this folder is enough.",
    row="one stored page, which is a file",
    place=Place("files", f"{SNAPSHOTS_FOLDER}/institution={{institution}}/{{file}}"),
    fingerprint="files",
    columns=(
        flag("success", "whether the page was fetched; if not, see `error`"),
        Column("error", Role.text, "why there is no page"),
        Column("data.rawHtml", Role.html, "the page as fetched: read first"),
        Column("data.html", Role.html, "the page, possibly stripped: read if rawHtml is missing"),
        Column("data.markdown", Role.text, "the page as markdown: read if there is no HTML"),
        Column(
            "data.metadata",
            Role.url,
            "title, language, sourceURL, url, statusCode, contentType, error",
            pl.Object(),
        ),
    ),
    partition_columns=(_INSTITUTION,),
    partitions="institution",
    sensitivity=Sensitivity.texts,
    removal="files",
    freshness="changes only when snapshots are uploaded",
)


def records_path(institution: str) -> str:
    """Return the path of the records of an institution, relative to the root."""
    return SOURCE_RECORDS.place.path(institution=institution)


def quarantine_path(institution: str) -> str:
    """Return the path of the failed pages of an institution, relative to the root."""
    return SOURCE_RECORDS_QUARANTINE.place.path(institution=institution)


def changes_path(institution: str) -> str:
    """Return the path of the changes between an institution's snapshots, relative to the root."""
    return SOURCE_RECORD_CHANGES.place.path(institution=institution)


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
