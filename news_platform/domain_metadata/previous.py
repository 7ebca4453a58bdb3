"""The previous survey of a domain: what the next one need not fetch if its hosts confirm it.

A file is requested with the ETag and the date that its host sent last time. If the host answers
304, the stored bytes, or the statements that were read from them, count as received again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

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
from news_platform.web.fetch import Fetcher, Response
from news_platform.web.http_headers import conditional_headers, validator

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
