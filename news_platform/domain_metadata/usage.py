"""Read the stored surveys and decide whether a crawler may use a site for a purpose.

usage_policy("example.com", "GPTBot", "ai_train", root="data").verdict

`usage_policy` reads the surveys of one domain on every call. An export decides about millions of
articles, sorted by domain: `UsageHistory` reads each survey once.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from news_platform.datasets.domain_metadata import DomainMetadata, RobotsFacts, sanitized_domain
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.fetchers import stating_robots, stored_files
from news_platform.domain_metadata.pipeline import METADATA_DATASET
from news_platform.domain_metadata.results import read_domain_files, read_metadata, read_stored
from news_platform.domain_metadata.signals.statements import PURPOSES, Purpose
from news_platform.domain_metadata.signals.verdict import (
    EVERYBODY,
    NO_RULES,
    Decision,
    Finding,
    SiteStatements,
    Verdict,
)
from news_platform.errors import InputError
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.takedowns.build_filters import read_hidden
from news_platform.text.readable import as_day
from news_platform.web.robots import AI_BOTS, Robots, product_token
from news_platform.web.urls import registrable_domain

NEVER_SURVEYED = "unknown"
_STRICTEST = ("refuse", "conflicting", "partial", "allow", "unspecified")
# Articles come sorted by domain, so few domains are asked about again.
_REMEMBERED_DOMAINS = 2048
_REMEMBERED_DECISIONS = 1 << 16


@dataclass(frozen=True, slots=True)
class UsagePolicy:
    """A verdict, the statements that led to it, and the survey that they come from.

    `verdict` is allow, refuse, partial, unspecified or conflicting; treat conflicting as a refusal.
    `path` is None for the site as a whole. Every statement has the time at which it was last read.
    `is_stale` means that statements which led to another verdict were last read over 90 days
    before the survey. `surveyed_at` is None if the domain was never surveyed: then nothing is known
    about it.
    """

    domain: str
    bot: str
    purpose: Purpose
    path: str | None
    verdict: Verdict
    statements: tuple[Finding, ...] = ()
    surveyed_at: datetime | None = None
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class VerdictAt:
    """A verdict, and when the survey that it follows from was made; None: there is none.

    `bot` is the crawler that the findings are about.
    """

    verdict: str
    surveyed_at: datetime | None = None
    bot: str = ""
    findings: tuple[Finding, ...] = ()


class StoredSurvey:
    """One stored survey of a domain; its robots.txt is read when first needed."""

    def __init__(self, store: ObjectStore, batch: PartitionInfo, facts: DomainMetadata) -> None:
        self.batch, self.facts = batch, facts
        self._store = store
        self.decide = lru_cache(_REMEMBERED_DECISIONS)(self._decide)
        self.named = lru_cache(8)(self._named)

    @property
    def is_conclusive(self) -> bool:
        """Return whether anything that the site states was read by then."""
        return self.facts.usage is not None or self.facts.ai_policy is not None

    def robots_file(self, host: str | None = None) -> tuple[str, RobotsFacts]:
        """Return the name and facts of the robots.txt of a host, else of the one that applies."""
        found = stored_files(self.facts)
        files = [(name, one) for name, one in found if isinstance(one, RobotsFacts)]
        if host is not None:
            return next((pair for pair in files if pair[1].host == host), files[0])
        speaks = stating_robots((one for _, one in files), at=self.facts.collected_at)
        return next((pair for pair in files if pair[1] is speaks), files[0])

    def read_file(self, name: str) -> bytes:
        """Return a stored file, b'' if there is none: after a 4xx the site has no rules."""
        return read_stored(self._store, self.batch, self.facts.registrable_domain, name)

    def crawlers(self) -> list[str]:
        """Return `*`, and the known AI crawlers that the site names: only they may differ."""
        return [EVERYBODY, *(bot.name for bot in AI_BOTS if self._is_named(bot.name))]

    @cached_property
    def _stated(self) -> SiteStatements:
        """Return what the site had stated by the time of this survey."""
        name, robots = self.robots_file()
        statements = self.facts.usage.statements if self.facts.usage is not None else []
        rules = Robots.parse(self.read_file(name)) if robots.sha256 else NO_RULES
        return SiteStatements(rules, statements, robots, self.facts.collected_at)

    def _named(self, bots: tuple[str, ...]) -> tuple[str, ...]:
        """Return one crawler of each treatment: all that the site does not name have the same."""
        own = [bot for bot in bots if self._is_named(bot)]
        others = [bot for bot in bots if bot not in own]
        return (*others[:1], *own)

    def _is_named(self, bot: str) -> bool:
        names = (bot.lower(), product_token(bot))
        return self._stated.rules.has_own_group(bot) or not self._agents.isdisjoint(names)

    @cached_property
    def _agents(self) -> frozenset[str]:
        return frozenset(agent for one in self._stated.statements for agent in one.agents)

    def _decide(self, bot: str, purpose: Purpose, path: str | None = None) -> Decision:
        """Return the verdict that follows from this survey."""
        return self._stated.decide(bot, purpose, path)


def iter_surveys(
    store: ObjectStore, domain: str, *, batches: Iterable[PartitionInfo] | None = None
) -> Iterator[StoredSurvey]:
    """Yield the stored surveys of a domain, the latest day first."""
    if batches is None:
        batches = map(PartitionInfo.parse, read_markers(store, METADATA_DATASET))
    for batch in sorted(batches, key=lambda one: one.date, reverse=True):
        facts = read_metadata(store, batch, domain)
        if facts is not None:
            yield StoredSurvey(store, batch, facts)


def survey_at(
    store: ObjectStore, domain: str, *, at: datetime | None = None
) -> StoredSurvey | None:
    """Return the last conclusive survey of a domain not after `at`, else the first after it."""
    later: StoredSurvey | None = None
    for survey in iter_surveys(store, domain):
        if survey.is_conclusive:
            if at is None or survey.facts.collected_at <= at:
                return survey
            later = survey
    return later


def usage_policy(
    domain: str,
    bot: str,
    purpose: str,
    *,
    root: str | Path | ObjectStore,
    at: datetime | date | str | None = None,
    path: str | None = None,
) -> UsagePolicy:
    """Return what a site stated about a crawler and a purpose at a time, by default now.

    The last survey not after `at` counts, or else the first one after it. `path` asks about one
    page, `/` about the home page; without it the question is about the site as a whole.
    """
    name, use = registrable_domain(domain), parse_purpose(purpose)
    store = root if isinstance(root, ObjectStore) else open_store(str(root))
    is_hidden = read_hidden(store).covers_domain(name)
    survey = None if is_hidden else survey_at(store, name, at=_instant(at))
    if survey is None:
        return UsagePolicy(name, bot, use, path, "unspecified")
    found = survey.decide(bot, use, path)
    return UsagePolicy(
        name,
        bot,
        use,
        path,
        found.verdict,
        found.findings,
        survey.facts.collected_at,
        found.is_stale,
    )


class UsageHistory:
    """The verdicts on addresses at given times, from the surveys under a root."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._surveys = lru_cache(_REMEMBERED_DOMAINS)(self._read_surveys)

    def verdict(self, url: str, *, bots: tuple[str, ...], purpose: str, at: datetime) -> VerdictAt:
        """Return what the site of an address had stated to these crawlers about its path.

        The last survey not after `at` counts, else the first one after it. Of several crawlers, a
        refusal of one counts, then an allowance of one.
        """
        try:
            parts = urlsplit(url)
        except ValueError:  # such an address has no site
            return VerdictAt(NEVER_SURVEYED)
        surveys = self._surveys(registrable_domain(parts.hostname or ""))
        if not surveys:
            return VerdictAt(NEVER_SURVEYED)
        place = bisect_right([one.facts.collected_at for one in surveys], at)
        chosen = surveys[max(place - 1, 0)]
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        use, found = parse_purpose(purpose), []
        for bot in chosen.named(bots):
            decision = chosen.decide(bot, use, path or "/")
            when = chosen.facts.collected_at
            found.append(VerdictAt(decision.verdict, when, bot, decision.findings))
        return min(found, key=lambda one: _STRICTEST.index(one.verdict))

    @cached_property
    def _domains(self) -> Mapping[PartitionInfo, frozenset[str]]:
        """Return the domains of every batch, by the names of their folders."""
        batches = map(PartitionInfo.parse, read_markers(self._store, METADATA_DATASET))
        return {batch: frozenset(read_domain_files(self._store, batch)) for batch in batches}

    def _read_surveys(self, domain: str) -> tuple[StoredSurvey, ...]:
        folder = sanitized_domain(domain)
        held = [batch for batch, domains in self._domains.items() if folder in domains]
        surveys = iter_surveys(self._store, domain, batches=held)
        found = [one for one in surveys if one.is_conclusive]
        return tuple(sorted(found, key=lambda one: one.facts.collected_at))


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
