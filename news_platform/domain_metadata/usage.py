"""Read the stored surveys and decide whether a crawler may use a site for a purpose.

usage_policy("example.com", "GPTBot", "ai_train", root="data").verdict
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from news_platform.datasets.domain_metadata import ROBOTS_FILE, DomainMetadata, domain_folder
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.pipeline import METADATA_DATASET
from news_platform.domain_metadata.results import read_metadata
from news_platform.domain_metadata.signals.statements import PURPOSES, Purpose
from news_platform.domain_metadata.signals.verdict import Decision, Finding, Verdict, decide
from news_platform.domain_metadata.usage_fetch import statements_of
from news_platform.errors import InputError
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import NotFound, ObjectStore, open_store
from news_platform.text.readable import as_day
from news_platform.web.robots import Robots
from news_platform.web.urls import registrable_domain


@dataclass(frozen=True, slots=True)
class UsagePolicy:
    """A verdict, the statements that led to it, and the survey that they come from.

    `verdict` is allow, refuse, partial, unspecified or conflicting; treat conflicting as a refusal.
    `surveyed_at` is None if the domain was never surveyed: then nothing is known about it.
    """

    domain: str
    bot: str
    purpose: Purpose
    path: str
    verdict: Verdict
    statements: tuple[Finding, ...] = ()
    surveyed_at: datetime | None = None


def usage_policy(
    domain: str,
    bot: str,
    purpose: str,
    *,
    root: str | Path | ObjectStore,
    at: datetime | date | str | None = None,
    path: str = "/",
) -> UsagePolicy:
    """Return what a site stated about a crawler and a purpose at a time, by default now.

    The last survey not after `at` counts, or else the first one after it. `path` is a path of the
    site; `/` asks about the site as a whole.
    """
    name, use = registrable_domain(domain), parse_purpose(purpose)
    store = root if isinstance(root, ObjectStore) else open_store(str(root))
    found = survey_at(store, name, at=_instant(at))
    if found is None:
        return UsagePolicy(name, bot, use, path, "unspecified")
    batch, facts = found
    decision = decision_of(store, batch, facts, bot=bot, purpose=use, path=path)
    return UsagePolicy(
        name, bot, use, path, decision.verdict, decision.findings, facts.collected_at
    )


def decision_of(
    store: ObjectStore,
    batch: PartitionInfo,
    facts: DomainMetadata,
    *,
    bot: str,
    purpose: Purpose,
    path: str = "/",
) -> Decision:
    """Return the verdict that follows from one stored survey."""
    statements = statements_of(facts.usage) if facts.usage is not None else []
    rules, source = survey_rules(store, batch, facts)
    return decide(statements, rules=rules, bot=bot, purpose=purpose, path=path, source=source)


def survey_at(
    store: ObjectStore, domain: str, *, at: datetime | None
) -> tuple[PartitionInfo, DomainMetadata] | None:
    """Return the last conclusive survey of a domain not after `at`, else the first after it."""
    later: tuple[PartitionInfo, DomainMetadata] | None = None
    keys = read_markers(store, METADATA_DATASET)
    for batch in sorted(map(PartitionInfo.parse, keys), key=lambda one: one.date, reverse=True):
        facts = read_metadata(store, batch, domain)
        if facts is None or facts.ai_policy is None:
            continue  # nothing was learned about the site's rules
        if at is None or facts.collected_at <= at:
            return batch, facts
        later = batch, facts
    return later


def survey_rules(
    store: ObjectStore, batch: PartitionInfo, facts: DomainMetadata
) -> tuple[Robots, str]:
    """Return the access rules of a survey and the URL that they were read from."""
    robots = next((one for one in (facts.robots, *facts.other_hosts) if one.exists), facts.robots)
    try:
        path = f"{domain_folder(batch, facts.registrable_domain)}/{_robots_file(facts)}"
        body = store.read(path)
    except NotFound:
        body = b""  # a 4xx: the site has no rules
    return Robots.parse(body), robots.final_url or robots.url


def _robots_file(facts: DomainMetadata) -> str:
    """Return the stored robots.txt that applies: that of the domain, or of its second host."""
    if facts.robots.exists:
        return ROBOTS_FILE
    other = (name for name in facts.files if name.startswith("robots.") and name != ROBOTS_FILE)
    return next(other, ROBOTS_FILE)


def parse_purpose(text: str) -> Purpose:
    """Return the purpose of this name; raise InputError for an unknown one."""
    for purpose in PURPOSES:
        if text == purpose:
            return purpose
    raise InputError(f"unknown purpose {text!r}: expected one of {', '.join(PURPOSES)}", thing=text)


def _instant(at: datetime | date | str | None) -> datetime | None:
    """Return the end of a day, or an instant as it is; one without a zone is UTC."""
    if at is None:
        return None
    if isinstance(at, datetime):
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    day = as_day(at)
    return datetime(day.year, day.month, day.day, 23, 59, 59, 999_999, tzinfo=UTC)
