"""Fetch the files and the home page of one host that state how its content may be used."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from resiliparse.parse.html import HTMLTree

from news_platform.datasets.domain_metadata import UsageFileFacts, UseStatement
from news_platform.domain_metadata.fetchers import (
    ABSENT,
    DomainFetcher,
    FileAnswer,
    HostRobots,
    file_key,
    is_html,
    is_markup,
)
from news_platform.domain_metadata.signals.page_signals import (
    parse_header_signals,
    parse_html_signals,
)
from news_platform.domain_metadata.signals.robots_signals import license_urls
from news_platform.domain_metadata.signals.verdict import MAX_AGE
from news_platform.domain_metadata.signals.well_known import (
    is_llms_txt,
    parse_ai_txt,
    parse_rsl,
    parse_tdmrep,
    parse_trust_txt,
    security_contacts,
)
from news_platform.web.fetch import Response
from news_platform.web.responses import validator
from news_platform.web.urls import url_host

SMALL_FILES = {
    "ai.txt": "/ai.txt",
    "trust.txt": "/trust.txt",
    "well-known/trust.txt": "/.well-known/trust.txt",
    "llms.txt": "/llms.txt",
    "security.txt": "/.well-known/security.txt",
}
"""Files that are requested last, in this order, and deferred when the budget is used up."""

_PARSERS = {
    "tdmrep": parse_tdmrep,
    "rsl": parse_rsl,
    "ai.txt": parse_ai_txt,
    "trust.txt": parse_trust_txt,
    "well-known/trust.txt": parse_trust_txt,
}
# Statements stand in the head of a page and in files of a few kilobytes.
_MAX_USAGE_BYTES = 512 * 1024
# Groups of robots.txt may name licences of their own; more than a few are not read.
_MAX_LICENSES = 4
_SIGNAL_HEADERS = (
    "x-robots-tag",
    "content-usage",
    "content-signal",
    "tdm-reservation",
    "tdm-policy",
    "link",
)


@dataclass(slots=True)
class UsageFetcher:
    """Fetches the files of one host that state how its content may be used.

    Every request counts against the budget of the survey. What does not fit is named in `deferred`,
    and the next survey of the domain begins with it. Nothing is requested that robots.txt
    disallows. What is not read keeps the statements that were last read from it.
    """

    domain: DomainFetcher
    host: HostRobots
    origin: str
    statements: list[UseStatement] = field(default_factory=list)
    files: list[UsageFileFacts] = field(default_factory=list)
    deferred: list[str] = field(default_factory=list)
    has_timed_out: bool = False

    async def fetch_home_and_licenses(self, robots: Sequence[UseStatement]) -> list[str]:
        """Fetch the home page, tdmrep.json and our first licence; return the other licences."""
        await self._fetch("home", f"{self.origin}/")
        await self._fetch("tdmrep", f"{self.origin}/.well-known/tdmrep.json")
        stated = [*robots, *self.statements]
        ours = license_urls(stated, self.domain.options.user_agent)
        every = (one.value for one in stated if one.label == "license" and one.value)
        first, *others = list(dict.fromkeys([*ours, *every]))[:_MAX_LICENSES] or [""]
        if first:
            await self._fetch("rsl", first)
        return others

    async def fetch_others(self, licenses: Iterable[str]) -> None:
        """Fetch further licences and the small files, those deferred before the others."""
        wanted = {url: "rsl" for url in licenses}
        wanted |= {f"{self.origin}{path}": name for name, path in SMALL_FILES.items()}
        first = set(self.domain.previous.deferred if self.domain.previous else ())
        if "well-known/trust.txt" in first:
            first.add("trust.txt")  # its first place decides whether the second is asked for
        waited = {url: name for url, name in wanted.items() if file_key(name, url) in first}
        for url, name in {**waited, **wanted}.items():
            if name != "well-known/trust.txt" or not self._has_trust():
                await self._fetch(name, url)
        self._keep_unnamed_licenses()

    def _keep_unnamed_licenses(self) -> None:
        """Keep what licences stated that are not named today: they may be named again."""
        previous = self.domain.previous.usage_files if self.domain.previous else {}
        known = {one.url for one in self.files}
        for one in previous.values():
            is_recent = one.read_at is not None and self.domain.clock() - one.read_at <= MAX_AGE
            if one.name == "rsl" and one.url not in known and is_recent:
                self._keep(one, "not_named")

    def keep_all(self, reason: str) -> None:
        """Keep what was last read of every file, none of which may be asked for."""
        for before in self.domain.previous.usage_files.values() if self.domain.previous else ():
            self._keep(before, reason)

    def _has_trust(self) -> bool:
        """Return whether trust.txt is where it belongs: then its other place does not count."""
        previous = self.domain.previous.usage_files if self.domain.previous else {}
        files = {**previous, **{one.name: one for one in self.files}}
        return "trust.txt" in files and files["trust.txt"].exists

    async def _fetch(self, name: str, url: str) -> None:
        """Fetch a file unless it must wait; note what happened and what it states."""
        domain, key = self.domain, file_key(name, url)
        before = domain.previous.usage_files.get(key) if domain.previous else None
        # A licence may lie on another host, whose rules are not these.
        is_own = url.startswith(f"{self.origin}/")
        if is_own and not self.host.rules.allows(domain.options.user_agent, url):
            self._keep(before or UsageFileFacts(name=name, url=url), "disallowed")
            return
        known = before if before and before.url == url else None
        if known and known.status_code in ABSENT and domain.is_recent(known.read_at):
            self.files.append(known)
            return
        if self.has_timed_out or not domain.has_requests_left:
            self.deferred.append(key)
            self._keep(before or UsageFileFacts(name=name, url=url), "deferred")
            return
        same = known if known and known.exists else None
        answer = await domain.fetch(url, known=same, max_body_bytes=_MAX_USAGE_BYTES)
        # A host that leaves us waiting once would do so for every file.
        self.has_timed_out = answer.unread == "timeout"
        unread = answer.unread or _instead_of(name, answer)
        is_elsewhere = before is not None and url_host(before.url) != url_host(url)
        if before and before.exists and is_elsewhere and not answer.is_received:
            # It was read from the other host: that this one lacks it withdraws nothing.
            unread = unread or "elsewhere"
        if unread or answer.response is None:
            kept = before or UsageFileFacts(name=name, url=url)
            self._keep(kept, unread, status=answer.status)
        elif same is not None and answer.is_confirmed:
            self._keep(same, "", status=200, read_at=domain.clock())
        else:
            self._read(name, answer.response)

    def _keep(
        self,
        facts: UsageFileFacts,
        unread: str,
        *,
        status: int | None = None,
        read_at: datetime | None = None,
    ) -> None:
        """Keep what was last read of a file; `read_at` is given if the host confirmed it."""
        at = read_at or facts.read_at
        changed = {"unread": unread, "status_code": status, "read_at": at}
        self.files.append(facts.model_copy(update={**changed, "not_modified": read_at is not None}))
        if self.domain.previous is not None:
            known = self.domain.previous.statements_from(file_key(facts.name, facts.url))
            self.statements += [replace(one, read_at=at) for one in known] if read_at else known

    def _read(self, name: str, response: Response) -> None:
        """Note a file that was sent, or its absence, and what it states."""
        sent, read_at = response.body, self.domain.clock()
        if response.status >= 300:
            status = response.status
            self.files.append(
                UsageFileFacts(name=name, url=response.url, status_code=status, read_at=read_at)
            )
            return
        found: list[UseStatement] = []
        contacts = security_contacts(sent) if name == "security.txt" else []
        if name == "home":
            found = parse_page(response)
        elif name in _PARSERS:
            found = _PARSERS[name](sent, source=response.url)
        facts = UsageFileFacts(
            name=name,
            url=response.url,
            status_code=response.status,
            exists=is_llms_txt(sent)
            if name == "llms.txt"
            else bool(contacts) or name != "security.txt",
            size_bytes=len(sent),
            sha256=hashlib.sha256(sent).hexdigest(),
            values=contacts,
            read_at=read_at,
            etag=validator(response.headers, "etag"),
            last_modified=validator(response.headers, "last-modified"),
        )
        self.files.append(facts)
        key = file_key(name, facts.url)
        self.statements += [
            replace(one, file=key, sha256=facts.sha256, read_at=read_at) for one in found
        ]


def _instead_of(name: str, answer: FileAnswer) -> str:
    """Return `markup` if a web page was sent instead of a file."""
    if name == "home" or answer.response is None or not answer.is_received:
        return ""
    is_page = is_html if name == "rsl" else is_markup
    return "markup" if is_page(answer.response.body) else ""


def parse_page(response: Response) -> list[UseStatement]:
    """Return the statements in the headers and the elements of a page."""
    headers = {name: lines for name in _SIGNAL_HEADERS if (lines := response.header_lines(name))}
    found = parse_header_signals(headers, url=response.url)
    if b"<" in response.body:
        found += parse_html_signals(HTMLTree.parse_from_bytes(response.body), url=response.url)
    return found
