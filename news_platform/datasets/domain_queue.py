"""The domain_queue dataset: one durable message per domain of a research batch."""

from pydantic import BaseModel, ConfigDict, Field

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
