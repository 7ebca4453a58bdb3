"""Read what sites had stated about use at given times; each survey is read once.

`usage_policy` reads the surveys of one domain on every call. An export decides
about millions of articles, sorted by domain.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from urllib.parse import urlsplit

from news_platform.datasets.domain_metadata import DomainMetadata, sanitized_domain
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.pipeline import METADATA_DATASET
from news_platform.domain_metadata.results import read_domain_files, read_metadata
from news_platform.domain_metadata.signals.statements import Purpose, UseStatement
from news_platform.domain_metadata.signals.verdict import decide
from news_platform.domain_metadata.usage import parse_purpose, survey_rules
from news_platform.domain_metadata.usage_fetch import statements_of
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.robots import Robots
from news_platform.web.urls import registrable_domain

NEVER_SURVEYED = "unknown"
# Articles come sorted by domain, so few domains are asked about again.
_REMEMBERED_DOMAINS = 2048
_REMEMBERED_VERDICTS = 1 << 16


@dataclass(frozen=True, slots=True)
class VerdictAt:
    """A verdict, and when the survey that it follows from was made; None: there is none."""

    verdict: str
    surveyed_at: datetime | None = None


class _Survey:
    """One stored survey of a domain; its rules are read when first asked for."""

    def __init__(self, store: ObjectStore, batch: PartitionInfo, facts: DomainMetadata) -> None:
        self.collected_at = facts.collected_at
        self._store, self._batch, self._facts = store, batch, facts
        self.verdict = lru_cache(_REMEMBERED_VERDICTS)(self._verdict)

    @cached_property
    def _rules(self) -> tuple[Robots, str]:
        return survey_rules(self._store, self._batch, self._facts)

    @cached_property
    def _statements(self) -> Sequence[UseStatement]:
        return statements_of(self._facts.usage) if self._facts.usage is not None else ()

    def _verdict(self, bot: str, purpose: Purpose, path: str) -> str:
        rules, source = self._rules
        decision = decide(
            self._statements, rules=rules, bot=bot, purpose=purpose, path=path, source=source
        )
        return decision.verdict


class UsageHistory:
    """The verdicts on addresses at given times, from the surveys under a root."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._surveys = lru_cache(_REMEMBERED_DOMAINS)(self._read_surveys)

    def verdict(self, url: str, *, bot: str, purpose: str, at: datetime) -> VerdictAt:
        """Return what the site of an address had stated about its path.

        The last survey not after `at` counts, else the first one after it.
        """
        try:
            parts = urlsplit(url)
        except ValueError:  # such an address has no site
            return VerdictAt(NEVER_SURVEYED)
        surveys = self._surveys(registrable_domain(parts.hostname or ""))
        if not surveys:
            return VerdictAt(NEVER_SURVEYED)
        place = bisect_right([one.collected_at for one in surveys], at)
        chosen = surveys[max(place - 1, 0)]
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        verdict = chosen.verdict(bot, parse_purpose(purpose), path or "/")
        return VerdictAt(verdict, chosen.collected_at)

    @cached_property
    def _domains(self) -> Mapping[PartitionInfo, frozenset[str]]:
        """Return the domains of every batch, by the names of their folders."""
        batches = map(PartitionInfo.parse, read_markers(self._store, METADATA_DATASET))
        return {batch: frozenset(read_domain_files(self._store, batch)) for batch in batches}

    def _read_surveys(self, domain: str) -> tuple[_Survey, ...]:
        folder = sanitized_domain(domain)
        held = [batch for batch, domains in self._domains.items() if folder in domains]
        found = ((batch, read_metadata(self._store, batch, domain)) for batch in held)
        surveys = (
            _Survey(self._store, batch, facts)
            for batch, facts in found
            # Without rules nothing was learned about the site.
            if facts is not None and facts.ai_policy is not None
        )
        return tuple(sorted(surveys, key=lambda one: one.collected_at))
