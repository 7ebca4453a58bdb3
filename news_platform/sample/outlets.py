"""The fictional outlets of the sample world, under `.example`, with their peculiarities.

What all modules of the sample share comes first: its data files and templates, the responses of its
sites, and gzip with the same bytes at any time.
"""

import html
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TypeVar

import jinja2
from pydantic import TypeAdapter

T = TypeVar("T")

PACKAGE = files("news_platform.sample")
DATA = PACKAGE.joinpath("data")


def read_toml(name: str, kind: type[T], **more: object) -> T:
    """Read a TOML file as a value of a dataclass; `more` are fields that the file leaves out."""
    document = tomllib.loads(DATA.joinpath(name).read_text(encoding="utf-8"))
    return TypeAdapter(kind).validate_python({**document, **more})


def read_tree(folder: Traversable) -> dict[str, bytes]:
    """Read every file under a folder of the package, by its path in the folder."""
    return dict(_iter_files(folder, "")) if folder.is_dir() else {}


def _iter_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from _iter_files(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry.read_bytes()


def render(template: str, **values: object) -> str:
    """Render a template of the data folder."""
    return _templates().get_template(template).render(values)


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("news_platform.sample", "data/templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # Templates escape with `|e` where a text may need it: they also render XML and markdown.
    environment.filters.update(e=html.escape, rfc2822=format_datetime)
    return environment


HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"

# Magic, deflate, no name, no time, no hints, unknown system. gzip.compress writes a last byte that
# changed between Python versions.
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


@dataclass(frozen=True, slots=True)
class SiteResponse:
    """The response of a site at one URL; `gzipped` bodies are compressed when they are sent."""

    body: bytes = b""
    content_type: str = HTML
    status: int = 200
    location: str | None = None
    modified_at: datetime | None = None
    etag: bool = False
    gzipped: bool = False
    retry_after_seconds: int | None = None


def http_date(instant: datetime) -> str:
    """Return the instant as an HTTP date."""
    return format_datetime(instant.astimezone(UTC), usegmt=True)


def gzip_member(body: bytes) -> bytes:
    """Compress into one gzip member without name or time."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = packer.compress(body) + packer.flush()
    tail = zlib.crc32(body).to_bytes(4, "little") + len(body).to_bytes(4, "little")
    return _GZIP_HEADER + deflated + tail


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
