"""Fetch and parse what one host serves: its robots.txt, a sitemap, the children of an index.

What the previous survey received is requested with the ETag and the date that the host sent then.
If the host answers 304, the stored bytes, or the statements read from them, count as received.
"""

import asyncio
import codecs
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

from news_platform.datasets.domain_metadata import (
    ROBOTS_FILE,
    SITEMAP_FILE,
    DomainMetadata,
    RobotsFacts,
    SitemapFacts,
    UsageFileFacts,
    UseStatementFacts,
    sanitized_domain,
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
from news_platform.web.fetch import Fetcher, PoliteFetcher, Response
from news_platform.web.responses import conditional_headers, validator
from news_platform.web.robots import MAX_BYTES, Robots

NOT_MODIFIED = 304
FileFacts = RobotsFacts | SitemapFacts | UsageFileFacts


@dataclass(frozen=True, slots=True)
class PreviousSurvey:
    """The facts of the previous survey, and the bytes of its files that may be confirmed."""

    facts: DomainMetadata
    files: Mapping[str, bytes]

    @property
    def deferred(self) -> list[str]:
        """Return the files that the previous survey had no request left for."""
        return self.facts.usage.deferred if self.facts.usage else []

    def robots(self, host: str) -> "KnownFile | None":
        """Return the robots.txt of a host."""
        for place, facts in enumerate((self.facts.robots, *self.facts.other_hosts)):
            if facts.host == host:
                name = f"robots.{sanitized_domain(host)}.txt" if place else ROBOTS_FILE
                return self._stored(name, facts)
        return None

    def sitemap(self, url: str) -> "KnownFile | None":
        """Return the stored sitemap if this is its URL."""
        facts = self.facts.sitemap
        return self._stored(SITEMAP_FILE, facts) if facts.url == url else None

    def usage_file(self, url: str) -> "KnownFile | None":
        """Return a small file; its bytes were not stored, only what was read from them."""
        for facts in self.facts.usage.files if self.facts.usage else ():
            if facts.url == url and facts.exists:
                return KnownFile(facts)
        return None

    def statements_from(self, url: str) -> list[UseStatementFacts]:
        """Return the statements that were read from a file or page."""
        found = self.facts.usage.statements if self.facts.usage else []
        # The source of a header or element is the URL, a blank and its name.
        return [one for one in found if one.source == url or one.source.startswith(f"{url} ")]

    def _stored(self, name: str, facts: RobotsFacts | SitemapFacts) -> "KnownFile | None":
        return KnownFile(facts, self.files[name]) if name in self.files else None


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of the previous survey; `body` is empty where only its facts were stored."""

    facts: FileFacts
    body: bytes = b""

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that ask for the file only if it changed."""
        return conditional_headers(etag=self.facts.etag, last_modified=self.facts.last_modified)


async def fetch_if_changed(
    fetcher: Fetcher, url: str, known: KnownFile | None, *, max_body_bytes: int
) -> tuple[Response, bool]:
    """Fetch a URL; return a response, and whether its bytes are those of the previous survey.

    A confirmed file counts as a response with status 200 and the stored bytes.
    """
    if known is None:
        return await fetcher.fetch(url, max_body_bytes=max_body_bytes), False
    response = await fetcher.fetch(url, headers=known.headers, max_body_bytes=max_body_bytes)
    if response.status != NOT_MODIFIED or not known.headers:
        return response, False
    return replace(response, status=200, body=known.body), True


def new_validator(response: Response, name: str, known: KnownFile | None, is_known: bool) -> str:
    """Return a header of the response that the next survey sends back.

    A server that confirms a file need not repeat its validators.
    """
    found = validator(response.headers, name)
    if found or not is_known or known is None:
        return found
    return known.facts.etag if name == "etag" else known.facts.last_modified


Clock = Callable[[], datetime]

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


async def fetch_robots(
    host: str,
    *,
    fetcher: PoliteFetcher,
    clock: Clock,
    user_agent: str,
    previous: PreviousSurvey | None = None,
) -> HostRobots:
    """Fetch the robots.txt of a host if it changed, over HTTP if HTTPS is not available."""
    site = f"[{host}]" if ":" in host else host
    known = previous.robots(host) if previous else None
    answer = await _robots_at(
        f"https://{site}/robots.txt", host=host, fetcher=fetcher, clock=clock, known=known
    )
    if answer.facts.error in _NO_TLS:
        plain = await _robots_at(
            f"http://{site}/robots.txt", host=host, fetcher=fetcher, clock=clock, known=known
        )
        plain.facts.tls_failed = True
        answer = plain
    delay = answer.rules.crawl_delay(user_agent)
    if delay:
        answer.facts.crawl_delay_seconds = delay
        # robots.txt may have redirected: the delay applies to the host that finally answered.
        fetcher.set_crawl_delay(urlsplit(answer.facts.final_url or "").hostname or host, delay)
    return answer


async def _robots_at(
    url: str, *, host: str, fetcher: PoliteFetcher, clock: Clock, known: KnownFile | None
) -> HostRobots:
    fetched_at = clock()
    # A file that was found at another address may differ from the one at this address.
    asked = known if known is not None and known.facts.url == url else None
    try:
        # RFC 9309 lets a crawler ignore what follows the first 500 KiB.
        response, is_known = await fetch_if_changed(fetcher, url, asked, max_body_bytes=MAX_BYTES)
    except FetchError as error:
        facts = RobotsFacts(host=host, url=url, fetched_at=fetched_at, error=error.reason)
        return HostRobots(facts, Robots.of_answer(None, b""))
    # RFC 9309: a 4xx allows everything, a 5xx or no answer disallows everything.
    rules = Robots.of_answer(response.status, response.body)
    exists = 200 <= response.status < 300
    body = response.body if exists else None
    facts = RobotsFacts(
        host=host,
        url=url,
        final_url=response.final_url,
        status_code=response.status,
        exists=exists,
        content_length=len(body) if body is not None else None,
        sha256=hashlib.sha256(body).hexdigest() if body is not None else None,
        truncated=exists and (response.truncated or (is_known and _was_truncated(asked))),
        is_html=body is not None and _is_markup(body),
        redirects=len(response.redirects),
        fetched_at=fetched_at,
        elapsed_seconds=round(response.elapsed_seconds, 3),
        sitemap_urls=list(_web_urls(rules.sitemaps, base=response.final_url)) if exists else [],
        not_modified=is_known,
        etag=new_validator(response, "etag", asked, is_known),
        last_modified=new_validator(response, "last-modified", asked, is_known),
    )
    return HostRobots(facts, rules, body, response.headers.get("retry-after"))


def _was_truncated(known: KnownFile | None) -> bool:
    return known is not None and isinstance(known.facts, RobotsFacts) and known.facts.truncated


def _is_markup(body: bytes) -> bool:
    return body.removeprefix(codecs.BOM_UTF8).lstrip()[:10].lower().startswith(_MARKUP)


def _web_urls(links: Iterable[str], *, base: str) -> Iterator[str]:
    for link in links:
        url = link if link.startswith(_WEB) else join_link(base, link)
        if url.lower().startswith(_WEB):
            yield url


async def fetch_sitemap(
    url: str,
    *,
    found_by: Literal["robots", "default"],
    fetcher: PoliteFetcher,
    clock: Clock,
    options: SurveyFetchOptions,
    previous: PreviousSurvey | None = None,
) -> FoundSitemap:
    """Fetch one sitemap if it changed, and parse it."""
    facts = SitemapFacts(url=url, found_by=found_by, fetched_at=clock())
    known, limit = previous.sitemap(url) if previous else None, options.max_sitemap_bytes
    try:
        response, is_known = await fetch_if_changed(fetcher, url, known, max_body_bytes=limit)
    except FetchError as error:
        facts.error = error.reason
        return FoundSitemap(facts)
    if known is not None and is_known:
        return _confirmed_sitemap(facts, response, known)
    if 200 <= response.status < 300:
        return await _read_sitemap(facts, response)
    facts.status_code, facts.final_url = response.status, response.final_url
    facts.elapsed_seconds = round(response.elapsed_seconds, 3)
    return FoundSitemap(facts, retry_after=response.headers.get("retry-after"))


def _confirmed_sitemap(
    requested: SitemapFacts, response: Response, known: KnownFile
) -> FoundSitemap:
    """Return the sitemap of the previous survey; the children of an index are not asked again."""
    changed = {
        "found_by": requested.found_by,
        "fetched_at": requested.fetched_at,
        "elapsed_seconds": round(response.elapsed_seconds, 3),
        "not_modified": True,
    }
    assert isinstance(known.facts, SitemapFacts)
    return FoundSitemap(known.facts.model_copy(update=changed), known.body)


async def _read_sitemap(requested: SitemapFacts, response: Response) -> FoundSitemap:
    body = response.body
    # Neither the content type nor the suffix is reliable: look at the bytes.
    gzipped = body.startswith(b"\x1f\x8b")
    if response.truncated:
        sitemap, stored = Sitemap("invalid", problems=("too_large",)), None
    elif gzipped or len(body) > _PARSE_INLINE_BYTES:
        sitemap, stored = await asyncio.to_thread(_read, body, response.final_url)
    else:
        sitemap, stored = _read(body, response.final_url)
    facts = SitemapFacts(
        url=requested.url,
        found_by=requested.found_by,
        fetched_at=requested.fetched_at,
        final_url=response.final_url,
        status_code=response.status,
        exists=True,
        kind=sitemap.kind,
        content_length=len(stored) if stored is not None else None,
        sha256=hashlib.sha256(stored).hexdigest() if stored is not None else None,
        inflated=gzipped,
        elapsed_seconds=round(response.elapsed_seconds, 3),
        url_count=len(sitemap.urls),
        child_count=len(sitemap.children),
        problems=list(sitemap.problems),
        etag=validator(response.headers, "etag"),
        last_modified=validator(response.headers, "last-modified"),
    )
    return FoundSitemap(facts, stored, sitemap.children)


def _read(body: bytes, url: str) -> tuple[Sitemap, bytes | None]:
    sitemap = parse_sitemap(body, url)
    if not body.startswith(b"\x1f\x8b"):
        return sitemap, body
    try:
        return sitemap, b"".join(inflated(body))
    except (TooLarge, BadGzip):
        return sitemap, None


async def count_children(
    found: FoundSitemap, *, fetcher: PoliteFetcher, options: SurveyFetchOptions
) -> None:
    """Fetch the first children of an index and add their URLs to its count."""
    clock = asyncio.get_running_loop().time
    stop_at = clock() + options.children_seconds
    for url in found.children[: options.max_children]:
        if clock() > stop_at:
            _note(found.facts, "children_out_of_time")
            return
        try:
            response = await fetcher.fetch(url, max_body_bytes=options.max_sitemap_bytes)
        except FetchError as error:
            _note(found.facts, f"child_{error.reason}")
            continue
        found.facts.children_fetched += 1
        await _count(found.facts, response)


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
