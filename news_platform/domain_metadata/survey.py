"""Survey one domain: fetch its robots.txt and sitemap and return the facts, files and outcome."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal

from news_platform.datasets.domain_metadata import (
    SITEMAP_FILE,
    AiPolicyFacts,
    DomainMetadata,
    RobotsFacts,
    SitemapFacts,
    SourceFacts,
    UsageFacts,
    UseStatement,
)
from news_platform.datasets.research_datasets import DomainQueueMessage
from news_platform.domain_metadata.fetchers import (
    Clock,
    DomainFetcher,
    FoundSitemap,
    HostRobots,
    PreviousSurvey,
    SurveyFetchOptions,
    is_temporary,
    robots_file_name,
    stating_robots,
    stored_files,
)
from news_platform.domain_metadata.raw_files import is_domain
from news_platform.domain_metadata.signals.robots_signals import RobotsSignals, parse_robots_signals
from news_platform.domain_metadata.signals.verdict import NO_RULES, SiteStatements
from news_platform.domain_metadata.sitemaps import news_sitemap_urls
from news_platform.domain_metadata.usage_files import UsageFetcher
from news_platform.web.fetch import PoliteFetcher
from news_platform.web.robots import AI_BOTS_VERSION
from news_platform.web.urls import url_host

OutcomeStatus = Literal["final", "retry", "give_up"]

# A retry within minutes would fail the same way; the next run may find a changed site.
_NOT_RETRIED = frozenset({"blocked_address", "blocked_port", "bad_url", "too_many_redirects"})
# The host refuses robots.txt itself to a crawler; a retry within minutes would not help.
_REFUSALS = frozenset({"challenge", "payment_required"})
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
class SurveyResult:
    """The result for one domain: its facts, its outcome, and the files as the hosts sent them."""

    metadata: DomainMetadata
    outcome: SurveyOutcome
    files: Mapping[str, bytes]
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
    domain = DomainFetcher(fetcher, clock, options, previous)
    hosts = [await domain.fetch_robots(host) for host in _hosts(message)]
    host = _authoritative_host(hosts)
    speaks = stating_robots((one.facts for one in hosts), at=clock())
    stating = next((one for one in hosts if one.facts is speaks), None)
    signals = _robots_signals(stating, is_first=stating is hosts[0]) if stating else None
    asked = stating or host or hosts[0]
    usage = UsageFetcher(domain, asked, asked.origin)
    found = await _fetch_files(usage, hosts, host, signals.statements if signals else ())
    outcome = outcome_of([one.facts for one in hosts], found.facts, tries=tries)
    facts = DomainMetadata(
        domain_id=message.domain_id,
        registrable_domain=message.registrable_domain,
        country=message.partition_info.country,
        category=message.partition_info.category,
        date=message.partition_info.date,
        collected_at=clock(),
        outcome=outcome.name,
        final=outcome.status == "final",
        final_origin=host.origin if host else None,
        robots=hosts[0].facts,
        other_hosts=[one.facts for one in hosts[1:]],
        sitemap=found.facts,
        ai_policy=_policy_facts(stating),
        source=SourceFacts(
            raw_file_path=message.source_file_path,
            domain_url=message.domain_url,
            authority=message.authority,
        ),
    )
    facts.usage = _usage_facts(stating or hosts[0], signals, usage, at=facts.collected_at)
    return _result(facts, outcome, hosts, found)


async def _fetch_files(
    usage: UsageFetcher,
    hosts: Sequence[HostRobots],
    host: HostRobots | None,
    robots: Sequence[UseStatement],
) -> FoundSitemap:
    """Fetch a sitemap, and what else states something about use.

    `host` is the one that answers for the domain today, `robots` what its robots.txt states.
    """
    domain = usage.domain
    # A site that refuses us is asked for nothing but robots.txt.
    is_open = usage.host.is_open(domain.options.user_agent)
    others = await usage.fetch_home_and_licenses(robots) if is_open else []
    found = FoundSitemap(SitemapFacts(fetched_at=domain.clock()))
    if host is not None and host.is_open(domain.options.user_agent):
        found = await _sitemap(hosts, host, domain)
    if is_open:
        await usage.fetch_others(others)
    else:
        usage.keep_all("disallowed")
    return found


def _result(
    facts: DomainMetadata, outcome: SurveyOutcome, hosts: Sequence[HostRobots], found: FoundSitemap
) -> SurveyResult:
    bodies = [*(one.body for one in hosts), found.body]
    names = [name for name, _ in stored_files(facts)]
    files = {name: body for name, body in zip(names, bodies, strict=True) if body is not None}
    facts.files = {name: one.sha256 or "" for name, one in stored_files(facts) if name in files}
    waits = (found.retry_after, *(one.retry_after for one in hosts))
    return SurveyResult(facts, outcome, files, next(filter(None, waits), None))


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


def _robots_signals(host: HostRobots, *, is_first: bool) -> RobotsSignals:
    """Return what the robots.txt that was last read of a host states about use."""
    facts = host.facts
    found = parse_robots_signals(host.body or b"", source=host.rules_url, rules=host.stated)
    if not found.statements:
        return found
    name = robots_file_name(facts, is_first=is_first)
    stamped = [
        replace(one, file=name, sha256=facts.sha256, read_at=facts.read_at)
        for one in found.statements
    ]
    return found._replace(statements=tuple(stamped))


def _usage_facts(
    host: HostRobots, signals: RobotsSignals | None, fetched: UsageFetcher, *, at: datetime
) -> UsageFacts | None:
    """Return everything that a site states, robots.txt first; None if nothing was ever read."""
    if signals is None and not any(file.read_at for file in fetched.files):
        return None
    statements = [*(signals.statements if signals else ()), *fetched.statements]
    stated = SiteStatements(host.stated or NO_RULES, statements, host.facts, at)
    verdicts = stated.verdicts()
    return UsageFacts(
        statements=statements,
        files=fetched.files,
        requests=fetched.domain.requests,
        deferred=fetched.deferred,
        managed_robots=signals is not None and signals.managed,
        verdicts={str(purpose): verdict for purpose, (verdict, _) in verdicts.items()},
        stale=[purpose for purpose, (_, is_stale) in verdicts.items() if is_stale],
    )


async def _sitemap(
    hosts: Sequence[HostRobots], host: HostRobots, domain: DomainFetcher
) -> FoundSitemap:
    """Return the first valid sitemap, or else the most informative failure.

    `host` is the one whose rules apply. The sitemaps for news are noted with it.
    """
    allows = partial(_allows, hosts, domain.options.user_agent)
    listed = list(dict.fromkeys(url for each in hosts for url in each.facts.sitemap_urls))
    chosen = FoundSitemap(SitemapFacts(fetched_at=domain.clock()))
    others: list[FoundSitemap] = []
    for url, found_by in _candidates(listed, host, domain.options):
        if not domain.has_requests_left:
            break
        if not allows(url):
            continue
        found = await domain.fetch_sitemap(url, found_by=found_by)
        if found.facts.exists and found.facts.kind != "invalid":
            await domain.count_children(found, allows)
            chosen, others = found, []
            break
        others.append(found)
    chosen = min(others, key=_rank, default=chosen)
    # A sitemap that its host confirmed was not parsed again, but its facts are those of last time.
    named = [*listed, *chosen.children, *chosen.facts.news_sitemaps]
    news = news_sitemap_urls(named, body=chosen.body, url=chosen.facts.url)
    chosen.facts.news_sitemaps = [url for url in news if allows(url)]
    return chosen


def _allows(hosts: Sequence[HostRobots], user_agent: str, url: str) -> bool:
    """Return whether the rules of a URL's own host allow it; those of others are not known."""
    name = url_host(url)
    for host in hosts:
        if name in (host.facts.host, url_host(host.rules_url)):
            return host.rules.allows(user_agent, url)
    return True


def _candidates(
    listed: Sequence[str], host: HostRobots, options: SurveyFetchOptions
) -> Iterator[tuple[str, Literal["robots", "default"]]]:
    """Yield the sitemaps listed in robots.txt, then the default URL."""
    for url in listed[: options.max_sitemaps_tried]:
        yield url, "robots"
    default = f"{host.origin}/{SITEMAP_FILE}"
    if default not in listed:
        yield default, "default"


def _rank(found: FoundSitemap) -> int:
    """Rank failures: a temporary one first, then a page that is not a sitemap, then a 4xx."""
    if sitemap_retry_reason(found.facts):
        return 0
    return 1 if found.facts.exists else 2


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


def _policy_facts(host: HostRobots | None) -> AiPolicyFacts | None:
    if host is None or host.stated is None:
        return None
    everyone, own = host.stated.ai_stance()
    return AiPolicyFacts(list_version=AI_BOTS_VERSION, everyone=everyone, own={**own})


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
        if facts.unread in _REFUSALS and facts.status_code < 500:
            return SurveyOutcome(facts.unread, "final")
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
    if is_temporary(status):
        return SurveyOutcome(f"http_{status}", "retry")
    return NO_ROBOTS


def _outcome_rank(outcome: SurveyOutcome) -> int:
    """Rank outcomes by how much they reveal about the domain, most first."""
    if outcome == OK:
        return 0
    if outcome == NO_ROBOTS:
        return 1
    return 3 if outcome.name == "nxdomain" else 2
