"""The fictional outlets of the sample world, under `.example`, with their peculiarities."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from news_platform.sample.package_data import read_toml
from news_platform.sample.responses import SiteResponse

FEED_TYPES = {
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
    "rdf": "application/rdf+xml",
    "json": "application/feed+json",
}


@dataclass(frozen=True, slots=True)
class FeedHabit:
    """How an outlet offers its feed: `kind` is rss, atom, rdf or json.

    `tracked` links carry campaign parameters; every `undated_every`-th entry hides its date;
    `archive` is the path of a second feed whose entries are old.
    """

    kind: str
    path: str
    entries: int = 15
    charset: str = "utf-8"
    etag: bool = True
    last_modified: bool = True
    tracked: bool = False
    gzipped: bool = False
    undated_every: int = 0
    archive: str | None = None


@dataclass(frozen=True, slots=True)
class ShortLinks:
    """Second addresses of all articles, which every `every`-th entry of the feed announces."""

    path: str
    every: int
    status: int = 301
    is_relative: bool = False


@dataclass(frozen=True, slots=True)
class Voice:
    """How long the stories of an outlet are, in beats, and which topics it covers."""

    topics: tuple[str, ...] = ()
    shortest: int = 7
    longest: int = 11


@dataclass(frozen=True, slots=True)
class Outlet:
    """One fictional publisher.

    `link_style` is dated, numbered, query or native (letters of its own script in the path);
    `layout` names the page template; `metadata` is jsonld, graph, opengraph or none. The names of
    `sitemaps` say what they contain. The `withdrawn`-th newest article is gone from the site, but
    the feed and the crawl still contain it. `responses` are single answers by path.
    """

    key: str
    name: str
    host: str
    language: str
    country: str
    articles: int
    feed: FeedHabit
    charset: str = "utf-8"
    layout: str = "classic"
    metadata: str = "jsonld"
    link_style: str = "dated"
    charset_in_header: bool = True
    crawled: bool = True
    aliases: tuple[str, ...] = ()
    robots_on_aliases: bool = False
    utc_offset_hours: int = 0
    sitemaps: tuple[str, ...] = ("/sitemap.xml",)
    short_links: ShortLinks | None = None
    withdrawn: int | None = None
    responses: Mapping[str, SiteResponse] = field(default_factory=dict)
    voice: Voice = field(default_factory=Voice)

    @property
    def origin(self) -> str:
        """Return the URL of the front page without its final slash."""
        return f"https://{self.host}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return every host name of this outlet, its main one first."""
        return (self.host, *self.aliases)

    def local(self, instant: datetime) -> datetime:
        """Return the instant in the outlet's time zone."""
        return instant.astimezone(timezone(timedelta(hours=self.utc_offset_hours)))


@dataclass(frozen=True, slots=True)
class _OutletsFile:
    outlet: tuple[Outlet, ...]


OUTLETS = read_toml("outlets.toml", _OutletsFile).outlet
OUTLET_OF = {outlet.key: outlet for outlet in OUTLETS}
