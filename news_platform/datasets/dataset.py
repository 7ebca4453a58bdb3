"""Declare a dataset: what a row is, where it lies, what its columns mean, what it is built from.

Each dataset is declared once. The registry, SQL views, the data dictionary, the specs, lineage and
freshness of the Dagster assets, the order of the demo, staleness, `explain`, removal of rows and
its verification, retention and the metrics of each dataset are derived from these declarations.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import Enum, StrEnum
from functools import cache
from types import NoneType
from typing import Literal, get_args
from urllib.parse import quote, unquote

import polars as pl
from pydantic import BaseModel


class Role(Enum):
    """What the values of a column are, for every part that treats kinds of values differently."""

    url = "url"  # addresses of the page or feed that the row is about: the row goes with them
    url_hash = "url_hash"  # SHA-256 hex of the canonical address of that page
    domain = "domain"  # registrable domain of the row: `bbc.co.uk`
    host = "host"  # the same with its labels reversed: `uk.co.bbc`
    surt = "surt"  # the page's address in sort-friendly form
    links = "links"  # addresses of other pages, files or feeds
    html = "html"  # source of a page
    text = "text"  # text of other people
    title = "title"  # headline
    people = "people"  # names of persons
    file = "file"  # path of a file that belongs to the row
    language = "language"
    day = "day"
    time = "time"
    count = "count"
    fact = "fact"  # any other value that the platform itself wrote


ADDRESS_ROLES = frozenset({Role.url, Role.url_hash, Role.surt, Role.links, Role.file})
"""Roles whose values are or contain addresses of pages."""
THIRD_PARTY_ROLES = frozenset({Role.html, Role.text, Role.title, Role.people})
"""Roles whose values other people wrote."""


_TYPES: Mapping[Role, pl.DataType] = {
    Role.count: pl.Int64(),
    Role.time: pl.Datetime("us", "UTC"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, role, meaning (units, time zone, what null means) and Polars type.

    Without a type, counts are Int64, times are UTC microseconds and all others are strings.
    """

    name: str
    role: Role
    description: str
    dtype: pl.DataType = field(default_factory=pl.Null)

    def __post_init__(self) -> None:
        if self.dtype == pl.Null():
            object.__setattr__(self, "dtype", _TYPES.get(self.role, pl.String()))

    @property
    def is_shown(self) -> bool:
        """Return whether logs, events and previews outside the root may show its values."""
        return self.role not in ADDRESS_ROLES | THIRD_PARTY_ROLES


TEXTS = pl.List(pl.String())
"""The type of a column with lists of texts."""


def flag(name: str, description: str) -> Column:
    """Return a column of facts that are true or false."""
    return Column(name, Role.fact, description, pl.Boolean())


def number(name: str, description: str) -> Column:
    """Return a column of measured values and shares."""
    return Column(name, Role.fact, description, pl.Float64())


_JSON_TYPES: Mapping[object, pl.DataType] = {
    str: pl.String(),
    int: pl.Int64(),
    float: pl.Float64(),
    bool: pl.Boolean(),
    date: pl.Date(),
    datetime: pl.Datetime("us", "UTC"),
}


def model_columns(model: type[BaseModel], **roles: Role) -> tuple[Column, ...]:
    """Return the fields of a JSON object as columns; nested ones are of type Object."""
    return tuple(
        Column(
            name,
            roles.get(name, Role.fact),
            given.description or "",
            _json_type(given.annotation),
        )
        for name, given in model.model_fields.items()
    )


def _json_type(annotation: object) -> pl.DataType:
    """Return the type of a field; one that may be missing has that of its values."""
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType] or [annotation]
    return _JSON_TYPES.get(kinds[0], pl.Object()) if len(kinds) == 1 else pl.Object()


_NAME = re.compile(r"\{(\w+)\}")
# A part of this name stands for a path of any depth, as it is: people arrange their own files.
_ANY_DEPTH = "file"

Engine = Literal["parquet", "delta", "sql", "files", "store", "index", "view", "external"]
"""How a dataset is stored: which engine reads, scans and removes its rows."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a dataset lies, and the engine that reads it.

    `template` is the path of a file under the root with the parts that vary in braces, or the
    folder of a table or an index, or the name of a SQL table. A `view` names the datasets it joins.
    """

    engine: Engine
    template: str

    @property
    def folder(self) -> str:
        """Return the folder of all its files: the parts of the path that do not vary."""
        if self.engine in ("delta", "index"):
            return self.template
        return self.template.partition("{")[0].rpartition("/")[0]

    def holds(self, path: str) -> bool:
        """Return whether a file of this path belongs to the dataset."""
        if self.engine in ("delta", "index"):
            return path.startswith(f"{self.template}/")
        return self.engine not in ("sql", "view") and self.parse(path) is not None

    def path(self, **values: str) -> str:
        """Return the path of the file with these values, relative to the root."""
        quoted = {
            name: value if name == _ANY_DEPTH else quote(value, safe="")
            for name, value in values.items()
        }
        return self.template.format(**quoted)

    def folder_of(self, values: Mapping[str, str]) -> str:
        """Return the innermost folder that holds all files with these values."""
        folders: list[str] = []
        for part in self.template.split("/")[:-1]:
            if not values.keys() >= set(_NAME.findall(part)):
                break
            folders.append(Place(self.engine, part).path(**values))
        return "/".join(folders)

    def parse(self, path: str) -> Mapping[str, str] | None:
        """Return the values in the path of a file, or None for a path of something else."""
        found = _pattern(self.template).fullmatch(path)
        if found is None:
            return None
        return {
            name: value if name == _ANY_DEPTH else unquote(value)
            for name, value in found.groupdict().items()
        }


# The names in a path that make up the key of a partition: the first of these that a path has.
_UNIT_NAMES = (
    ("year", "month", "day"),
    ("country", "category", "date"),
    ("date",),
    ("day",),
    ("month",),
    ("institution",),
    ("batch",),
)


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = _NAME.split(template)
    # Odd parts are names; a name that occurs twice stands for the same value.
    seen: set[str] = set()
    pattern = ""
    for number, part in enumerate(parts):
        if number % 2 == 0:
            pattern += re.escape(part)
        else:
            any_value = ".+" if part == _ANY_DEPTH else "[^/]+"
            pattern += f"(?P={part})" if part in seen else f"(?P<{part}>{any_value})"
            seen.add(part)
    return re.compile(pattern)


def parquet(template: str) -> Place:
    """Return the place of Parquet files."""
    return Place("parquet", template)


WHOLE = "all"
"""The partition key of a dataset that has no partitions."""
PartitionKey = Literal["whole", "day", "month", "batch", "survey_day", "institution", "range"]
"""What a partition is; `whole` is a dataset without partitions."""


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """Which partitions of a parent a partition is built from.

    `same`: the one with the same key. `window`: its own day and the days before it, `days` in all.
    `all_before`: its own day and all earlier ones. `of_month`, `of_survey_day`: those that belong
    to it. `known_in_month`: the batches until the end of a month, and the first later one of each
    country and category that had none until then. `every`: all.
    """

    kind: Literal[
        "same", "window", "all_before", "of_month", "of_survey_day", "known_in_month", "every"
    ]
    days: int = 1

    def is_input(self, parents: Collection[str]) -> Callable[[str], bool]:
        """Return what tells of an own partition whether one of these of the parent is an input."""
        units = sorted(parents)
        if self.kind == "every":
            return lambda _own: bool(units)
        if self.kind in ("window", "all_before"):
            return lambda own: bisect_left(units, self.first(own)) < bisect_right(units, own)
        if self.kind == "known_in_month":
            first = min(map(batch_month, units), default="9999-99")
            return lambda own: first <= own
        owners = {self.own(unit) for unit in units}
        return lambda own: own in owners

    def first(self, own: str) -> str:
        """Return the first day of the parent that a day is built from."""
        if self.kind != "window":
            return ""
        return (date.fromisoformat(own) - timedelta(days=self.days - 1)).isoformat()

    def own(self, parent: str) -> str:
        """Return the own partition that a partition of the parent belongs to."""
        if self.kind == "of_month":
            return parent[: len("2025-11")]
        return parent.rpartition("|")[2] if self.kind == "of_survey_day" else parent


def batch_month(batch: str) -> str:
    """Return the month of a batch of research, whose key ends in its day."""
    return batch.rpartition("|")[2][: len("2025-11")]


SAME = PartitionMap("same")
ALL_BEFORE = PartitionMap("all_before")
OF_MONTH = PartitionMap("of_month")
OF_SURVEY_DAY = PartitionMap("of_survey_day")
KNOWN_IN_MONTH = PartitionMap("known_in_month")
EVERY = PartitionMap("every")


def window(days: int) -> PartitionMap:
    """Return the mapping to a day and the days before it, `days` in all."""
    return PartitionMap("window", days)


@dataclass(frozen=True, slots=True)
class ParentDataset:
    """A dataset that another one is built from; `is_followed` is False if it only informs it."""

    dataset: str
    partitions: PartitionMap = SAME
    is_followed: bool = True


@dataclass(frozen=True, slots=True)
class Freshness:
    """The hours after which an asset that was not built is shown as late, and as failed."""

    warn_hours: int
    fail_hours: int


class Sensitivity(StrEnum):
    """How carefully the rows must be handled."""

    texts = "third-party-text"  # under other people's copyright, with names of persons
    facts = "public-facts"  # counts, addresses and rules that are public on the web
    work = "working-data"  # used by operators and editors only


Removal = Literal["rows", "rebuild", "files", "never"]
"""How a takedown reaches a dataset.

`rows`: rows are removed by the roles of the columns. `rebuild`: partitions are built again from
their parents, without what is taken down. `files`: whole files are deleted. `never`: the dataset
belongs to others, or contains no pages.
"""


@dataclass(frozen=True, slots=True)
class RowSentence:
    """What `explain` says about a row: columns in braces are filled in.

    `at` is the column with the time of the row, `source` says where the row comes from.
    """

    text: str
    state: str = "stored"
    at: str = ""
    source: str = ""


# What Dagster shows as the technology of a dataset, unless its declaration says more.
_KINDS: Mapping[Engine, frozenset[str]] = {
    "parquet": frozenset({"parquet"}),
    "delta": frozenset({"deltalake"}),
    "sql": frozenset({"sql"}),
    "files": frozenset({"json"}),
    "store": frozenset({"json", "gzip"}),
    "index": frozenset({"tantivy"}),
    "view": frozenset({"view"}),
}
FingerprintSource = Literal["markers", "collected", "files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """The declaration of a dataset.

    `row` says what one row is. `beside` has the templates of further files that belong to it, such
    as manifests. Partition columns are in the path only and are strings. `version` is that of the
    code that makes the rows, None if an outside system writes them. `options` names the fields of
    the feature's options that the rows depend on. `keep` is the days that it is kept, or the
    setting that has them; empty: for good. `freshness` is a reason where there is no limit. `page`
    is its page of the docs, by default that of its group; `explorer` is the page of the explorer
    that shows it. A dataset with `is_asset=False` is written by the asset of another, `written_by`.
    `sources` maps `dataset.column` to the columns that are made from it, and the empty name to
    columns without a source; all others come from the columns of the same name and role in the
    parents. `per_run` partitions may share a run. When `version` is raised, a dataset that
    `follows_version` becomes stale; others only count as outdated. `fingerprint` says what tells
    the states of a partition apart: its marker, the markers of its collected WARCs, or the content
    of its files. `sentence` is what `explain` says about a row.
    """

    name: str
    group: str
    row: str
    description: str
    place: Place
    beside: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    partition_columns: tuple[Column, ...] = ()
    partitions: PartitionKey = "whole"
    parents: tuple[ParentDataset, ...] = ()
    version: str | None = None
    options: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    sensitivity: Sensitivity = Sensitivity.facts
    cost: Literal["low", "medium", "high"] = "low"
    freshness: Freshness | str = ""
    keep: int | str = ""
    removal: Removal = "rows"
    page: str = ""
    explorer: str = "/status"
    written_by: str = ""
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    per_run: int = 1
    follows_version: bool = False
    fingerprint: FingerprintSource = "markers"
    sentence: RowSentence | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", self.kinds or _KINDS.get(self.place.engine, frozenset()))
        object.__setattr__(self, "page", self.page or f"{self.group}.md")

    @property
    def is_asset(self) -> bool:
        """Return whether the dataset is an asset of the graph."""
        return not self.written_by and self.place.engine != "view"

    def holds(self, path: str) -> bool:
        """Return whether a file of this path belongs to the dataset."""
        return any(place.holds(path) for place in self.places)

    @property
    def places(self) -> tuple[Place, ...]:
        """Return the place of its rows, and those of the files beside them."""
        return (self.place, *(Place("files", template) for template in self.beside))

    @property
    def writer(self) -> str:
        """Return the asset that writes it, under whose name its markers are."""
        return self.written_by or self.name

    def unit(self, values: Mapping[str, str]) -> str:
        """Return the partition, or the day of a file per day, with these values in its path."""
        names = next((names for names in _UNIT_NAMES if names[0] in values), ())
        separator = "-" if "year" in names else "|"
        return separator.join(values[name] for name in names) or WHOLE

    def unit_of(self, path: str) -> str | None:
        """Return the partition that a file belongs to, or None for a file of something else."""
        values = self.place.parse(path)
        return self.unit(values) if values is not None else None

    def unit_folder(self, unit: str) -> str:
        """Return the innermost folder that holds all files of a partition."""
        names = next((names for names in _UNIT_NAMES if f"{{{names[0]}}}" in self.path), ())
        separator = "-" if "year" in names else "|"
        given = dict(zip(names, unit.split(separator), strict=True)) if len(names) > 1 else {}
        return self.place.folder_of(given or dict.fromkeys(names, unit))

    @property
    def path(self) -> str:
        """Return the pattern of its files under the root, or the name of its table."""
        return self.place.template

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """Return the columns in the files, in the order they are written."""
        return {column.name: column.dtype for column in self.columns}

    @property
    def full_schema(self) -> Mapping[str, pl.DataType]:
        """Return all columns of a reader: those in the files, then those in the path."""
        return {column.name: column.dtype for column in self.all_columns}

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """Return the columns in the files, then those in the path."""
        return (*self.columns, *self.partition_columns)

    def columns_of(self, *roles: Role) -> tuple[str, ...]:
        """Return the names of the columns with one of these roles, in order."""
        return tuple(column.name for column in self.all_columns if column.role in roles)
