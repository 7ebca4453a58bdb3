"""Fetch what a site states about use besides robots.txt: its home page and a few small files.

Every request counts against the budget of the survey. What does not fit is named in `deferred`, and
the next survey of the domain begins with it. Nothing is requested that robots.txt disallows.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from resiliparse.parse.html import HTMLTree

from news_platform.datasets.domain_metadata import UsageFacts, UsageFileFacts, UseStatementFacts
from news_platform.domain_metadata.fetchers import (
    KnownFile,
    PreviousSurvey,
    fetch_if_changed,
)
from news_platform.domain_metadata.signals.page_signals import (
    parse_header_signals,
    parse_html_signals,
)
from news_platform.domain_metadata.signals.robots_signals import (
    license_urls,
    parse_robots_signals,
)
from news_platform.domain_metadata.signals.rsl import parse_rsl
from news_platform.domain_metadata.signals.statements import UseStatement
from news_platform.domain_metadata.signals.verdict import verdicts_for_everybody
from news_platform.domain_metadata.signals.well_known import (
    FileSummary,
    parse_ai_txt,
    parse_tdmrep,
    parse_trust_txt,
    summarize_llms_txt,
    summarize_security_txt,
)
from news_platform.errors import FetchError
from news_platform.web.fetch import Fetcher, Response
from news_platform.web.responses import validator
from news_platform.web.robots import Robots

MAX_REQUESTS = 8
"""Requests per domain and survey; redirects and the children of a sitemap index count apart."""

TDMREP = "tdmrep"
SMALL_FILES = {
    "ai.txt": "/ai.txt",
    "llms.txt": "/llms.txt",
    "security.txt": "/.well-known/security.txt",
    "trust.txt": "/trust.txt",
}
"""Files that are requested last, in this order, and deferred when the budget is used up."""

# Statements stand in the head of a page and in files of a few kilobytes.
_MAX_HOME_BYTES = 512 * 1024
_MAX_FILE_BYTES = 512 * 1024
_SIGNAL_HEADERS = (
    "x-robots-tag",
    "content-usage",
    "content-signal",
    "tdm-reservation",
    "tdm-policy",
    "link",
)


@dataclass(slots=True)
class RequestBudget:
    """The requests that a survey may still make to a domain."""

    used: int = 0

    @property
    def is_empty(self) -> bool:
        """Return whether no request is left."""
        return self.used >= MAX_REQUESTS

    def spend(self) -> bool:
        """Take one request; return False if none is left."""
        if self.is_empty:
            return False
        self.used += 1
        return True


@dataclass(frozen=True, slots=True)
class UsageFetcher:
    """Fetches the files of one host and collects its statements."""

    origin: str
    rules: Robots
    fetcher: Fetcher
    clock: Callable[[], datetime]
    user_agent: str
    budget: RequestBudget
    previous: PreviousSurvey | None = None
    statements: list[UseStatement] = field(default_factory=list)
    files: list[UsageFileFacts] = field(default_factory=list)
    deferred: list[str] = field(default_factory=list)
    timed_out: list[str] = field(default_factory=list)

    async def fetch_home_and_licenses(self, robots: Sequence[UseStatement]) -> None:
        """Fetch the home page, tdmrep.json and the first licence document."""
        home = await self._fetch("home", f"{self.origin}/", max_bytes=_MAX_HOME_BYTES)
        if home is not None:
            self.statements.extend(parse_page(home))
        tdmrep = await self._fetch(TDMREP, f"{self.origin}/.well-known/tdmrep.json")
        if tdmrep is not None:
            self.statements.extend(parse_tdmrep(tdmrep.body, source=tdmrep.url))
        links = license_urls([*robots, *self.statements], self.user_agent)
        for url in links[:1]:
            document = await self._fetch("rsl", url)
            if document is not None:
                self.statements.extend(parse_rsl(document.body, source=url))

    async def fetch_small_files(self, first: Iterable[str] = ()) -> None:
        """Fetch the small files, those that an earlier survey deferred before the others."""
        for name in dict.fromkeys([*(one for one in first if one in SMALL_FILES), *SMALL_FILES]):
            response = await self._fetch(name, f"{self.origin}{SMALL_FILES[name]}")
            if response is None:
                continue
            if name == "ai.txt":
                self.statements.extend(parse_ai_txt(response.body, source=response.url))
            elif name == "trust.txt":
                self.statements.extend(parse_trust_txt(response.body, source=response.url))
            else:
                summarize = summarize_llms_txt if name == "llms.txt" else summarize_security_txt
                _note_summary(self.files[-1], summarize(response.body))

    async def _fetch(
        self, name: str, url: str, *, max_bytes: int = _MAX_FILE_BYTES
    ) -> Response | None:
        """Return a 2xx response with new bytes, or None; record what happened.

        Of a file that its host confirms, the statements of the previous survey count.
        """
        # A licence may lie on another host, whose rules are not these.
        if url.startswith(f"{self.origin}/") and not self.rules.allows(self.user_agent, url):
            return None
        if self.timed_out or not self.budget.spend():
            self.deferred.append(name)
            return None
        facts = UsageFileFacts(name=name, url=url, fetched_at=self.clock())
        self.files.append(facts)
        known = self.previous.usage_file(url) if self.previous else None
        try:
            response, is_known = await fetch_if_changed(
                self.fetcher, url, known, max_body_bytes=max_bytes
            )
        except FetchError as error:
            facts.error = error.reason
            if error.reason == "timeout":
                # A host that leaves us waiting once would do so for every file.
                self.timed_out.append(name)
            return None
        if known is not None and is_known and self.previous is not None:
            self._confirm(known, fetched_at=facts.fetched_at)
            return None
        facts.status_code = response.status
        if not 200 <= response.status < 300:
            return None
        facts.exists = True
        facts.size_bytes = len(response.body)
        facts.sha256 = hashlib.sha256(response.body).hexdigest()
        facts.etag = validator(response.headers, "etag")
        facts.last_modified = validator(response.headers, "last-modified")
        return response

    def _confirm(self, known: KnownFile, *, fetched_at: datetime) -> None:
        """Count a file of the previous survey as received again."""
        assert self.previous is not None and isinstance(known.facts, UsageFileFacts)
        changed = {"fetched_at": fetched_at, "not_modified": True}
        self.files[-1] = known.facts.model_copy(update=changed)
        confirmed = self.previous.statements_from(known.facts.url)
        self.statements.extend(statements_of(UsageFacts(statements=confirmed)))


def parse_page(response: Response) -> list[UseStatement]:
    """Return the statements in the headers and the elements of a page."""
    headers = {name: lines for name in _SIGNAL_HEADERS if (lines := response.header_lines(name))}
    found = parse_header_signals(headers, url=response.url)
    if b"<" in response.body:
        found += parse_html_signals(HTMLTree.parse_from_bytes(response.body), url=response.url)
    return found


def usage_facts(
    robots: bytes | None,
    rules: Robots,
    *,
    source: str,
    fetched_at: datetime,
    fetched: UsageFetcher | None,
    requests: int,
) -> UsageFacts:
    """Return everything that a site states, with robots.txt first.

    `source` and `fetched_at` are the URL and the time of robots.txt.
    """
    times = {source: fetched_at}
    times |= {file.url: file.fetched_at for file in fetched.files} if fetched else {}
    signals = parse_robots_signals(robots or b"", source=source, rules=rules)
    statements = [*signals.statements, *(fetched.statements if fetched else ())]
    return UsageFacts(
        statements=[_facts(one, times) for one in statements],
        files=fetched.files if fetched else [],
        requests=requests,
        deferred=fetched.deferred if fetched else [],
        managed_robots=signals.managed,
        verdicts={
            str(purpose): verdict
            for purpose, verdict in verdicts_for_everybody(
                statements, rules=rules, source=source
            ).items()
        },
    )


def statements_of(facts: UsageFacts) -> list[UseStatement]:
    """Return the stored statements as values to decide by."""
    return [
        UseStatement(
            one.system,  # type: ignore[arg-type]  # written by `usage_facts`, or by newer code
            one.source,
            one.raw,
            one.label,
            one.value,
            tuple(one.agents),
            one.path,
            tuple(one.flags),
        )
        for one in facts.statements
    ]


def _facts(one: UseStatement, times: Mapping[str, datetime]) -> UseStatementFacts:
    return UseStatementFacts(
        system=one.system,
        source=one.source,
        raw=one.raw,
        label=one.label,
        value=one.value,
        agents=list(one.agents),
        path=one.path,
        flags=list(one.flags),
        # The source of a header or element is the URL, a blank and its name.
        fetched_at=times.get(one.source.partition(" ")[0]),
    )


def _note_summary(facts: UsageFileFacts, summary: FileSummary) -> None:
    facts.exists = summary.is_valid
    facts.values = list(summary.values)
