"""Pure: the files and batches of one generation of a bucket, to and from JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from news_platform.domain_store.layout import entries_path, records_path
from news_platform.errors import StorageError, require_format

# Of a manifest; `store.json` has a format number of its own.
FORMAT = 1


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file of a segment."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """One version of a batch: the fingerprint of its inputs and the Unix second it was added."""

    inputs: str
    taken_at: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Immutable files that hold some batches; those in `dropped` were replaced or removed."""

    name: str
    bucket: int
    files: tuple[DataFile, ...]
    batches: Mapping[str, BatchEntry]
    dropped: tuple[str, ...] = ()
    # Lookups with `since` skip a segment by it. None in manifests that have no dated records.
    last_day: date | None = None

    @property
    def live(self) -> Mapping[str, BatchEntry]:
        """Return the batches that were not dropped."""
        return {name: batch for name, batch in self.batches.items() if name not in self.dropped}

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all data files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def paths(self) -> Iterator[str]:
        """Yield every file that belongs to the segment."""
        yield from (file.path for file in self.files)
        yield entries_path(self.bucket, self.name)
        yield records_path(self.bucket, self.name)


@dataclass(frozen=True, slots=True)
class Index:
    """The index file of a generation; `sparse` has the first domain and offset of each block."""

    path: str
    size_bytes: int
    ranges_path: str
    domains: int
    records: int
    bytes: int
    fragments: int
    sparse: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation of a bucket.

    `empty` has the inputs of batches without records in this bucket. `retired` has the Unix second
    since which each older file is no longer needed.
    """

    bucket: int
    buckets: int
    generation: int
    index: Index
    # A manifest of a later format fails the validation instead of being misread.
    format: Literal[1] = 1
    segments: tuple[Segment, ...] = ()
    empty: Mapping[str, str] = field(default_factory=dict)
    retired: Mapping[str, int] = field(default_factory=dict)

    @property
    def batch_inputs(self) -> dict[str, str]:
        """Return the inputs of every batch in this generation."""
        live = {name: batch.inputs for part in self.segments for name, batch in part.live.items()}
        return {**self.empty, **live}

    @property
    def paths(self) -> set[str]:
        """Return every file that this generation needs."""
        needed = {path for segment in self.segments for path in segment.paths}
        return needed | {self.index.path, self.index.ranges_path}

    def to_json(self) -> bytes:
        """Return the manifest as JSON."""
        return _JSON.dump_json(self)


_JSON = TypeAdapter(Manifest)


def parse_manifest(body: bytes, path: str) -> Manifest:
    """Parse a manifest; raise StorageError when it is damaged or has a later format."""
    try:
        return _JSON.validate_json(body)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            if one["loc"] == ("format",):
                require_format(one["input"], FORMAT, path=path)
        raise StorageError(f"{path!r} is not a manifest: {_cause(error)}", thing=path) from error


def _cause(error: ValidationError) -> str:
    """Return the first error in a few words."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]
