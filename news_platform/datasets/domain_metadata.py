"""The survey result of one domain: `prod/…/{sanitized_domain}/domain_metadata.json`.

The same folder has robots.txt and sitemap.xml as received (a gzipped sitemap decompressed) and,
once the outcome is final, the empty file `domain_metadata.json.success`.
"""

import datetime as dt
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    EVERY,
    Column,
    Dataset,
    ParentDataset,
    Place,
    Role,
    model_columns,
)
from news_platform.datasets.research_datasets import PartitionInfo

PROD_FOLDER = "prod"
METADATA_FILE = "domain_metadata.json"
SUCCESS_FILE = "domain_metadata.json.success"
ROBOTS_FILE = "robots.txt"
SITEMAP_FILE = "sitemap.xml"

_NOT_PLAIN = re.compile(r"[^a-z0-9.-]")


class RobotsFacts(BaseModel):
    """The response of a host to the request for its robots.txt."""

    host: str
    url: str
    final_url: str | None = Field(
        default=None, description="after redirects; null if there was no response"
    )
    status_code: int | None = Field(
        default=None, description="null if there was no response; see error"
    )
    error: str | None = Field(default=None, description="reason for a missing response, one word")
    exists: bool = Field(default=False, description="whether the host sent the file this time")
    unread: str = Field(
        default="", description="why this response says nothing about the file, one word"
    )
    read_at: datetime | None = Field(
        default=None, description="when what is stored was received or confirmed; null: never"
    )
    content_length: int | None = Field(default=None, description="bytes stored")
    sha256: str | None = Field(default=None, description="of the file as last received")
    truncated: bool = Field(default=False, description="longer than the 500 KiB that are read")
    is_html: bool = Field(default=False, description="a web page was sent instead")
    tls_failed: bool = Field(default=False, description="https failed and http was tried once")
    redirects: int = 0
    fetched_at: datetime
    elapsed_seconds: float = 0.0
    crawl_delay_seconds: float | None = Field(default=None, description="Crawl-delay for our agent")
    sitemap_urls: list[str] = Field(default_factory=list)
    etag: str = Field(default="", description="sent back by the next survey; '' if there is none")
    last_modified: str = Field(default="", description="the same")
    not_modified: bool = Field(
        default=False, description="the host confirmed what the previous survey stored"
    )


class SitemapFacts(BaseModel):
    """The first sitemap of the domain that could be fetched."""

    url: str | None = Field(default=None, description="null if robots.txt disallows it")
    final_url: str | None = None
    found_by: Literal["robots", "default"] = "default"
    status_code: int | None = None
    error: str | None = None
    exists: bool = False
    kind: str | None = Field(default=None, description="urlset, index, txt, rss, atom, invalid")
    content_length: int | None = Field(default=None, description="bytes stored")
    sha256: str | None = None
    inflated: bool = Field(default=False, description="received gzipped, stored decompressed")
    fetched_at: datetime
    elapsed_seconds: float = 0.0
    url_count: int = Field(
        default=0, description="pages listed, including those in fetched child sitemaps"
    )
    child_count: int = Field(default=0, description="child sitemaps listed in an index")
    children_fetched: int = 0
    news_sitemaps: list[str] = Field(
        default_factory=list, description="sitemaps of the domain that list news, at most two"
    )
    problems: list[str] = Field(default_factory=list)
    etag: str = Field(default="", description="sent back by the next survey; '' if there is none")
    last_modified: str = Field(default="", description="the same")
    not_modified: bool = Field(
        default=False, description="the host confirmed what the previous survey stored"
    )


class AiPolicyFacts(BaseModel):
    """The policies of the robots.txt that was last read for AI crawlers.

    A policy is disallow_all, partial, allow or unspecified.
    """

    list_version: str
    everyone: str = Field(
        default="unspecified", description="policy for crawlers without a group of their own"
    )
    own: dict[str, str] = Field(
        default_factory=dict, description="crawlers with a group of their own: policy"
    )


@dataclass(frozen=True, slots=True)
class UseStatement:
    """One statement of the site about the use of its content.

    `agents` are in lower case; `*` means every crawler without a group of its own. `path` is a
    pattern of RFC 9309.
    """

    system: Annotated[
        str, Field(description="content_signal, content_usage, robots_tag, tdmrep, rsl, ...")
    ]
    source: Annotated[
        str, Field(description="URL of the file, or of the page and its header or element")
    ]
    raw: Annotated[str, Field(description="the text as stated, at most 500 characters")]
    label: Annotated[
        str, Field(description="what is spoken about: ai-train, noai, tdm-reservation, ...")
    ]
    value: Annotated[str | None, Field(description="null if it has no meaning in its system")] = (
        None
    )
    agents: Annotated[tuple[str, ...], Field(description="crawlers it binds; empty: all")] = ()
    path: Annotated[str, Field(description="pattern of the paths it covers")] = "/"
    flags: Annotated[tuple[str, ...], Field(description="what is unusual about it")] = ()
    file: Annotated[
        str, Field(description="file it was read from: robots.txt, home, tdmrep, ai.txt, ...")
    ] = ""
    line: Annotated[int | None, Field(description="line of the file; null if unknown")] = None
    sha256: Annotated[str | None, Field(description="of the file, as it was received")] = None
    read_at: Annotated[
        datetime | None, Field(description="when the file was received or confirmed")
    ] = None


class UsageFileFacts(BaseModel):
    """The response for one of the files or pages that may state how content may be used."""

    name: str = Field(description="home, tdmrep, rsl, ai.txt, llms.txt, security.txt, trust.txt")
    url: str
    status_code: int | None = Field(default=None, description="null if there was no response")
    unread: str = Field(
        default="",
        description="why it was not read this time, one word: deferred, http_503, timeout, ...",
    )
    exists: bool = Field(default=False, description="whether it was there when last read")
    size_bytes: int | None = None
    sha256: str | None = Field(default=None, description="of the file as last received")
    values: list[str] = Field(default_factory=list, description="contacts of security.txt")
    read_at: datetime | None = Field(
        default=None, description="when it was last received, confirmed or absent; null: never"
    )
    etag: str = Field(default="", description="sent back by the next survey; '' if there is none")
    last_modified: str = Field(default="", description="the same")
    not_modified: bool = Field(
        default=False, description="the host confirmed what the previous survey stored"
    )


class UsageFacts(BaseModel):
    """All that the site states about crawling and AI use besides access rules.

    What was not read this time is as it was last read, however long ago.
    """

    statements: list[UseStatement] = Field(default_factory=list)
    files: list[UsageFileFacts] = Field(default_factory=list)
    requests: int = Field(default=0, description="requests of this survey, redirects excluded")
    deferred: list[str] = Field(
        default_factory=list, description="files left to the next survey, to stay within 8 requests"
    )
    managed_robots: bool = Field(
        default=False, description="whether robots.txt has Cloudflare's managed block"
    )
    verdicts: dict[str, str] = Field(
        default_factory=dict,
        description="purpose: verdict for a crawler without a group of its own",
    )
    stale: list[str] = Field(
        default_factory=list,
        description="purposes whose verdict lacks statements last read over 90 days before",
    )


class SourceFacts(BaseModel):
    """The origin of the domain."""

    raw_file_path: str | None = None
    domain_url: str
    authority: str


class DomainMetadata(BaseModel):
    """The summary of the survey of one domain."""

    schema_version: int = Field(default=1, description="increases when a field changes its meaning")
    domain_id: str = Field(description="authority:country:registrable_domain")
    registrable_domain: str = Field(description="lower-case punycode, or an IP address")
    country: str = Field(description="country of the batch; zz for domains from the crawl")
    category: str = Field(description="category of the batch")
    date: dt.date = Field(description="day of the batch")
    collected_at: datetime = Field(description="when the survey of the domain ended")
    outcome: str = Field(description="ok, no_robots, nxdomain, or why the domain is not finished")
    final: bool = Field(
        description="whether .success is written; if not, the domain is tried again"
    )
    final_origin: str | None = Field(default=None, description="scheme and host that responded")
    robots: RobotsFacts = Field(description="response of its host for robots.txt")
    other_hosts: list[RobotsFacts] = Field(
        default_factory=list, description="the same for a second host, if the address has one"
    )
    sitemap: SitemapFacts = Field(description="its first sitemap that could be fetched")
    ai_policy: AiPolicyFacts | None = Field(
        default=None, description="null if no robots.txt was ever read"
    )
    usage: UsageFacts | None = Field(
        default=None, description="null if no robots.txt was ever read"
    )
    source: SourceFacts = Field(description="origin of the domain")
    files: dict[str, str] = Field(default_factory=dict, description="file: sha256 of its bytes")


def sanitized_domain(domain: str) -> str:
    """Return the folder name of a domain, without characters that could change the path."""
    # `.` and `..` would lead out of the folder.
    plain = _NOT_PLAIN.sub("_", domain.lower())
    return plain.replace(".", "_") or "_" if not plain.strip(".") else plain


def domain_folder(batch: PartitionInfo, domain: str) -> str:
    """Return the folder of the results of a domain, relative to the root."""
    return f"{PROD_FOLDER}/{batch.folder}/{sanitized_domain(domain)}"


DOMAIN_METADATA = Dataset(
    name="domain_metadata",
    group="domain_metadata",
    description="The robots.txt, sitemap and AI policies of every domain of a batch.",
    row="one surveyed domain, stored as a folder of files",
    place=Place("files", "prod/country={country}/category={category}/date={date}/{domain}/{file}"),
    columns=model_columns(
        DomainMetadata,
        registrable_domain=Role.domain,
        final_origin=Role.links,
        source=Role.links,
        collected_at=Role.time,
        date=Role.day,
    ),
    partition_columns=(Column("domain", Role.domain, "domain, as a name of a folder"),),
    partitions="batch",
    parents=(
        ParentDataset("domain_queue"),
        ParentDataset("domain_catalog", EVERY, is_followed=False),
    ),
    version=versions.AI_BOTS,
    per_run=7,
    cost="medium",
    removal="files",
    explorer="/policies",
    freshness="changes when research files are uploaded or domains are surveyed again",
    sources={"domain_queue.source_file_path": ("source",), "domain_queue.domain_url": ("source",)},
)
