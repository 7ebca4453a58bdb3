"""Fetch and parse the robots.txt and the sitemap of one domain, and decide what counts as read.

What the previous survey received is requested with the ETag and the date that the host sent then.
If the host answers 304, the stored bytes, or the statements read from them, count as received. What
cannot be read this time (no answer, 5xx, 429, 402, a bot challenge, a web page instead of text) or
is not asked for stays as it was last read, with that time.
"""

import asyncio
import codecs
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import urlsplit

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
from news_platform.domain_metadata.signals.verdict import MAX_AGE
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
from news_platform.web.responses import RETRYABLE_STATUSES, conditional_headers, validator
from news_platform.web.robots import MAX_BYTES, Robots

Clock = Callable[[], datetime]
FileFacts = RobotsFacts | SitemapFacts | UsageFileFacts

MAX_REQUESTS = 8
"""Requests per domain and survey; redirects and the children of a sitemap index count apart."""

ABSENT_FOR = timedelta(days=30)
"""A file that was absent (404 or 410) is not asked for again within this time."""

# A TLS failure and a closed port 443 both mean that the site offers plain HTTP only.
_NO_TLS = frozenset({"tls", "refused"})
# Parsing a larger sitemap on the event loop would delay all other responses.
_PARSE_INLINE_BYTES = 128 * 1024
_WEB = ("https://", "http://")
_AUTHORITY_END = re.compile(r"[/?#]")
# How a page begins that is served instead of text, including XHTML and object store errors.
_MARKUP = (b"<!doctype", b"<html", b"<head", b"<body", b"<?xml", b"<!--")
# How a page begins that is served instead of XML.
_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*)*<(?:!doctype\s+html|html)", re.I | re.S)
# Headers by which the usual services mark a page that tests for a human.
_CHALLENGES = ("cf-mitigated", "x-amzn-waf-action")
# This service names itself in every response.
_CHALLENGES_IF_FORBIDDEN = "x-datadome"
ABSENT = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class SurveyFetchOptions:
    """Limits of what is fetched per domain; robots.txt knows us by the token of `user_agent`."""

    user_agent: str = "NewsPlatformBot"
    # The limit of the sitemap protocol, here for the bytes as sent.
    max_sitemap_bytes: int = 50 * 1024 * 1024
    # Some robots.txt list hundreds of sitemaps, and an index may have 50,000 children.
    max_sitemaps_tried: int = 3
    max_children: int = 10
    # Children are fetched one by one; after this time the remaining ones are skipped.
    children_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class PreviousSurvey:
    """The facts of the previous survey, and the bytes of its files that are as received."""

    facts: DomainMetadata
    bodies: Mapping[str, bytes]

    @property
    def deferred(self) -> list[str]:
        """Return the files that the previous survey had no request left for."""
        return self.facts.usage.deferred if self.facts.usage else []

    @property
    def usage_files(self) -> dict[str, UsageFileFacts]:
        """Return what is known about the files that may state how content may be used."""
        files = self.facts.usage.files if self.facts.usage else []
        return {file_key(one.name, one.url): one for one in files}

    def statements_from(self, file: str) -> list[UseStatement]:
        """Return the statements that were last read from a file or page."""
        found = self.facts.usage.statements if self.facts.usage else []
        return [one for one in found if one.file == file]

    def robots(self, host: str) -> tuple[RobotsFacts, bytes | None] | None:
        """Return what was last read of a host's robots.txt: its facts, and its bytes if any."""
        for name, facts in stored_files(self.facts):
            if isinstance(facts, RobotsFacts) and facts.host == host and facts.read_at:
                body = self.bodies.get(name)
                return None if facts.sha256 and body is None else (facts, body)
        return None


def file_key(name: str, url: str) -> str:
    """Return what identifies a file from one survey to the next: a site may have more licences."""
    return url if name == "rsl" else name


def stored_files(facts: DomainMetadata) -> Iterator[tuple[str, RobotsFacts | SitemapFacts]]:
    """Yield the names and facts of the files that a survey stores as the hosts sent them."""
    for robots in (facts.robots, *facts.other_hosts):
        yield robots_file_name(robots, is_first=robots is facts.robots), robots
    yield SITEMAP_FILE, facts.sitemap


def stating_robots(robots: Iterable[RobotsFacts], *, at: datetime) -> RobotsFacts | None:
    """Return the robots.txt that speaks for a domain, of several hosts; None if none was read.

    A host with a file comes before one without, the first before the second. A host that cannot be
    read does not hand the domain over to the other one, except after a long time.
    """
    read = [(one, one.read_at) for one in robots if one.read_at]
    ranked = [(at - read_at > MAX_AGE, one.sha256 is None, one) for one, read_at in read]
    return min(ranked, key=lambda rank: rank[:2])[2] if ranked else None


def robots_file_name(facts: RobotsFacts, *, is_first: bool) -> str:
    """Return the name under which the robots.txt of a host is stored."""
    return ROBOTS_FILE if is_first else f"robots.{sanitized_domain(facts.host)}.txt"


@dataclass(frozen=True, slots=True)
class HostRobots:
    """A host's robots.txt: the facts, the rules for fetching, and what was last read of it.

    `rules` follow from this response (RFC 9309). `stated` are the rules last read, None if there
    are none, and `body` is the file they were read from, None if the host had none.
    """

    facts: RobotsFacts
    rules: Robots
    stated: Robots | None
    body: bytes | None = None
    retry_after: str | None = None

    @property
    def rules_url(self) -> str:
        """Return the URL that robots.txt was finally read from."""
        return self.facts.final_url or self.facts.url

    @property
    def origin(self) -> str:
        """Return the scheme and the host that finally answered."""
        scheme, _, rest = self.rules_url.partition("://")
        return f"{scheme}://{_AUTHORITY_END.split(rest, maxsplit=1)[0]}"

    def is_open(self, user_agent: str) -> bool:
        """Return whether the host may be asked for more than robots.txt."""
        return self.rules.policy(user_agent) != "disallow_all"


@dataclass(frozen=True, slots=True)
class FoundSitemap:
    """A sitemap: the facts, the bytes to store, and the URLs of its children."""

    facts: SitemapFacts
    body: bytes | None = None
    children: tuple[str, ...] = ()
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """The response to a request; `unread` is why it says nothing about the file, in one word."""

    response: Response | None
    unread: str = ""
    is_confirmed: bool = False

    @property
    def status(self) -> int | None:
        """Return the status; a confirmed file counts as received."""
        if self.response is None:
            return None
        return 200 if self.is_confirmed else self.response.status

    @property
    def is_received(self) -> bool:
        """Return whether the file was sent or confirmed."""
        return not self.unread and self.status is not None and 200 <= self.status < 300


def unread_reason(response: Response) -> str:
    """Return why a response says nothing about a file, '' if it does: the file, or its absence."""
    status = response.status
    is_forbidden = status == 403 and _CHALLENGES_IF_FORBIDDEN in response.headers
    if is_forbidden or any(name in response.headers for name in _CHALLENGES):
        return "challenge"
    if status == 402:
        return "payment_required"
    if is_temporary(status) or 300 <= status < 400:
        return f"http_{status}"
    return ""


def is_temporary(status: int) -> bool:
    """Return whether a status says that a later request may be answered; a 1xx is no answer yet."""
    return status < 200 or status >= 500 or status in RETRYABLE_STATUSES


def is_markup(body: bytes) -> bool:
    """Return whether a body that should be text is a web page or another XML document."""
    return body.removeprefix(codecs.BOM_UTF8).lstrip()[:10].lower().startswith(_MARKUP)


def is_html(body: bytes) -> bool:
    """Return whether a body that should be XML is a web page."""
    return _HTML.match(body.removeprefix(codecs.BOM_UTF8)[:4096]) is not None


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

    async def fetch(self, url: str, *, known: FileFacts | None, max_body_bytes: int) -> FileAnswer:
        """Fetch a file, unless it is as `known` describes it."""
        self.requests += 1
        headers = (
            conditional_headers(etag=known.etag, last_modified=known.last_modified) if known else {}
        )
        try:
            response = await self.fetcher.fetch(url, headers=headers, max_body_bytes=max_body_bytes)
        except FetchError as error:
            return FileAnswer(None, error.reason)
        if headers and response.status == 304:
            return FileAnswer(response, is_confirmed=True)
        return FileAnswer(response, unread_reason(response))

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
        facts = RobotsFacts(host=host, url=url, fetched_at=self.clock())
        known = self.previous.robots(host) if self.previous else None
        before, old = known if known else (None, None)
        same = before if before and before.url == url and old is not None else None
        # RFC 9309 lets a crawler ignore what follows the first 500 KiB.
        answer = await self.fetch(url, known=same, max_body_bytes=MAX_BYTES)
        response = answer.response
        if response is None:
            facts.error, sent = answer.unread, b""
        else:
            sent = old if answer.is_confirmed and old is not None else response.body
            facts.final_url, facts.redirects = response.final_url, len(response.redirects)
            facts.elapsed_seconds = round(response.elapsed_seconds, 3)
        facts.status_code, facts.not_modified = answer.status, answer.is_confirmed
        # RFC 9309: a 4xx allows everything, a 5xx or no answer disallows everything.
        rules = Robots.of_answer(answer.status, sent)
        facts.is_html = answer.is_received and is_markup(sent)
        facts.unread = "markup" if facts.is_html else answer.unread
        wait = response.headers.get("retry-after") if response else None
        if facts.unread:
            stated = _keep_robots(facts, before, old)
            return HostRobots(facts, rules, stated, old if stated else None, wait)
        facts.read_at, facts.exists = facts.fetched_at, answer.is_received
        if response is None or not facts.exists:
            return HostRobots(facts, rules, rules, None, wait)
        facts.content_length, facts.sha256 = len(sent), hashlib.sha256(sent).hexdigest()
        facts.truncated = response.truncated or (same.truncated if same else False)
        facts.sitemap_urls = list(_web_urls(rules.sitemaps, base=response.final_url))
        # A server that confirms a file need not repeat its validators.
        kept = same if answer.is_confirmed else None
        facts.etag = validator(response.headers, "etag") or (kept.etag if kept else "")
        last_modified = validator(response.headers, "last-modified")
        facts.last_modified = last_modified or (kept.last_modified if kept else "")
        return HostRobots(facts, rules, rules, sent, wait)

    async def fetch_sitemap(
        self, url: str, *, found_by: Literal["robots", "default"]
    ) -> FoundSitemap:
        """Fetch one sitemap if it changed, and parse it."""
        facts = SitemapFacts(url=url, found_by=found_by, fetched_at=self.clock())
        before = self.previous.facts.sitemap if self.previous else None
        known = before if before and before.url == url else None
        # Of a sitemap that robots.txt lists, the site says that it is there.
        is_absent = known is not None and known.status_code in ABSENT and found_by == "default"
        if known and is_absent and self.is_recent(known.fetched_at):
            return FoundSitemap(known)
        stored = self.previous.bodies.get(SITEMAP_FILE) if self.previous and known else None
        answer = await self.fetch(
            url,
            known=known if stored is not None else None,
            max_body_bytes=self.options.max_sitemap_bytes,
        )
        response = answer.response
        if response is None:
            facts.error = answer.unread
            return FoundSitemap(facts)
        facts.elapsed_seconds = round(response.elapsed_seconds, 3)
        if known is not None and answer.is_confirmed:
            # The children of an index that is confirmed are not requested again.
            changed = facts.model_dump(include={"found_by", "fetched_at", "elapsed_seconds"})
            return FoundSitemap(known.model_copy(update={**changed, "not_modified": True}), stored)
        facts.status_code, facts.final_url = response.status, response.final_url
        if 200 <= response.status < 300:
            return await _read_sitemap(facts, response)
        return FoundSitemap(facts, retry_after=response.headers.get("retry-after"))

    def is_recent(self, at: datetime | None) -> bool:
        """Return whether a file that was absent at a time is not asked for again yet."""
        return at is not None and self.clock() - at < ABSENT_FOR

    async def count_children(self, found: FoundSitemap, allows: Callable[[str], bool]) -> None:
        """Fetch the first children of an index that robots.txt allows, and count their URLs."""
        clock = asyncio.get_running_loop().time
        stop_at = clock() + self.options.children_seconds
        limit = self.options.max_sitemap_bytes
        for url in found.children[: self.options.max_children]:
            if not allows(url):
                _note(found.facts, "child_disallowed")
                continue
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


def _keep_robots(
    facts: RobotsFacts, before: RobotsFacts | None, body: bytes | None
) -> Robots | None:
    """Add to the facts what was last read of the file; return its rules, None if it never was."""
    if before is None:
        return None
    for name in ("read_at", "content_length", "sha256", "truncated", "etag", "last_modified"):
        setattr(facts, name, getattr(before, name))
    return Robots.parse(body or b"")


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
    facts.kind = sitemap.kind
    facts.problems = list(sitemap.problems)
    if stored is not None and sitemap.kind == "invalid" and is_html(stored):
        # A page that says "not found" with status 200 is not the site's sitemap.
        facts.problems = ["html"]
        return FoundSitemap(facts)
    facts.exists = True
    if stored is not None:
        facts.content_length = len(stored)
        facts.sha256 = hashlib.sha256(stored).hexdigest()
    facts.url_count, facts.child_count = len(sitemap.urls), len(sitemap.children)
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
