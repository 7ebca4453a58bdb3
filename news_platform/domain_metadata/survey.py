"""One domain in, its robots.txt, sitemap and facts out: what is asked, and in which order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from news_platform.datasets.domain_metadata import (
    ROBOTS_FILE,
    SITEMAP_FILE,
    AiPolicyFacts,
    DomainMetadata,
    RobotsFacts,
    SitemapFacts,
    SourceFacts,
    sanitized_domain,
)
from news_platform.datasets.domain_queue import DomainQueueMessage
from news_platform.domain_metadata.fetchers import (
    Clock,
    FoundSitemap,
    HostRobots,
    SurveyFetchOptions,
    count_children,
    fetch_robots,
    fetch_sitemap,
)
from news_platform.domain_metadata.messages import is_domain
from news_platform.web.ai_bots import AI_BOTS_VERSION
from news_platform.web.fetch import PoliteFetcher
from news_platform.web.robots import AiStance, policies_of
from news_platform.web.urls import url_host

OutcomeStatus = Literal["final", "retry", "give_up"]

# Asking again within minutes would only repeat these; the next run may find another internet.
_NOT_RETRIED = frozenset({"blocked_address", "blocked_port", "bad_url", "too_many_redirects"})
# Come back later, says the server; every 5xx says so too, and a 1xx is no answer yet.
_RETRY_STATUSES = frozenset({408, 425, 429})
# A name that is missing once may be a name server's hiccup.
_TRIES_TO_CONFIRM_NXDOMAIN = 2


@dataclass(frozen=True, slots=True)
class SurveyOutcome:
    """One word to count by, and what follows from it; only `final` earns the success marker."""

    name: str
    status: OutcomeStatus


OK = SurveyOutcome("ok", "final")
NO_ROBOTS = SurveyOutcome("no_robots", "final")


def outcome_of(robots: list[RobotsFacts], sitemap: SitemapFacts, *, tries: int) -> SurveyOutcome:
    """Sum up a domain: its best robots.txt decides, then its sitemap must not be in doubt."""
    best = min((robots_outcome(facts, tries=tries) for facts in robots), key=_outcome_rank)
    if best.status != "final" or best.name == "nxdomain":
        return best
    reason = sitemap_retry_reason(sitemap)
    return SurveyOutcome(f"sitemap_{reason}", "retry") if reason else best


def robots_outcome(facts: RobotsFacts, *, tries: int) -> SurveyOutcome:
    """Judge the answer of one host."""
    if facts.status_code is not None:
        return _status_outcome(facts.status_code)
    reason = facts.error or "network"
    if reason == "nxdomain":
        confirmed = tries >= _TRIES_TO_CONFIRM_NXDOMAIN
        return SurveyOutcome("nxdomain", "final" if confirmed else "retry")
    return SurveyOutcome(reason, "give_up" if reason in _NOT_RETRIED else "retry")


def sitemap_retry_reason(facts: SitemapFacts) -> str | None:
    """Return why a sitemap may still turn up, None when its absence or presence is certain."""
    if facts.status_code is not None:
        outcome = _status_outcome(facts.status_code)
        return outcome.name if outcome.status == "retry" else None
    if facts.error is None or facts.error == "nxdomain" or facts.error in _NOT_RETRIED:
        return None
    return facts.error


def _status_outcome(status: int) -> SurveyOutcome:
    if 200 <= status < 300:
        return OK
    if status >= 500 or status < 200 or status in _RETRY_STATUSES:
        return SurveyOutcome(f"http_{status}", "retry")
    return NO_ROBOTS


def _outcome_rank(outcome: SurveyOutcome) -> int:
    """Order outcomes from the one that tells most; equal ones keep the first host's."""
    if outcome == OK:
        return 0
    if outcome == NO_ROBOTS:
        return 1
    return 3 if outcome.name == "nxdomain" else 2


_AUTHORITY_END = re.compile(r"[/?#]")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as it came, to be stored beside the facts."""

    name: str
    body: bytes
    sha256: str


@dataclass(frozen=True, slots=True)
class SurveyResult:
    """The result for one domain: its facts, its outcome, and the files as they came."""

    metadata: DomainMetadata
    outcome: SurveyOutcome
    files: tuple[StoredFile, ...]
    retry_after: str | None = None


async def survey_domain(
    message: DomainQueueMessage,
    *,
    fetcher: PoliteFetcher,
    clock: Clock,
    options: SurveyFetchOptions,
    tries: int = 1,
) -> SurveyResult:
    """Ask a domain, and the host it was found under, for robots.txt and a sitemap.

    `tries` says how often this run has asked already, this time included. Nothing is raised: what
    went wrong is the outcome.
    """
    hosts = [
        await fetch_robots(host, fetcher=fetcher, clock=clock, user_agent=options.user_agent)
        for host in _hosts(message)
    ]
    found = await _sitemap(hosts, fetcher=fetcher, clock=clock, options=options)
    outcome = outcome_of([host.facts for host in hosts], found.facts, tries=tries)
    files = tuple(_files(hosts, found))
    speaker = _authoritative_host(hosts)
    metadata = DomainMetadata(
        domain_id=message.domain_id,
        registrable_domain=message.registrable_domain,
        country=message.partition_info.country,
        category=message.partition_info.category,
        date=message.partition_info.date,
        collected_at=clock(),
        outcome=outcome.name,
        final=outcome.status == "final",
        final_origin=_origin(speaker) if speaker else None,
        robots=hosts[0].facts,
        other_hosts=[host.facts for host in hosts[1:]],
        sitemap=found.facts,
        ai_policy=_ai_policy(speaker),
        source=_source(message),
        files={file.name: file.sha256 for file in files},
    )
    waits = (found.retry_after, *(host.retry_after for host in hosts))
    return SurveyResult(metadata, outcome, files, next(filter(None, waits), None))


def _hosts(message: DomainQueueMessage) -> Iterator[str]:
    """Yield the domain, then the host of its address when that is another."""
    yield message.registrable_domain
    if message.domain_url.startswith(f"https://{message.registrable_domain}/"):
        return
    # By the same reading that found the domain: two readings of one address ask a stranger.
    host = url_host(message.domain_url)
    if host != message.registrable_domain and is_domain(host):
        yield host


async def _sitemap(
    hosts: list[HostRobots], *, fetcher: PoliteFetcher, clock: Clock, options: SurveyFetchOptions
) -> FoundSitemap:
    """Return the first sitemap that answers with one, else what tells most about its absence."""
    others: list[FoundSitemap] = []
    for url, found_by in _candidates(hosts, options):
        found = await fetch_sitemap(
            url, found_by=found_by, fetcher=fetcher, clock=clock, options=options
        )
        if found.facts.exists and found.facts.kind != "invalid":
            await count_children(found, fetcher=fetcher, options=options)
            return found
        others.append(found)
    return min(others, key=_rank, default=FoundSitemap(SitemapFacts(fetched_at=clock())))


def _candidates(
    hosts: list[HostRobots], options: SurveyFetchOptions
) -> Iterator[tuple[str, Literal["robots", "default"]]]:
    """Yield the sitemaps that robots.txt names, then the usual place if robots.txt lets us."""
    named = dict.fromkeys(url for host in hosts for url in host.facts.sitemap_urls)
    for url in list(named)[: options.max_sitemaps_tried]:
        yield url, "robots"
    speaker = _authoritative_host(hosts)
    if speaker is not None:
        default = f"{_origin(speaker)}/{SITEMAP_FILE}"
        if default not in named and speaker.rules.allows(options.user_agent, default):
            yield default, "default"


def _rank(found: FoundSitemap) -> int:
    """Order failures: one that may pass, then a page that is no sitemap, then a plain no."""
    if sitemap_retry_reason(found.facts):
        return 0
    return 1 if found.facts.exists else 2


def _origin(host: HostRobots) -> str:
    """Return scheme and host of where robots.txt was found in the end."""
    scheme, _, rest = (host.facts.final_url or host.facts.url).partition("://")
    return f"{scheme}://{_AUTHORITY_END.split(rest, maxsplit=1)[0]}"


def _authoritative_host(hosts: list[HostRobots]) -> HostRobots | None:
    """Return the host whose rules are the domain's: with a file, else with a sure answer, else any.

    Of two alike it is the first.
    """
    answered = [host for host in hosts if host.facts.status_code is not None]
    return min(
        answered, key=lambda host: (not host.facts.exists, not _is_conclusive(host)), default=None
    )


def _is_conclusive(host: HostRobots) -> bool:
    """Say whether a host told its rules, or that it has none; "come back later" tells neither."""
    return robots_outcome(host.facts, tries=1).status == "final"


def _files(hosts: list[HostRobots], found: FoundSitemap) -> Iterator[StoredFile]:
    for place, host in enumerate(hosts):
        if host.body is not None and host.facts.sha256 is not None:
            other = f"robots.{sanitized_domain(host.facts.host)}.txt"
            yield StoredFile(other if place else ROBOTS_FILE, host.body, host.facts.sha256)
    if found.body is not None and found.facts.sha256 is not None:
        yield StoredFile(SITEMAP_FILE, found.body, found.facts.sha256)


def _ai_policy(speaker: HostRobots | None) -> AiPolicyFacts | None:
    """Return the policies of a file that was read, or of a site that says it has none."""
    if speaker is None or not _is_conclusive(speaker):
        return None
    return _policy_facts(speaker.rules.ai_stance())


@lru_cache(maxsize=1024)
def _policy_facts(stance: AiStance) -> AiPolicyFacts:
    policies = policies_of(stance).values()
    return AiPolicyFacts(
        list_version=AI_BOTS_VERSION,
        policies={policy.bot: policy.policy for policy in policies},
        own=[policy.bot for policy in policies if policy.source == "own"],
    )


def _source(message: DomainQueueMessage) -> SourceFacts:
    return SourceFacts(
        raw_file_path=message.source_file_path,
        domain_url=message.domain_url,
        authority=message.authority,
    )
