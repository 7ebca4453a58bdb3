"""The domain_queue dataset: one durable message per domain of a research batch."""

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
from news_platform.datasets.research_datasets import PartitionInfo

DATASET = "domain_queue"


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
    name=DATASET,
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
    kinds=frozenset({"sql"}),
    sensitivity=Sensitivity.work,
    page="domain_metadata.md",
    freshness="changes only when research files are uploaded",
    sources={
        "research_datasets.domain_id": ("domain_id",),
        "research_datasets.source_type": ("domain_id", "authority"),
        "research_datasets.raw_url": ("domain_url", "registrable_domain"),
        "research_datasets.normalized_domain": ("registrable_domain",),
    },
)
