"""Research files as users upload them, and the queue with one durable message per domain.

A file `raw/country=CC/category=CAT/date=D/raw_NNNN.json` is immutable. The empty file
`….json.success` next to it marks that its domains are queued. `raw_metadata.json` is for people and
is never queued.
"""

import datetime
import re
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    Dataset,
    ParentDataset,
    Place,
    Role,
    Sensitivity,
    model_columns,
)
from news_platform.errors import InputError

RAW_FOLDER = "raw"
RAW_METADATA = "raw_metadata.json"
SUCCESS_SUFFIX = ".success"

_RAW_FILE = re.compile(r"raw_([0-9]{4,})\.json")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PLACE = re.compile(r"country=([^/]+)/category=([^/]+)/date=([^/]+)/([^/]+)")

Country = Annotated[str, Field(pattern=r"^[A-Za-z]{2}$", description="two-letter country code")]
Category = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$", description="kind of source")
]


class PartitionInfo(BaseModel):
    """A batch of research: one country, one category, one day."""

    model_config = ConfigDict(frozen=True)

    country: Country
    category: Category
    date: datetime.date

    @property
    def key(self) -> str:
        """Return the partition key, `cc|category|YYYY-MM-DD`."""
        return f"{self.country}|{self.category}|{self.date}"

    @property
    def folder(self) -> str:
        """Return the folder of the batch, the same under `raw/` and `prod/`."""
        return f"country={self.country}/category={self.category}/date={self.date}"

    @classmethod
    def of(cls, country: str, category: str, day: str | datetime.date) -> Self:
        """Return the batch; raise InputError if one of the three values is invalid."""
        try:
            if not _DAY.fullmatch(str(day)):  # pydantic would also accept seconds since 1970
                raise ValueError(day)
            return cls.model_validate({"country": country, "category": category, "date": day})
        except ValueError as error:
            name = f"{country}|{category}|{day}"
            expected = "a two-letter country, a plain category and a date YYYY-MM-DD"
            raise InputError(f"invalid batch {name!r}: expected {expected}", thing=name) from error

    @classmethod
    def parse(cls, key: str) -> Self:
        """Return the batch of a partition key."""
        country, _, rest = key.partition("|")
        category, _, day = rest.partition("|")
        return cls.of(country, category, day)


class ResearchMeta(BaseModel):
    """How a research file was made; unknown fields are kept."""

    model_config = ConfigDict(extra="allow")

    dataset_id: str | None = None
    country: str | None = None
    category: str | None = None
    discovered_at: str | None = None
    research_methods: list[str] = Field(default_factory=list)
    queries: list[str] = Field(default_factory=list)
    engine: str | None = None
    record_count: int | None = Field(default=None, ge=0)


class ResearchRecord(BaseModel):
    """One discovered source with a domain or a URL; unknown fields are kept."""

    model_config = ConfigDict(extra="allow")

    raw_url: str | None = Field(default=None, description="the address as found")
    normalized_domain: str | None = Field(default=None, description="its domain, as found")
    domain_id: str | None = Field(default=None, description="authority:country:registrable_domain")
    source_type: str | None = Field(default=None, description="gov, edu, org, media, ...")
    discovery_method: str | None = Field(default=None, description="how it was found")
    confidence: float | None = Field(
        default=None, ge=0, le=1, description="confidence of the search"
    )
    content_hints: Any = Field(default=None, description="further notes of the search")


class EnhancedResearchDataset(BaseModel):
    """A research file: how it was made, and the sources that were found."""

    model_config = ConfigDict(extra="allow")

    meta: ResearchMeta = Field(default_factory=ResearchMeta)
    records: list[ResearchRecord]


class SeedQueueMessage(BaseModel):
    """One raw file that is to be read."""

    raw_file_path: str
    partition_info: PartitionInfo


def is_raw_file(name: str) -> bool:
    """Return whether a file name is research data, not metadata, a marker or anything else."""
    return _RAW_FILE.fullmatch(name) is not None


def raw_file_number(name: str) -> int:
    """Return the NNNN of `raw_NNNN.json`, or 0 for any other name."""
    found = _RAW_FILE.fullmatch(name)
    return int(found.group(1)) if found else 0


def seed_message(path: str) -> SeedQueueMessage | None:
    """Return the message for a path under `raw/`, or None if it is not research data."""
    place = _PLACE.fullmatch(path.removeprefix(f"{RAW_FOLDER}/"))
    if place is None or not path.startswith(f"{RAW_FOLDER}/") or not is_raw_file(place.group(4)):
        return None
    batch = PartitionInfo.of(place.group(1), place.group(2), place.group(3))
    return SeedQueueMessage(raw_file_path=path, partition_info=batch)


RESEARCH_DATASETS = Dataset(
    name="research_datasets",
    group="domain_metadata",
    description="Research files as uploaded, never changed. A batch is one country, one category "
    "and one day.",
    row="one source found by research",
    place=Place("external", "raw/country={country}/category={category}/date={date}/{file}"),
    fingerprint="files",
    columns=model_columns(ResearchRecord, raw_url=Role.url, normalized_domain=Role.domain),
    partitions="batch",
    kinds=frozenset({"json"}),
    removal="never",
    freshness="changes when research files are uploaded or domains are surveyed again",
)


class DomainQueueMessage(BaseModel):
    """One domain to survey."""

    model_config = ConfigDict(frozen=True)

    domain_id: str = Field(description="authority:country:registrable_domain")
    domain_url: str = Field(description="the address as found; its host is surveyed too")
    registrable_domain: str = Field(description="lower-case punycode, or an IP address")
    authority: str = Field(description="source class: gov, edu, org, media, ...")
    partition_info: PartitionInfo = Field(description="the batch: country, category, date")
    source_file_path: str | None = Field(default=None, description="research file that names it")


DOMAIN_QUEUE = Dataset(
    name="domain_queue",
    group="domain_metadata",
    description="One durable message for every domain in the research files of a batch.",
    row="one domain to survey",
    place=Place("sql", "domain_queue"),
    beside=(
        "domain_queue/clock.json",
        "quarantine/research/country={country}/category={category}/date={date}/{file}",
    ),
    columns=model_columns(
        DomainQueueMessage,
        domain_url=Role.url,
        registrable_domain=Role.domain,
        source_file_path=Role.fact,
    ),
    partitions="batch",
    parents=(ParentDataset("research_datasets"),),
    version=versions.DOMAIN_QUEUE,
    per_run=7,
    sensitivity=Sensitivity.work,
    freshness="changes when research files are uploaded or domains are surveyed again",
    sources={
        "research_datasets.domain_id": ("domain_id",),
        "research_datasets.source_type": ("domain_id", "authority"),
        "research_datasets.raw_url": ("domain_url", "registrable_domain"),
        "research_datasets.normalized_domain": ("registrable_domain",),
    },
)
