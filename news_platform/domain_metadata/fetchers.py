"""Fetch and parse what one domain serves: robots.txt, a sitemap, and statements about use.

What the previous survey received is requested with the ETag and the date that the host sent then.
If the host answers 304, the stored bytes, or the statements read from them, count as received.
"""

import asyncio
import codecs
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

from resiliparse.parse.html import HTMLTree

from news_platform.datasets.domain_metadata import (
    ROBOTS_FILE,
    SITEMAP_FILE,
    DomainMetadata,
    RobotsFacts,
    SitemapFacts,
    UsageFileFacts,
    UseStatement,
    sanitized_domain,
)
from news_platform.domain_metadata.signals.page_signals import (
    parse_header_signals,
    parse_html_signals,
)
from news_platform.domain_metadata.signals.robots_signals import license_urls
from news_platform.domain_metadata.signals.well_known import (
    is_llms_txt,
    parse_ai_txt,
    parse_rsl,
    parse_tdmrep,
    parse_trust_txt,
    security_contacts,
)
from news_platform.domain_metadata.sitemaps import (
    BadGzip,
    Sitemap,
    TooLarge,
    inflated,
    parse_sitemap,
)
from news_platform.errors import FetchError
from news_platform.html.links import join_link
from news_platform.web.fetch import PoliteFetcher, Response
from news_platform.web.responses import conditional_headers, validator
from news_platform.web.robots import MAX_BYTES, Robots

Clock = Callable[[], datetime]
FileFacts = RobotsFacts | SitemapFacts | UsageFileFacts

MAX_REQUESTS = 8
"""Requests per domain and survey; redirects and the children of a sitemap index count apart."""

SMALL_FILES = {
    "ai.txt": "/ai.txt",
    "llms.txt": "/llms.txt",
    "security.txt": "/.well-known/security.txt",
    "trust.txt": "/trust.txt",
}
"""Files that are requested last, in this order, and deferred when the budget is used up."""

_PARSERS = {
    "tdmrep": parse_tdmrep,
    "rsl": parse_rsl,
    "ai.txt": parse_ai_txt,
    "trust.txt": parse_trust_txt,
}
# Statements stand in the head of a page and in files of a few kilobytes.
_MAX_USAGE_BYTES = 512 * 1024
_SIGNAL_HEADERS = (
    "x-robots-tag",
    "content-usage",
    "content-signal",
    "tdm-reservation",
    "tdm-policy",
    "link",
)
# A TLS failure and a closed port 443 both mean that the site offers plain HTTP only.
_NO_TLS = frozenset({"tls", "refused"})
# Parsing a larger sitemap on the event loop would delay all other responses.
_PARSE_INLINE_BYTES = 128 * 1024
_WEB = ("https://", "http://")
# How a page begins that is served instead of rules, including XHTML and object store errors.
_MARKUP = (b"<!doctype", b"<html", b"<head", b"<body", b"<?xml", b"<!--")


@dataclass(frozen=True, slots=True)
class SurveyFetchOptions:
    """Limits of what is fetched per domain; `user_agent` is the token that robots.txt may name."""

    user_agent: str = "NewsPlatformBot"
    # The limit of the sitemap protocol, here for the bytes as sent.
    max_sitemap_bytes: int = 50 * 1024 * 1024
    # Some robots.txt list hundreds of sitemaps, and an index may have 50,000 children.
    max_sitemaps_tried: int = 3
    max_children: int = 10
    # Children are fetched one by one; after this time the remaining ones are skipped.
    children_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of the previous survey; `body` is empty where only its facts were stored."""

    facts: FileFacts
    body: bytes = b""

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that ask for the file only if it changed."""
        return conditional_headers(etag=self.facts.etag, last_modified=self.facts.last_modified)


@dataclass(frozen=True, slots=True)
class PreviousSurvey:
    """The facts of the previous survey, and the bytes of its files that may be confirmed."""

    facts: DomainMetadata
    bodies: Mapping[str, bytes]

    @property
    def deferred(self) -> list[str]:
        """Return the files that the previous survey had no request left for."""
        return self.facts.usage.deferred if self.facts.usage else []

    def file(self, kind: type[FileFacts], url: str) -> KnownFile | None:
        """Return the file that was received from a URL; of small files only facts were stored."""
        if kind is UsageFileFacts:
            files = self.facts.usage.files if self.facts.usage else []
            return next((KnownFile(one) for one in files if one.url == url and one.exists), None)
        for name, facts in stored_files(self.facts):
            if isinstance(facts, kind) and facts.url == url and name in self.bodies:
                return KnownFile(facts, self.bodies[name])
        return None

    def statements_from(self, url: str) -> list[UseStatement]:
        """Return the statements that were read from a file or page."""
        found = self.facts.usage.statements if self.facts.usage else []
        # The source of a header or element is the URL, a blank and its name.
        return [one for one in found if one.source == url or one.source.startswith(f"{url} ")]


def stored_files(facts: DomainMetadata) -> Iterator[tuple[str, RobotsFacts | SitemapFacts]]:
    """Yield the names and facts of the files that a survey stores as the hosts sent them."""
    yield ROBOTS_FILE, facts.robots
    for other in facts.other_hosts:
        yield f"robots.{sanitized_domain(other.host)}.txt", other
    yield SITEMAP_FILE, facts.sitemap


@dataclass(frozen=True, slots=True)
class HostRobots:
    """A host's robots.txt: the facts, its rules, and its bytes if there is a file."""

    facts: RobotsFacts
    rules: Robots
    body: bytes | None = None
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class FoundSitemap:
    """A sitemap: the facts, the bytes to store, and the URLs of its children."""

    facts: SitemapFacts
    body: bytes | None = None
    children: tuple[str, ...] = ()
    retry_after: str | None = None


@dataclass(slots=True)
class DomainFetcher:
    """Fetches the files of one domain and counts the requests of its survey."""

    fetcher: PoliteFetcher
    clock: Clock
    options: SurveyFetchOptions = field(default_factory=SurveyFetchOptions)
    previous: PreviousSurvey | None = None
    requests: int = 0

    @property
    def has_requests_left(self) -> bool:
        """Return whether the survey may send another request."""
        return self.requests < MAX_REQUESTS

    async def fetch_if_changed(
        self, kind: type[FileFacts], url: str, *, max_body_bytes: int
    ) -> tuple[Response, KnownFile | None]:
        """Fetch a URL; return the response, and the previous file if the host confirmed it.

        A confirmed file counts as a response with status 200 and the stored bytes.
        """
        self.requests += 1
        known = self.previous.file(kind, url) if self.previous else None
        headers = known.headers if known else {}
        response = await self.fetcher.fetch(url, headers=headers, max_body_bytes=max_body_bytes)
        if known is None or not headers or response.status != 304:
            return response, None
        return replace(response, status=200, body=known.body), known

    async def fetch_robots(self, host: str) -> HostRobots:
        """Fetch the robots.txt of a host if it changed, over HTTP if HTTPS is not available."""
        site = f"[{host}]" if ":" in host else host
        answer = await self._robots_at(f"https://{site}/robots.txt", host)
        if answer.facts.error in _NO_TLS:
            answer = await self._robots_at(f"http://{site}/robots.txt", host)
            answer.facts.tls_failed = True
        delay = answer.rules.crawl_delay(self.options.user_agent)
        if delay:
            answer.facts.crawl_delay_seconds = delay
            # robots.txt may have redirected: the delay applies to the host that finally answered.
            last = urlsplit(answer.facts.final_url or "").hostname
            self.fetcher.set_crawl_delay(last or host, delay)
        return answer

    async def _robots_at(self, url: str, host: str) -> HostRobots:
        fetched_at = self.clock()
        try:
            # RFC 9309 lets a crawler ignore what follows the first 500 KiB.
            response, known = await self.fetch_if_changed(
                RobotsFacts, url, max_body_bytes=MAX_BYTES
            )
        except FetchError as error:
            facts = RobotsFacts(host=host, url=url, fetched_at=fetched_at, error=error.reason)
            return HostRobots(facts, Robots.of_answer(None, b""))
        # RFC 9309: a 4xx allows everything, a 5xx or no answer disallows everything.
        rules = Robots.of_answer(response.status, response.body)
        exists = 200 <= response.status < 300
        body = response.body if exists else None
        before = known.facts if known and isinstance(known.facts, RobotsFacts) else None
        # A server that confirms a file need not repeat its validators.
        etag, last_modified = (before.etag, before.last_modified) if before else ("", "")
        facts = RobotsFacts(
            host=host,
            url=url,
            final_url=response.final_url,
            status_code=response.status,
            exists=exists,
            content_length=len(body) if body is not None else None,
            sha256=hashlib.sha256(body).hexdigest() if body is not None else None,
            truncated=exists and (response.truncated or (before is not None and before.truncated)),
            is_html=body is not None and _is_markup(body),
            redirects=len(response.redirects),
            fetched_at=fetched_at,
            elapsed_seconds=round(response.elapsed_seconds, 3),
            sitemap_urls=list(_web_urls(rules.sitemaps, base=response.final_url)) if exists else [],
            not_modified=before is not None,
            etag=validator(response.headers, "etag") or etag,
            last_modified=validator(response.headers, "last-modified") or last_modified,
        )
        return HostRobots(facts, rules, body, response.headers.get("retry-after"))

    async def fetch_sitemap(
        self, url: str, *, found_by: Literal["robots", "default"]
    ) -> FoundSitemap:
        """Fetch one sitemap if it changed, and parse it."""
        facts = SitemapFacts(url=url, found_by=found_by, fetched_at=self.clock())
        try:
            response, known = await self.fetch_if_changed(
                SitemapFacts, url, max_body_bytes=self.options.max_sitemap_bytes
            )
        except FetchError as error:
            facts.error = error.reason
            return FoundSitemap(facts)
        facts.elapsed_seconds = round(response.elapsed_seconds, 3)
        if known is not None:
            # The children of an index that is confirmed are not requested again.
            changed = facts.model_dump(include={"found_by", "fetched_at", "elapsed_seconds"})
            assert isinstance(known.facts, SitemapFacts)
            same = known.facts.model_copy(update={**changed, "not_modified": True})
            return FoundSitemap(same, known.body)
        facts.status_code, facts.final_url = response.status, response.final_url
        if 200 <= response.status < 300:
            return await _read_sitemap(facts, response)
        return FoundSitemap(facts, retry_after=response.headers.get("retry-after"))

    async def count_children(self, found: FoundSitemap) -> None:
        """Fetch the first children of an index and add their URLs to its count."""
        clock = asyncio.get_running_loop().time
        stop_at = clock() + self.options.children_seconds
        limit = self.options.max_sitemap_bytes
        for url in found.children[: self.options.max_children]:
            if clock() > stop_at:
                _note(found.facts, "children_out_of_time")
                return
            try:
                response = await self.fetcher.fetch(url, max_body_bytes=limit)
            except FetchError as error:
                _note(found.facts, f"child_{error.reason}")
                continue
            found.facts.children_fetched += 1
            await _count(found.facts, response)


def _is_markup(body: bytes) -> bool:
    return body.removeprefix(codecs.BOM_UTF8).lstrip()[:10].lower().startswith(_MARKUP)


def _web_urls(links: Iterable[str], *, base: str) -> Iterator[str]:
    for link in links:
        url = link if link.startswith(_WEB) else join_link(base, link)
        if url.lower().startswith(_WEB):
            yield url


async def _read_sitemap(facts: SitemapFacts, response: Response) -> FoundSitemap:
    body = response.body
    # Neither the content type nor the suffix is reliable: look at the bytes.
    facts.inflated = body.startswith(b"\x1f\x8b")
    if response.truncated:
        sitemap, stored = Sitemap("invalid", problems=("too_large",)), None
    elif facts.inflated or len(body) > _PARSE_INLINE_BYTES:
        sitemap, stored = await asyncio.to_thread(_read, body, response.final_url)
    else:
        sitemap, stored = _read(body, response.final_url)
    facts.exists = True
    facts.kind = sitemap.kind
    if stored is not None:
        facts.content_length = len(stored)
        facts.sha256 = hashlib.sha256(stored).hexdigest()
    facts.url_count, facts.child_count = len(sitemap.urls), len(sitemap.children)
    facts.problems = list(sitemap.problems)
    facts.etag = validator(response.headers, "etag")
    facts.last_modified = validator(response.headers, "last-modified")
    return FoundSitemap(facts, stored, sitemap.children)


def _read(body: bytes, url: str) -> tuple[Sitemap, bytes | None]:
    sitemap = parse_sitemap(body, url)
    try:
        return sitemap, b"".join(inflated(body)) if body.startswith(b"\x1f\x8b") else body
    except (TooLarge, BadGzip):
        return sitemap, None


async def _count(facts: SitemapFacts, response: Response) -> None:
    if response.status >= 300 or response.truncated:
        _note(facts, "child_too_large" if response.truncated else f"child_http_{response.status}")
        return
    child = await asyncio.to_thread(parse_sitemap, response.body, response.final_url)
    facts.url_count += len(child.urls)
    if child.kind in ("index", "invalid"):
        _note(facts, f"child_{child.kind}")


def _note(facts: SitemapFacts, problem: str) -> None:
    if problem not in facts.problems:
        facts.problems.append(problem)


@dataclass(slots=True)
class UsageFetcher:
    """Fetches the files of one host that state how its content may be used.

    Every request counts against the budget of the survey. What does not fit is named in `deferred`,
    and the next survey of the domain begins with it. Nothing is requested that robots.txt
    disallows.
    """

    domain: DomainFetcher
    origin: str
    rules: Robots
    statements: list[UseStatement] = field(default_factory=list)
    files: list[UsageFileFacts] = field(default_factory=list)
    deferred: list[str] = field(default_factory=list)
    has_timed_out: bool = False

    async def fetch_home_and_licenses(self, robots: Sequence[UseStatement]) -> None:
        """Fetch the home page, tdmrep.json and the first licence document."""
        await self._fetch("home", f"{self.origin}/")
        await self._fetch("tdmrep", f"{self.origin}/.well-known/tdmrep.json")
        links = license_urls([*robots, *self.statements], self.domain.options.user_agent)
        for url in links[:1]:
            await self._fetch("rsl", url)

    async def fetch_small_files(self, first: Iterable[str] = ()) -> None:
        """Fetch the small files, those that an earlier survey deferred before the others."""
        for name in dict.fromkeys([*(one for one in first if one in SMALL_FILES), *SMALL_FILES]):
            await self._fetch(name, f"{self.origin}{SMALL_FILES[name]}")

    async def _fetch(self, name: str, url: str) -> None:
        """Fetch a file unless it must be deferred; note what happened and what it states."""
        domain = self.domain
        # A licence may lie on another host, whose rules are not these.
        is_own = url.startswith(f"{self.origin}/")
        if is_own and not self.rules.allows(domain.options.user_agent, url):
            return
        if self.has_timed_out or not domain.has_requests_left:
            self.deferred.append(name)
            return
        facts = UsageFileFacts(name=name, url=url, fetched_at=domain.clock())
        self.files.append(facts)
        try:
            response, known = await domain.fetch_if_changed(
                UsageFileFacts, url, max_body_bytes=_MAX_USAGE_BYTES
            )
        except FetchError as error:
            facts.error = error.reason
            # A host that leaves us waiting once would do so for every file.
            self.has_timed_out = error.reason == "timeout"
            return
        if known is not None and domain.previous is not None:
            assert isinstance(known.facts, UsageFileFacts)
            changed = {"fetched_at": facts.fetched_at, "not_modified": True}
            self.files[-1] = known.facts.model_copy(update=changed)
            self.statements += domain.previous.statements_from(url)
            return
        facts.status_code = response.status
        if 200 <= response.status < 300:
            facts.exists = True
            facts.size_bytes = len(response.body)
            facts.sha256 = hashlib.sha256(response.body).hexdigest()
            facts.etag = validator(response.headers, "etag")
            facts.last_modified = validator(response.headers, "last-modified")
            self._read(facts, response)

    def _read(self, facts: UsageFileFacts, response: Response) -> None:
        """Keep what a file states; llms.txt and security.txt state nothing about use."""
        if facts.name == "home":
            self.statements += parse_page(response)
        elif facts.name == "llms.txt":
            facts.exists = is_llms_txt(response.body)
        elif facts.name == "security.txt":
            facts.values = security_contacts(response.body)
            facts.exists = bool(facts.values)
        else:
            self.statements += _PARSERS[facts.name](response.body, source=facts.url)


def parse_page(response: Response) -> list[UseStatement]:
    """Return the statements in the headers and the elements of a page."""
    headers = {name: lines for name in _SIGNAL_HEADERS if (lines := response.header_lines(name))}
    found = parse_header_signals(headers, url=response.url)
    if b"<" in response.body:
        found += parse_html_signals(HTMLTree.parse_from_bytes(response.body), url=response.url)
    return found
