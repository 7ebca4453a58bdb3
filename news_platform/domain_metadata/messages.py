"""Turn research records into queue messages, or return the reason why a record has none."""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from news_platform.datasets.research_datasets import (
    DomainQueueMessage,
    ResearchRecord,
    SeedQueueMessage,
)
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary
from news_platform.takedowns.match import Takedowns
from news_platform.text.normalize import scrub_json
from news_platform.web.urls import registrable_domain, url_host

UNKNOWN_AUTHORITY = "unknown"

# Letters, digits and hyphens as in RFC 1123, and the underscore that some real hosts use.
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_DOMAIN = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})+")
# A plain URL has no user info or backslash, about which URL parsers disagree.
_WEB_URL = re.compile(r"https?://[^\s/?#]", re.IGNORECASE)
_PLAIN_URL = re.compile(r"https?://[^\s/?#\\@]+(?:[/?#]|$)", re.IGNORECASE)
# The authority is part of `domain_id`, whose parts are separated by colons.
_PLAIN_AUTHORITY = re.compile(r"[^a-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class DroppedResearchRecord:
    """A record that cannot be queued; `index` is its position in the file."""

    index: int
    reason: str
    record: object


def iter_messages(
    records: Iterable[object], *, seed: SeedQueueMessage
) -> Iterator[DomainQueueMessage | DroppedResearchRecord]:
    """Yield one message per domain, from its first record, and the records that were dropped."""
    # The queue keeps one message per batch and domain as well; this saves the later ones the trip.
    seen: set[str] = set()
    for index, record in enumerate(records):
        found: DomainQueueMessage | str = INTERNAL_ERROR
        with boundary("research record", f"{seed.raw_file_path}#{index}"):
            record = scrub_json(record)
            found = message_of(record, seed=seed)
        if isinstance(found, str):
            yield DroppedResearchRecord(index, found, record)
        elif found.registrable_domain not in seen:
            seen.add(found.registrable_domain)
            yield found


def message_of(record: object, *, seed: SeedQueueMessage) -> DomainQueueMessage | str:
    """Return the message of a record, or the reason why it is dropped."""
    try:
        known = ResearchRecord.model_validate(record)
    except ValidationError as error:
        field = ".".join(map(str, error.errors()[0]["loc"])) or "record"
        return f"bad_{field}"
    named = (known.normalized_domain or "").strip() or (known.raw_url or "").strip()
    if not named:
        return "no_domain"
    domain = registrable_domain(named)
    if not is_domain(domain):
        return "not_a_domain"
    authority = _authority(known.source_type)
    return DomainQueueMessage(
        domain_id=f"{authority}:{seed.partition_info.country}:{domain}",
        domain_url=_domain_url(known.raw_url, domain),
        registrable_domain=domain,
        authority=authority,
        partition_info=seed.partition_info,
        source_file_path=seed.raw_file_path,
    )


def is_domain(name: str) -> bool:
    """Return whether a name can be fetched: ASCII labels with a dot, or an IP address."""
    if _DOMAIN.fullmatch(name):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _authority(source_type: str | None) -> str:
    return _PLAIN_AUTHORITY.sub("_", (source_type or "").strip().lower()) or UNKNOWN_AUTHORITY


def _domain_url(raw_url: str | None, domain: str) -> str:
    """Return the record's URL if it belongs to this domain, or else the domain's front page.

    Of a URL with a password or with unprintable characters, only the host is kept.
    """
    url = (raw_url or "").strip()
    if not _WEB_URL.match(url) or registrable_domain(url) != domain:
        return _front_page(domain)
    if _PLAIN_URL.match(url) and url.isprintable():
        return url
    host = url_host(url)
    return _front_page(host if is_domain(host) else domain)


def _front_page(host: str) -> str:
    return f"https://[{host}]/" if ":" in host else f"https://{host}/"


def is_taken_down(record: object, takedowns: Takedowns) -> bool:
    """Return whether a record of a research file names a domain or page that is taken down."""
    given = record if isinstance(record, dict) else {}
    domain, url = given.get("normalized_domain"), given.get("raw_url")
    return takedowns.covers_domain(str(domain or "")) or takedowns.covers_url(str(url or ""))
