"""Research files as an outside pipeline uploads them, and an earlier survey of one outlet."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
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
from news_platform.sample.chance import Chance
from news_platform.sample.dates import DAYS
from news_platform.sample.institutions import institutions
from news_platform.sample.outlets import OUTLETS
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
        # The sitemap that robots.txt names did not exist yet.
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


@dataclass(frozen=True, slots=True)
class Found:
    """One site that the researchers found."""

    url: str
    country: str
    category: str
    source_type: str
    hints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """What was searched for, and on which day."""

    country: str
    category: str
    day: date

    @property
    def folder(self) -> str:
        """Return the path of the batch under the research folder."""
        return f"country={self.country}/category={self.category}/date={self.day.isoformat()}"


# Outside files contain mistakes: this record has no URL and an impossible confidence.
_BAD_RECORD: dict[str, object] = {
    "raw_url": "",
    "normalized_domain": None,
    "source_type": "media",
    "confidence": 1.7,
}


def research_files() -> dict[str, bytes]:
    """Return every research file by its path under the research folder."""
    files: dict[str, bytes] = {}
    for batch, found in _batches():
        records = [_record(site, rank) for rank, site in enumerate(found)]
        files[f"{batch.folder}/raw_0001.json"] = _dataset(batch, records, number=1)
        if batch.country == "gb" and batch.category == "news":
            # A second search finds one site again, under a longer URL.
            again = [{**records[0], "raw_url": f"{found[0].url}politics"}, _BAD_RECORD]
            files[f"{batch.folder}/raw_0002.json"] = _dataset(batch, again, number=2)
            files[f"{batch.folder}/raw_metadata.json"] = _notes(batch)
    return files


def _batches() -> Iterator[tuple[SampleBatch, list[Found]]]:
    found = [*_outlets(), *_institutions()]
    keys = sorted({(site.country, site.category) for site in found})
    for number, (country, category) in enumerate(keys):
        sites = [site for site in found if (site.country, site.category) == (country, category)]
        yield SampleBatch(country, category, DAYS[number % len(DAYS)]), sites
    outlet = next(outlet for outlet in OUTLETS if outlet.key == EARLIER_KEY)
    before = [site for site in found if site.url == f"{outlet.origin}/"]
    yield SampleBatch(outlet.country, "news", EARLIER_DAY), before


def _outlets() -> Iterator[Found]:
    for outlet in OUTLETS:
        hints = (outlet.language, outlet.feed.kind)
        category = "sports" if outlet.key == "tidewater" else "news"
        yield Found(f"{outlet.origin}/", outlet.country, category, "media", hints)


def _institutions() -> Iterator[Found]:
    for institution in institutions():
        kind = "org" if "hospital" in institution.id else "edu"
        url = f"{institution.origin}{institution.pages[0].path}"
        yield Found(url, institution.country, "education", kind, ("departments",))


def _record(site: Found, rank: int) -> dict[str, object]:
    domain = _domain(site.url.split("/")[2])
    return {
        "raw_url": site.url,
        "normalized_domain": domain,
        "domain_id": f"{site.source_type}:{site.country}:{domain}",
        "source_type": site.source_type,
        "discovery_method": ("search", "directory", "link")[rank % 3],
        "confidence": Chance("confidence", site.url).number(60, 99) / 100,
        "content_hints": list(site.hints),
    }


def _domain(host: str) -> str:
    labels = host.split(".")
    return ".".join(labels[-3:] if labels[-2] == "co" else labels[-2:])


def _dataset(batch: SampleBatch, records: Sequence[dict[str, object]], *, number: int) -> bytes:
    meta = {
        "dataset_id": f"{batch.country}-{batch.category}-{batch.day:%Y%m%d}-{number:04d}",
        "country": batch.country,
        "category": batch.category,
        "discovered_at": f"{batch.day.isoformat()}T06:30:00Z",
        "research_methods": ["search", "directory", "link"],
        "queries": [f"{batch.category} {batch.country}", f"daily {batch.category}"],
        "engine": "sample",
        "record_count": len(records),
    }
    return _json({"meta": meta, "records": records})


def _notes(batch: SampleBatch) -> bytes:
    note = "The second file was made after a reader pointed out a missing address."
    return _json({"country": batch.country, "category": batch.category, "notes": note})


def _json(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"
