"""The bytes of an RSS, Atom, RDF or JSON feed in, its title, language and entries out.

fastfeedparser reads nearly all of them; feedparser is asked only where that fails, finds nothing or
leaves an entry without a link. Hostile feeds can stall both: outside tests run this in the pool.
"""

import calendar
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import unescape
from typing import Any

import fastfeedparser
import feedparser

from news_platform.errors import InputError
from news_platform.html.dates import parse_date
from news_platform.html.links import join_link
from news_platform.text.normalize import tidy

_TAG = re.compile(r"<[a-zA-Z/!][^>]*>")
# Whole articles stand in some summaries; the beginning is enough, and markup is not free to read.
_MAX_MARKUP = 2_000
_ONLY_WHAT_WE_READ = {
    f"include_{part}": False for part in ("content", "tags", "media", "enclosures")
}
_ITEM = re.compile(rb"<(?:\w+:)?(?:item|entry)\b", re.IGNORECASE)
_LAST_ITEM = re.compile(rb".*</(?:\w+:)?(?:item|entry)>", re.IGNORECASE | re.DOTALL)
_ODD_ZONE = re.compile(rb":\d\d? ?(?:GMT|UTC)[+-]\d")
_LANGUAGE = re.compile(
    rb"<(?:\w+:)?language(?:\s[^<>]*)?>\s*(?:<!\[CDATA\[)?\s*([a-z]{2,8}(?:[-_][a-z0-9]{2,8})*)\b"
    rb"|<(?:rss|channel|rdf:RDF)\s[^<>]*\bxml:lang=[\"']([a-z-]{2,20})[\"']",
    re.IGNORECASE,
)
# Nobody says more than this about a feed before its items.
_HEAD_BYTES = 65_536
_WEB = ("http://", "https://")
# A longer feed is the dump of an archive; feeds list their newest entries first.
_MAX_ENTRIES = 1_000


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One item; `link` is absolute or '', `published_at` is UTC or None when the feed has none."""

    link: str
    title: str
    published_at: datetime | None
    id: str
    summary: str
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed as its publisher states it; `language` is what it declares, or ''."""

    title: str
    language: str
    entries: tuple[FeedEntry, ...]


def parse_feed(body: bytes, content_type: str = "", url: str = "") -> Feed:
    """Return the feed; raise InputError when the bytes are not one."""
    quick = _parse_fast(body)
    if quick is not None and _is_whole(quick, body):
        return _feed(quick, body, url=url)
    slow = _parse_slow(body, content_type, url=url)
    if slow.get("entries") or (quick is None and slow.get("version")):
        return _feed(slow, body, url=url)
    if quick is None:
        raise InputError(f"{url!r} is not a feed", thing=url)
    return _feed(quick, body, url=url)


def parse_fetched(fetched: tuple[bytes, str, str]) -> Feed:
    """Parse a feed from (body, Content-Type header, URL); keep its first 1,000 entries.

    This is what the processes of the parse pool run.
    """
    feed = parse_feed(*fetched)
    return replace(feed, entries=feed.entries[:_MAX_ENTRIES])


def _parse_fast(body: bytes) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = fastfeedparser.parse(body, **_ONLY_WHAT_WE_READ)
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
    return found


def _is_whole(parsed: Mapping[str, Any], body: bytes) -> bool:
    """Tell whether a second parser could hardly find more: links, or no items to be found."""
    if any("\ufffd" in (entry.get("title") or "") for entry in parsed["entries"]):
        return False  # a wrong guess at the encoding
    if parsed["entries"]:
        return any(_link(entry) for entry in parsed["entries"]) or b"<link" not in body
    return _ITEM.search(body) is None


def _parse_slow(body: bytes, content_type: str, *, url: str) -> Mapping[str, Any]:
    headers = {"content-type": content_type} if content_type else {}
    if url:
        headers["content-location"] = url
    parsed: Mapping[str, Any] = feedparser.parse(
        body, response_headers=headers, sanitize_html=False, resolve_relative_uris=bool(url)
    )
    return parsed


def _feed(parsed: Mapping[str, Any], body: bytes, *, url: str) -> Feed:
    about = parsed.get("feed") or {}
    declared = about.get("language") or parsed.get("language")
    # `GMT+9` is read as GMT, hours off; better no date than a wrong one.
    dated = _ODD_ZONE.search(body) is None
    return Feed(
        title=plain(about.get("title")),
        language=str(declared or _written_language(body)),
        entries=tuple(_entry(entry, url=url, dated=dated) for entry in parsed["entries"]),
    )


def _written_language(body: bytes) -> str:
    """Return the language of an RSS or RDF channel, which fastfeedparser passes over.

    What stands inside items is theirs. An element says it better than an attribute of the root.
    """
    found = [match for part in _around_items(body) for match in _LANGUAGE.finditer(part)]
    said = [match[1] for match in found if match[1]] or [match[2] for match in found]
    return said[0].decode("ascii").replace("_", "-") if said else ""


def _around_items(body: bytes) -> tuple[bytes, bytes]:
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        body = body.decode("utf-16", errors="ignore").encode()
    first = _ITEM.search(body)
    if first is None:
        return body[:_HEAD_BYTES], b""
    last = _LAST_ITEM.match(body, first.start())
    return body[: first.start()][:_HEAD_BYTES], body[last.end() :][:_HEAD_BYTES] if last else b""


def _entry(entry: Mapping[str, Any], *, url: str, dated: bool) -> FeedEntry:
    # feedparser's own mapping has slow look-ups; fastfeedparser's is a dict already.
    entry = dict(entry)
    return FeedEntry(
        link=_absolute(_link(entry), url=url),
        title=plain(entry.get("title")),
        published_at=_moment(entry, "published", "updated", "created") if dated else None,
        id=str(entry.get("id") or ""),
        summary=plain(entry.get("summary") or entry.get("description")),
        updated_at=_moment(entry, "updated") if dated else None,
    )


def _link(entry: Mapping[str, Any]) -> str:
    """Return the best link: the original behind a proxy, the alternate, else an id that is one."""
    if "feedburner_origlink" not in entry and (plain_link := entry.get("link") or "").startswith(
        _WEB
    ):
        return str(plain_link).strip()
    identity = entry.get("id")
    candidates = (
        entry.get("feedburner_origlink"),
        entry.get("link"),
        *_alternates(entry),
        # An id is a link only where it is a whole URL.
        identity if isinstance(identity, str) and identity.strip().startswith(_WEB) else None,
    )
    return next((c.strip() for c in candidates if isinstance(c, str) and _is_web(c)), "")


def _alternates(entry: Mapping[str, Any]) -> Iterable[str | None]:
    for link in entry.get("links") or ():
        if isinstance(link, Mapping) and link.get("rel", "alternate") == "alternate":
            yield link.get("href")


def _is_web(link: str) -> bool:
    text = link.strip()
    return bool(text) and (text.startswith(_WEB) or ":" not in text.partition("/")[0])


def _absolute(link: str, *, url: str) -> str:
    return join_link(url, link) if link else ""


def _moment(entry: Mapping[str, Any], *keys: str) -> datetime | None:
    for key in keys:
        parsed = entry.get(f"{key}_parsed")
        if isinstance(parsed, time.struct_time):
            return datetime.fromtimestamp(calendar.timegm(parsed), UTC)
        if isinstance(entry.get(key), str) and (moment := parse_date(entry[key])):
            return moment
    return None


def plain(markup: Any) -> str:
    """Return the text of a title or summary, without tags and entities, on one line."""
    if not isinstance(markup, str):
        return ""
    # Titles are often escaped twice: once for XML, once for the HTML inside.
    text = unescape(markup[:_MAX_MARKUP])
    if "<" in text:
        text = unescape(_TAG.sub(" ", text))
    return tidy(text)
