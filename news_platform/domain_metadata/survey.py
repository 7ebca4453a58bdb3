"""Survey one domain: fetch its robots.txt and sitemap and return the facts, files and outcome."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
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
    UsageFacts,
    sanitized_domain,
)
from news_platform.datasets.research_datasets import DomainQueueMessage
from news_platform.domain_metadata.fetchers import (
    Clock,
    FoundSitemap,
    HostRobots,
    PreviousSurvey,
    SurveyFetchOptions,
    count_children,
    fetch_robots,
    fetch_sitemap,
)
from news_platform.domain_metadata.messages import is_domain
from news_platform.domain_metadata.signals.robots_signals import parse_robots_signals
from news_platform.domain_metadata.signals.statements import UseStatement
from news_platform.domain_metadata.sitemaps import news_sitemap_urls
from news_platform.domain_metadata.usage_fetch import RequestBudget, UsageFetcher, usage_facts
from news_platform.web.fetch import PoliteFetcher
from news_platform.web.robots import AI_BOTS_VERSION, AiStance, policies_of
from news_platform.web.urls import url_host

_AUTHORITY_END = re.compile(r"[/?#]")

OutcomeStatus = Literal["final", "retry", "give_up"]

# A retry within minutes would fail the same way; the next run may find a changed site.
_NOT_RETRIED = frozenset({"blocked_address", "blocked_port", "bad_url", "too_many_redirects"})
# Temporary by definition, as is every 5xx; a 1xx is not yet a final answer.
_RETRY_STATUSES = frozenset({408, 425, 429})
# A single NXDOMAIN may be a temporary fault of a name server.
_TRIES_TO_CONFIRM_NXDOMAIN = 2


@dataclass(frozen=True, slots=True)
class SurveyOutcome:
    """The outcome's name, used for counting, and its status; only `final` gets a success marker."""

    name: str
    status: OutcomeStatus


OK = SurveyOutcome("ok", "final")
NO_ROBOTS = SurveyOutcome("no_robots", "final")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as the host sent it, to be stored beside the facts."""

    name: str
    body: bytes
    sha256: str


@dataclass(frozen=True, slots=True)
class SurveyResult:
    """The result for one domain: its facts, its outcome, and the files as the hosts sent them."""

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
    previous: PreviousSurvey | None = None,
) -> SurveyResult:
    """Fetch robots.txt, a sitemap and statements about use from a domain.

    robots.txt is also fetched from the host that the domain was found under. `tries` counts this
    run's tries of the domain, including this one; `previous` is the survey whose files need not be
    sent again, and whose deferred files come first. Fetch errors do not raise; they become the
    outcome.
    """
    agent = options.user_agent
    hosts = [
        await fetch_robots(host, fetcher=fetcher, clock=clock, user_agent=agent, previous=previous)
        for host in _hosts(message)
    ]
    budget = RequestBudget(sum(2 if host.facts.tls_failed else 1 for host in hosts))
    edge = _Edge(fetcher, clock, options, previous)
    usage = _usage_fetcher(hosts, budget, edge=edge)
    if usage is not None:
        await usage.fetch_home_and_licenses(_robots_statements(hosts))
    found = await _sitemap(hosts, budget, edge=edge)
    if usage is not None:
        await usage.fetch_small_files(previous.deferred if previous else ())
    found.facts.news_sitemaps = _news_sitemaps(hosts, found, agent)
    outcome = outcome_of([host.facts for host in hosts], found.facts, tries=tries)
    files = tuple(_files(hosts, found))
    facts = _metadata(message, hosts, found, outcome=outcome, collected_at=clock())
    facts.usage = _usage(hosts, usage, requests=budget.used)
    facts.files = {file.name: file.sha256 for file in files}
    waits = (found.retry_after, *(host.retry_after for host in hosts))
    return SurveyResult(facts, outcome, files, next(filter(None, waits), None))


def _metadata(
    message: DomainQueueMessage,
    hosts: list[HostRobots],
    found: FoundSitemap,
    *,
    outcome: SurveyOutcome,
    collected_at: datetime,
) -> DomainMetadata:
    authoritative = _authoritative_host(hosts)
    return DomainMetadata(
        domain_id=message.domain_id,
        registrable_domain=message.registrable_domain,
        country=message.partition_info.country,
        category=message.partition_info.category,
        date=message.partition_info.date,
        collected_at=collected_at,
        outcome=outcome.name,
        final=outcome.status == "final",
        final_origin=_origin(authoritative) if authoritative else None,
        robots=hosts[0].facts,
        other_hosts=[host.facts for host in hosts[1:]],
        sitemap=found.facts,
        ai_policy=_ai_policy(authoritative),
        source=_source(message),
    )


def _hosts(message: DomainQueueMessage) -> Iterator[str]:
    """Yield the domain, then the host of its URL if that is a different one."""
    yield message.registrable_domain
    # The usual case needs no URL parsing.
    if message.domain_url.startswith(f"https://{message.registrable_domain}/"):
        return
    # Use the parser that found the domain: another parser may read another host from the same URL.
    host = url_host(message.domain_url)
    if host != message.registrable_domain and is_domain(host):
        yield host


def _usage_fetcher(
    hosts: list[HostRobots], budget: RequestBudget, *, edge: "_Edge"
) -> UsageFetcher | None:
    """Return the fetcher of further files, or None if the site cannot or must not be asked."""
    host, agent = _authoritative_host(hosts), edge.options.user_agent
    if host is None or not _is_conclusive(host) or _is_refused(host, agent):
        return None
    return UsageFetcher(
        _origin(host), host.rules, edge.fetcher, edge.clock, agent, budget, edge.previous
    )


def _is_refused(host: HostRobots, user_agent: str) -> bool:
    """Return whether a host closes its whole site to us."""
    return host.rules.policy(user_agent) == "disallow_all"


def _robots_statements(hosts: list[HostRobots]) -> Sequence[UseStatement]:
    host = _authoritative_host(hosts)
    if host is None or host.body is None:
        return ()
    return parse_robots_signals(host.body, source=host.facts.url, rules=host.rules).statements


def _usage(
    hosts: list[HostRobots], fetched: UsageFetcher | None, *, requests: int
) -> UsageFacts | None:
    host = _authoritative_host(hosts)
    if host is None or not _is_conclusive(host):
        return None
    source = host.facts.final_url or host.facts.url
    return usage_facts(
        host.body,
        host.rules,
        source=source,
        fetched_at=host.facts.fetched_at,
        fetched=fetched,
        requests=requests,
    )


@dataclass(frozen=True, slots=True)
class _Edge:
    """How a survey reaches the web, and the previous survey that it compares with."""

    fetcher: PoliteFetcher
    clock: Clock
    options: SurveyFetchOptions
    previous: PreviousSurvey | None


async def _sitemap(hosts: list[HostRobots], budget: RequestBudget, *, edge: _Edge) -> FoundSitemap:
    """Return the first valid sitemap, or else the most informative failure."""
    others: list[FoundSitemap] = []
    for url, found_by in _candidates(hosts, edge.options):
        if not budget.spend():
            break
        found = await fetch_sitemap(
            url,
            found_by=found_by,
            fetcher=edge.fetcher,
            clock=edge.clock,
            options=edge.options,
            previous=edge.previous,
        )
        if found.facts.exists and found.facts.kind != "invalid":
            await count_children(found, fetcher=edge.fetcher, options=edge.options)
            return found
        others.append(found)
    return min(others, key=_rank, default=FoundSitemap(SitemapFacts(fetched_at=edge.clock())))


def _candidates(
    hosts: list[HostRobots], options: SurveyFetchOptions
) -> Iterator[tuple[str, Literal["robots", "default"]]]:
    """Yield the sitemaps listed in robots.txt, then the default URL, as far as it allows them."""
    named = dict.fromkeys(url for each in hosts for url in each.facts.sitemap_urls)
    host = _authoritative_host(hosts)
    if host is not None and _is_refused(host, options.user_agent):
        return  # a site that refuses us is asked for nothing but robots.txt
    for url in list(named)[: options.max_sitemaps_tried]:
        yield url, "robots"
    if host is not None:
        default = f"{_origin(host)}/{SITEMAP_FILE}"
        if default not in named and host.rules.allows(options.user_agent, default):
            yield default, "default"


def _news_sitemaps(hosts: list[HostRobots], found: FoundSitemap, user_agent: str) -> list[str]:
    """Return the sitemaps for news that we may fetch: of robots.txt, of an index, or the stored."""
    host = _authoritative_host(hosts)
    if host is None or _is_refused(host, user_agent):
        return []
    named = [url for each in hosts for url in each.facts.sitemap_urls]
    # A sitemap that its host confirmed was not parsed again, but its facts are those of last time.
    named += [*found.children, *found.facts.news_sitemaps]
    urls = news_sitemap_urls(named, body=found.body, url=found.facts.url)
    return [url for url in urls if host.rules.allows(user_agent, url)]


def _rank(found: FoundSitemap) -> int:
    """Rank failures: a temporary one first, then a page that is not a sitemap, then a 4xx."""
    if sitemap_retry_reason(found.facts):
        return 0
    return 1 if found.facts.exists else 2


def _origin(host: HostRobots) -> str:
    """Return the scheme and host of the URL that robots.txt was finally read from."""
    scheme, _, rest = (host.facts.final_url or host.facts.url).partition("://")
    return f"{scheme}://{_AUTHORITY_END.split(rest, maxsplit=1)[0]}"


def _authoritative_host(hosts: list[HostRobots]) -> HostRobots | None:
    """Return the host whose robots.txt applies to the domain, or None if no host answered.

    A host with a file comes first, then one with a conclusive answer, then any. Ties go to the
    first host.
    """
    answered = [host for host in hosts if host.facts.status_code is not None]
    return min(
        answered, key=lambda host: (not host.facts.exists, not _is_conclusive(host)), default=None
    )


def _is_conclusive(host: HostRobots) -> bool:
    """Return whether a host sent its rules or has none; a temporary failure shows neither."""
    return robots_outcome(host.facts, tries=1).status == "final"


def _files(hosts: list[HostRobots], found: FoundSitemap) -> Iterator[StoredFile]:
    for place, host in enumerate(hosts):
        if host.body is not None and host.facts.sha256 is not None:
            other = f"robots.{sanitized_domain(host.facts.host)}.txt"
            yield StoredFile(other if place else ROBOTS_FILE, host.body, host.facts.sha256)
    if found.body is not None and found.facts.sha256 is not None:
        yield StoredFile(SITEMAP_FILE, found.body, found.facts.sha256)


def _ai_policy(host: HostRobots | None) -> AiPolicyFacts | None:
    """Return the policies of a robots.txt that was read, or of a host that has none."""
    if host is None or not _is_conclusive(host):
        return None
    return _policy_facts(host.rules.ai_stance())


# Most sites have one of a few stances, so the facts of a stance are computed once.
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


def outcome_of(robots: list[RobotsFacts], sitemap: SitemapFacts, *, tries: int) -> SurveyOutcome:
    """Return a domain's outcome: that of its best robots.txt, or a retry for its sitemap."""
    best = min((robots_outcome(facts, tries=tries) for facts in robots), key=_outcome_rank)
    # A domain that does not exist has no sitemap to try again.
    if best.status != "final" or best.name == "nxdomain":
        return best
    reason = sitemap_retry_reason(sitemap)
    return SurveyOutcome(f"sitemap_{reason}", "retry") if reason else best


def robots_outcome(facts: RobotsFacts, *, tries: int) -> SurveyOutcome:
    """Return the outcome of one host's answer."""
    if facts.status_code is not None:
        return _status_outcome(facts.status_code)
    reason = facts.error or "network"
    if reason == "nxdomain":
        confirmed = tries >= _TRIES_TO_CONFIRM_NXDOMAIN
        return SurveyOutcome("nxdomain", "final" if confirmed else "retry")
    return SurveyOutcome(reason, "give_up" if reason in _NOT_RETRIED else "retry")


def sitemap_retry_reason(facts: SitemapFacts) -> str | None:
    """Return why the sitemap must be tried again, or None if its presence or absence is certain."""
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
    """Rank outcomes by how much they reveal about the domain, most first."""
    if outcome == OK:
        return 0
    if outcome == NO_ROBOTS:
        return 1
    return 3 if outcome.name == "nxdomain" else 2
