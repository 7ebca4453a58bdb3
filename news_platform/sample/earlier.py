"""Pure: a survey made before the world's own, brought along from another root.

One outlet had not yet spoken to AI crawlers then, so the two days differ in the policies they show.
"""

from datetime import UTC, datetime, time
from hashlib import sha256

from news_platform.datasets.domain_metadata import (
    METADATA_FILE,
    ROBOTS_FILE,
    SUCCESS_FILE,
    AiPolicyFacts,
    DomainMetadata,
    RobotsFacts,
    SitemapFacts,
    SourceFacts,
    sanitized_domain,
)
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.sample.dates import DAYS
from news_platform.web.ai_bots import AI_BOTS_VERSION
from news_platform.web.robots import Robots

EARLIER_KEY = "marsa"
EARLIER_DAY = DAYS[0]

_DOMAIN = "almarsa.example"
_ORIGIN = f"https://{_DOMAIN}"
_BATCH = PartitionInfo.of("ma", "news", EARLIER_DAY)
_ASKED_AT = datetime.combine(EARLIER_DAY, time(20), tzinfo=UTC)
_ROBOTS = b"""\
User-agent: *
Disallow: /admin/
Disallow: /search

Sitemap: https://almarsa.example/sitemap_index.xml
"""


def earlier_survey() -> dict[str, bytes]:
    """Return the files of the earlier survey by their path under the folder of results."""
    folder = f"{_BATCH.folder}/{sanitized_domain(_DOMAIN)}"
    return {
        f"{folder}/{ROBOTS_FILE}": _ROBOTS,
        f"{folder}/{METADATA_FILE}": _facts().model_dump_json(indent=1).encode(),
        f"{folder}/{SUCCESS_FILE}": b"",
    }


def _facts() -> DomainMetadata:
    digest = sha256(_ROBOTS).hexdigest()
    return DomainMetadata(
        domain_id=f"media:ma:{_DOMAIN}",
        registrable_domain=_DOMAIN,
        **_BATCH.model_dump(),
        collected_at=_ASKED_AT,
        outcome="ok",
        final=True,
        final_origin=_ORIGIN,
        robots=_robots_facts(digest),
        # The sitemap that robots.txt promises was not there yet.
        sitemap=SitemapFacts(
            url=f"{_ORIGIN}/sitemap_index.xml",
            found_by="robots",
            final_url=f"{_ORIGIN}/sitemap_index.xml",
            status_code=404,
            fetched_at=_ASKED_AT,
        ),
        ai_policy=_policy(),
        source=SourceFacts(
            raw_file_path=f"raw/{_BATCH.folder}/raw_0001.json",
            domain_url=f"{_ORIGIN}/",
            authority="media",
        ),
        files={ROBOTS_FILE: digest},
    )


def _robots_facts(digest: str) -> RobotsFacts:
    return RobotsFacts(
        host=_DOMAIN,
        url=f"{_ORIGIN}/{ROBOTS_FILE}",
        final_url=f"{_ORIGIN}/{ROBOTS_FILE}",
        status_code=200,
        exists=True,
        content_length=len(_ROBOTS),
        sha256=digest,
        fetched_at=_ASKED_AT,
        sitemap_urls=list(Robots.parse(_ROBOTS).sitemaps),
    )


def _policy() -> AiPolicyFacts:
    policies = Robots.parse(_ROBOTS).ai_policies().values()
    return AiPolicyFacts(
        list_version=AI_BOTS_VERSION,
        policies={policy.bot: policy.policy for policy in policies},
        own=[policy.bot for policy in policies if policy.source == "own"],
    )
