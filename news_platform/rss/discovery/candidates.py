"""Collect candidate feeds from OPML files and from the pages of the crawl."""

from collections.abc import Iterable, Iterator
from html import escape

import polars as pl
from lxml import etree

from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values

OPML_FILE = "feeds.opml"
CRAWL_FOLDER = "news/feed_candidates"
# Crawled pages link to tens of thousands of feeds; those on the most pages come first.
_MAX_FROM_CRAWL = 2_000


def candidate_feeds(store: ObjectStore, *, days: int = 7) -> tuple[str, ...]:
    """Return the feeds of the root's `feeds.opml`, then those of the newest crawled days."""
    return tuple(dict.fromkeys((*_opml(store), *_crawled(store, days=days))))


def _opml(store: ObjectStore) -> tuple[str, ...]:
    return opml_feeds(store.read(OPML_FILE)) if store.exists(OPML_FILE) else ()


def _crawled(store: ObjectStore, *, days: int) -> list[str]:
    frames = [_read(store, path) for path in _newest_files(store, days=days)]
    if not frames:
        return []
    counted = (
        pl.concat(frames)
        .group_by("feed_url")
        .agg(pl.col("pages").sum())
        # The URL breaks ties, so that the same files give the same candidates.
        .sort(["pages", "feed_url"], descending=[True, False])
    )
    return counted["feed_url"].head(_MAX_FROM_CRAWL).to_list()


def _newest_files(store: ObjectStore, *, days: int) -> Iterator[str]:
    by_day: dict[tuple[str, ...], list[str]] = {}
    for info in store.list(CRAWL_FOLDER):
        if info.path.endswith(".parquet"):
            values = path_values(info.path)
            day = tuple(values.get(part, "") for part in ("year", "month", "day"))
            by_day.setdefault(day, []).append(info.path)
    for day in sorted(by_day, reverse=True)[:days]:
        yield from by_day[day]


def _read(store: ObjectStore, path: str) -> pl.DataFrame:
    return pl.read_parquet(store.read(path), columns=["feed_url", "pages"])


def opml_feeds(body: bytes) -> tuple[str, ...]:
    """Return the feed URLs of an OPML file in order, each once; raise InputError if it is none."""
    # Anyone may have written the file: resolve no entities and open no network connection, and
    # accept the errors that feed readers make in their exports.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise InputError(f"not an OPML file: cannot parse it as XML: {error}") from error
    name = "" if root is None else etree.QName(root).localname.lower()
    if name == "opml":
        urls = [_feed_url(outline.attrib) for outline in root.iter("outline")]
    elif name == "object":  # the export format of Google Reader
        urls = [
            (ident.text or "").removeprefix("feed/")
            for ident in root.iterfind(".//string[@name='id']")
        ]
    else:
        raise InputError(f"not an OPML file: expected the root element <opml>, found {name!r}")
    return tuple(dict.fromkeys(url for url in map(_web_address, urls) if url))


def opml_document(feeds: Iterable[tuple[str, str]]) -> str:
    """Return an OPML document of (URL, title) pairs, in the order given."""
    lines = (
        f'    <outline type="rss" text="{escape(title or url)}" xmlUrl="{escape(url)}"/>'
        for url, title in feeds
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0">\n  <head>'
    return "\n".join(
        (f"{head}<title>Feeds</title></head>\n  <body>", *lines, "  </body>\n</opml>\n")
    )


def _feed_url(attributes: "etree._Attrib") -> str:
    """Return the xmlUrl attribute in any capitalisation, or ''."""
    for name, value in attributes.items():
        if str(name).lower() == "xmlurl":
            return str(value)
    return ""


def _web_address(text: str) -> str:
    # feed:// is how some feed readers write http://.
    url = text.strip().replace("feed://", "http://", 1)
    return url if url.startswith(("http://", "https://")) else ""
