"""Parse the bytes of an RSS, Atom, RDF or JSON feed into its title, language and entries.

fastfeedparser reads nearly all feeds. feedparser takes 25 times the CPU time and is used only where
the first fails, finds no entries, or finds no links. Hostile feeds can stall both for a minute, so
production code parses in a worker process (`parse_fetched`).
"""

import calendar
import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import unescape
from typing import Any

from news_platform.errors import InputError
from news_platform.html.dates import parse_date
from news_platform.html.links import join_link
from news_platform.text.normalize import normalize_spaces, scrub_text, without_meter_lines
from news_platform.web.urls import canonical_url, url_hash

WEB = ("http://", "https://")
_TAG = re.compile(r"<[a-zA-Z/!][^>]*>")
# Some summaries hold the whole article; the beginning is enough to detect the language.
_MAX_MARKUP = 2_000
# Some feeds carry whole books; an article is shorter.
_MAX_TEXT = 200_000
_MAX_NAMES = 50
# A description of this length is the article itself: many feeds have no content:encoded.
_WHOLE_TEXT = 1_000
_HIDDEN = re.compile(r"<(script|style|noscript)\b.*?</\1\s*>|<!--.*?-->", re.I | re.S)
_BLOCK_END = re.compile(
    r"</(?:p|div|li|h[1-6]|blockquote|tr|figure|figcaption|section|article|ul|ol|table|pre)\s*>"
    r"|<(?:br|hr|p|div|li|h[1-6])\b[^>]*>",
    re.I,
)
_IMAGE = re.compile(r"<img\b[^>]*?\bsrc\s*=\s*[\"']?([^\"'\s>]+)", re.I)
# RSS's own author element is an address with a name: `ann@post.example (Ann Writer)`.
_ADDRESS = re.compile(r"^\S+@\S+\s*\(([^()]+)\)$")


@dataclass(frozen=True, slots=True)
class FeedContent:
    """What an entry carries; `text` is '' unless the feed has more than a summary.

    `is_metered` means that the text ends with a request to subscribe, which is left out.
    """

    text: str = ""
    authors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    image_url: str = ""
    is_metered: bool = False


def plain(markup: Any) -> str:
    """Return the text of a title or summary on one line, without tags and entities."""
    if not isinstance(markup, str):
        return ""
    # Titles are often escaped twice: once for XML, once for the HTML inside.
    text = unescape(markup[:_MAX_MARKUP])
    if "<" in text:
        text = unescape(_TAG.sub(" ", text))
    # JSON feeds can spell lone surrogates and NUL, which no XML parser lets through.
    return normalize_spaces(scrub_text(text))


def parse_content(entry: Mapping[str, Any], *, url: str) -> FeedContent:
    """Return what an entry of fastfeedparser or feedparser carries; `url` is that of the feed."""
    markup = _markup(entry)
    text, is_metered = without_meter_lines(text_of_markup(markup))
    return FeedContent(
        text=text,
        authors=tuple(dict.fromkeys(_authors(entry)))[:_MAX_NAMES],
        tags=tuple(dict.fromkeys(_tags(entry)))[:_MAX_NAMES],
        image_url=_image(entry, markup or _string(entry.get("description")), url=url),
        is_metered=is_metered,
    )


def text_of_markup(markup: str) -> str:
    """Return the text of an HTML fragment, one paragraph per line."""
    if "<" not in markup and "&lt;" in markup:
        markup = unescape(markup)
    markup = _HIDDEN.sub(" ", markup[:_MAX_TEXT])
    # Line ends of the source mean nothing; the elements of the page end a paragraph.
    lines = _BLOCK_END.sub("\x1e", markup.replace("\n", " ")) if "<" in markup else markup
    parts = re.split("[\x1e\n]", lines)
    texts = (normalize_spaces(scrub_text(unescape(_TAG.sub("", part)))) for part in parts)
    return "\n".join(text for text in texts if text)


def _markup(entry: Mapping[str, Any]) -> str:
    """Return the longest content of the entry, or its description if that is a whole text."""
    contents = [
        _string(part.get("value"))
        for part in entry.get("content") or ()
        if isinstance(part, Mapping)
    ]
    longest = max(contents, key=len, default="")
    about = _string(entry.get("summary")) or _string(entry.get("description"))
    if len(about) >= max(len(longest), _WHOLE_TEXT):
        return about
    return longest


def _authors(entry: Mapping[str, Any]) -> Iterator[str]:
    found = entry.get("authors") or ()
    named = [part.get("name") for part in found if isinstance(part, Mapping)]
    for name in named or [entry.get("author")]:
        text = plain(name)
        address = _ADDRESS.match(text)
        text = address[1] if address else text
        if text and "@" not in text:
            yield text


def _tags(entry: Mapping[str, Any]) -> Iterator[str]:
    for part in entry.get("tags") or ():
        if isinstance(part, Mapping) and (text := plain(part.get("label") or part.get("term"))):
            yield text


def _image(entry: Mapping[str, Any], markup: str, *, url: str) -> str:
    """Return the stated image, an enclosed one, a thumbnail, or the first one in the text."""
    image = entry.get("image")
    stated = image.get("href") if isinstance(image, Mapping) else image
    parts = [*mappings(entry.get("enclosures")), *mappings(entry.get("media_content"))]
    parts += [link for link in mappings(entry.get("links")) if link.get("rel") == "enclosure"]
    kinds = [(_string(part.get("type")) or _string(part.get("medium")), part) for part in parts]
    enclosed = [it.get("url") or it.get("href") for kind, it in kinds if kind.startswith("image")]
    thumbnails = [part.get("url") for part in mappings(entry.get("media_thumbnail"))]
    shown = _IMAGE.search(markup)
    candidates = (stated, *enclosed, *thumbnails, unescape(shown[1]) if shown else None)
    return next((link for link in (_media_link(it, url=url) for it in candidates) if link), "")


def mappings(parts: Any) -> list[Mapping[str, Any]]:
    """Return the parts of a list that are mappings."""
    return [part for part in parts or () if isinstance(part, Mapping)]


def _media_link(link: Any, *, url: str) -> str:
    text = scrub_text(_string(link)).strip()
    if not text or any(character.isspace() for character in text):
        return ""
    absolute = join_link(url, text) if url else text
    return absolute if absolute.startswith(WEB) else ""


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


_ITEM = re.compile(rb"<(?:\w+:)?(?:item|entry)\b", re.IGNORECASE)
_LAST_ITEM = re.compile(rb".*</(?:\w+:)?(?:item|entry)>", re.IGNORECASE | re.DOTALL)
# A date whose time is followed by `GMT+9` or the like. It would be read as GMT, hours off.
_ODD_ZONE = re.compile(rb":\d\d? ?(?:GMT|UTC)[+-]\d")
_ODD_DATE = re.compile(
    rb"(<(?:\w+:)?(?:pubDate|published|updated|modified|issued|created|date)\b[^<>]*>"
    rb"|\"date_(?:published|modified)\"\s*:\s*\")"
    rb"(?:\s*<!\[CDATA\[)?[^<>\"]{0,80}:\d\d? ?(?:GMT|UTC)[+-]\d[^<>\"]{0,20}(?:\]\]>\s*)?(?=<|\")",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(
    rb"<(?:\w+:)?language(?:\s[^<>]*)?>\s*(?:<!\[CDATA\[)?\s*([a-z]{2,8}(?:[-_][a-z0-9]{2,8})*)\b"
    rb"|<(?:rss|channel|rdf:RDF)\s[^<>]*\bxml:lang=[\"']([a-z-]{2,20})[\"']",
    re.IGNORECASE,
)
# The elements that describe a feed, before or after its items, fit into this.
_HEAD_BYTES = 65_536
_LINK = re.compile(rb"<(?:\w+:)?link\b([^<>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"\b(rel|href)\s*=\s*([\"'])(.*?)\2", re.IGNORECASE)
_BASE = re.compile(rb"<(?:\w+:)?feed\s[^<>]*\bxml:base\s*=\s*[\"']([^\"'<>]+)", re.IGNORECASE)
# Relations of links of an entry that lead to something else than its page.
_NOT_THE_PAGE = frozenset(("replies", "edit", "enclosure", "hub", "license", "next", "payment"))
# A longer feed is the dump of an archive; feeds list their newest entries first.
_MAX_ENTRIES = 10_000


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry of a feed; `link` is absolute or '', dates are aware UTC or None.

    `link_canon` and `link_hash` are its canonical form and the hash of that, for entries that
    `with_link_key` has completed and whose link is a web page.
    """

    link: str
    title: str
    published_at: datetime | None
    id: str
    summary: str
    updated_at: datetime | None = None
    content: FeedContent = field(default_factory=FeedContent)
    link_canon: str = ""
    link_hash: str = ""

    @property
    def newest_date(self) -> datetime | None:
        """Return the later one of the two dates."""
        dates = [date for date in (self.published_at, self.updated_at) if date is not None]
        return max(dates, default=None)

    @property
    def item_hash(self) -> str:
        """Return a hash of title and text; another one means that the publisher changed them."""
        said = "\n".join((self.title, self.content.text or self.summary))
        return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class Feed:
    """A parsed feed; `language` is the one it declares, or ''.

    `left_out` counts entries beyond the most that are read of one feed. `same_page` are the links
    of entries that differ from another one's only after the `#`. `older_url` is the page with the
    entries before these (RFC 5005), `hub_url` the hub that tells of new ones (WebSub).
    """

    title: str
    language: str
    entries: tuple[FeedEntry, ...]
    left_out: int = 0
    same_page: tuple[str, ...] = ()
    older_url: str = ""
    hub_url: str = ""


def parse_feed(body: bytes, content_type: str = "", url: str = "") -> Feed:
    """Parse a feed; raise InputError if the bytes are not a feed."""
    if _ODD_ZONE.search(body):
        body = _ODD_DATE.sub(rb"\1", body)  # no date is better than a wrong one
    quick = _parse_fast(body)
    if quick is not None and _is_complete(quick, body):
        return _feed(quick, body, url=url)
    slow = _parse_slow(body, content_type, url=url)
    if slow.get("entries") or (quick is None and slow.get("version")):
        return _feed(slow, body, url=url)
    if quick is None:
        raise InputError(f"{url!r} is not a feed", thing=url)
    return _feed(quick, body, url=url)


def parse_fetched(fetched: tuple[bytes, str, str]) -> Feed:
    """Parse a feed from (body, Content-Type header, URL); keep its first 10,000 entries.

    This is what the processes of the parse pool run. They also compute the keys of the links, which
    takes longer than reading them back: the poller itself is the one that is short of time.
    """
    feed = parse_feed(*fetched)
    kept = tuple(map(with_link_key, feed.entries[:_MAX_ENTRIES]))
    left_out = len(feed.entries) - len(kept)
    return replace(feed, entries=kept, left_out=left_out, same_page=tuple(_same_page(kept)))


def _same_page(entries: Iterable[FeedEntry]) -> Iterator[str]:
    """Yield the links that lead to another part of a page that an entry before links to."""
    seen: dict[str, str] = {}
    for entry in entries:
        first = seen.setdefault(entry.link_hash, entry.link)
        pages = {link.partition("#")[0] for link in (first, entry.link)}
        if entry.link_hash and entry.link != first and len(pages) == 1:
            yield entry.link


def with_link_key(entry: FeedEntry) -> FeedEntry:
    """Return the entry with the canonical form of its link and its hash, if it is a web page."""
    if entry.link_hash or not entry.link:
        return entry
    canonical = canonical_url(entry.link)
    if not canonical.startswith(WEB):
        return entry
    return replace(entry, link_canon=canonical, link_hash=url_hash(canonical))


def _parse_fast(body: bytes) -> Mapping[str, Any] | None:
    import fastfeedparser  # here, so that only a process that parses feeds loads it

    try:
        found: Mapping[str, Any] = fastfeedparser.parse(body)
    except (ValueError, TypeError, LookupError, AttributeError):
        # All of these occur with malformed feeds, which feedparser often still reads.
        return None
    return found


def _is_complete(parsed: Mapping[str, Any], body: bytes) -> bool:
    """Return whether the fast result is complete, so that feedparser need not be tried."""
    if any("\ufffd" in (entry.get("title") or "") for entry in parsed["entries"]):
        return False  # the encoding was guessed wrong
    links = [_link(entry) for entry in parsed["entries"]]
    if b"xml:base" in body and not all(link.startswith(WEB) for link in links):
        return False  # which address a relative link is relative to, only feedparser says
    if links:
        return any(links) or b"<link" not in body
    return _ITEM.search(body) is None


def _parse_slow(body: bytes, content_type: str, *, url: str) -> Mapping[str, Any]:
    headers = {"content-type": content_type} if content_type else {}
    if url:
        headers["content-location"] = url
    import feedparser  # here, so that only a process that needs it loads it

    # Sanitizing is wasted, because `plain` removes all markup.
    parsed: Mapping[str, Any] = feedparser.parse(
        body, response_headers=headers, sanitize_html=False, resolve_relative_uris=bool(url)
    )
    for entry in parsed["entries"]:
        # An id that is not a URL was joined to that of the feed, as if it were a relative link.
        if entry.get("guidislink") and entry["link"].partition("?")[0].encode() not in body:
            entry["link"] = ""
    return parsed


def _feed(parsed: Mapping[str, Any], body: bytes, *, url: str) -> Feed:
    about = parsed.get("feed") or {}
    declared = about.get("language") or parsed.get("language")
    links = _feed_links(body)
    older = links.get("prev-archive") or links.get("next", "")
    base = _BASE.search(_around_items(body)[0])
    base_url = _absolute(base[1].decode("utf-8", "replace"), url=url) if base else url
    return Feed(
        title=plain(about.get("title")),
        language=scrub_text(str(declared or _declared_language(body))),
        entries=tuple(_entry(entry, url=url) for entry in parsed["entries"]),
        older_url=_absolute(older, url=base_url),
        hub_url=_absolute(links.get("hub", ""), url=base_url),
    )


def _feed_links(body: bytes) -> dict[str, str]:
    """Return the links of the feed itself by their relation; fastfeedparser leaves some out."""
    if body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        return _json_links(body)
    links: dict[str, str] = {}
    for attributes in (found[1] for part in _around_items(body) for found in _LINK.finditer(part)):
        stated = {name.lower(): value for name, _, value in _ATTRIBUTE.findall(attributes)}
        if b"rel" in stated and b"href" in stated:
            rel, href = stated[b"rel"], stated[b"href"]
            links.setdefault(
                rel.decode("latin-1").lower(), unescape(href.decode("utf-8", "replace"))
            )
    return links


def _json_links(body: bytes) -> dict[str, str]:
    try:
        stated = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    hubs = [hub.get("url") for hub in mappings(stated.get("hubs"))]
    links = {"next": stated.get("next_url"), "hub": next(iter(hubs), None)}
    return {rel: url for rel, url in links.items() if isinstance(url, str)}


def _declared_language(body: bytes) -> str:
    """Return the declared language of an RSS or RDF channel, which fastfeedparser ignores.

    Items may declare their own language and are excluded. A `<language>` element is preferred to
    an `xml:lang` attribute.
    """
    found = [match for part in _around_items(body) for match in _LANGUAGE.finditer(part)]
    codes = [match[1] for match in found if match[1]] or [match[2] for match in found]
    return codes[0].decode("ascii").replace("_", "-") if codes else ""


def _around_items(body: bytes) -> tuple[bytes, bytes]:
    # The patterns match ASCII bytes, so UTF-16 (by its byte order mark) is converted.
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        body = body.decode("utf-16", errors="ignore").encode()
    first = _ITEM.search(body)
    if first is None:
        return body[:_HEAD_BYTES], b""
    last = _LAST_ITEM.match(body, first.start())
    return body[: first.start()][:_HEAD_BYTES], body[last.end() :][:_HEAD_BYTES] if last else b""


def _entry(entry: Mapping[str, Any], *, url: str) -> FeedEntry:
    # feedparser's own mapping class is slow to look up; fastfeedparser returns a dict.
    entry = dict(entry)
    return FeedEntry(
        link=_absolute(_link(entry), url=url),
        title=plain(entry.get("title")),
        published_at=_moment(entry, "published", "updated", "created"),
        id=scrub_text(str(entry.get("id") or "")),
        summary=plain(entry.get("summary") or entry.get("description")),
        updated_at=_moment(entry, "updated"),
        content=parse_content(entry, url=url),
    )


def _link(entry: Mapping[str, Any]) -> str:
    """Return the original link behind FeedBurner, else the page, the link, or an id URL."""
    links = mappings(entry.get("links"))
    identity, link = entry.get("id"), entry.get("link")
    is_plain = not links and "feedburner_origlink" not in entry
    if is_plain and isinstance(link, str) and link.startswith(WEB):
        return link.strip()
    # Both parsers may take the first link of an entry, whatever it is for.
    others = {one.get("href") for one in links if one.get("rel") in _NOT_THE_PAGE}
    # An id is a link only if it is a complete URL.
    is_link = isinstance(identity, str) and identity.strip().startswith(WEB) and link != ""
    candidates = (
        entry.get("feedburner_origlink"),
        *_alternates(links),
        link if link not in others else None,
        identity if is_link else None,
    )
    return next((c.strip() for c in candidates if isinstance(c, str) and _is_web(c)), "")


def _alternates(links: Iterable[Mapping[str, Any]]) -> list[str | None]:
    """Return the links to the page itself: as HTML first, then in other formats."""
    found = [link for link in links if (link.get("rel") or "alternate") == "alternate"]
    ordered = sorted(found, key=lambda link: "html" not in (link.get("type") or "html"))
    return [link.get("href") for link in ordered]


def _is_web(link: str) -> bool:
    text = link.strip()
    return bool(text) and (text.startswith(WEB) or ":" not in text.partition("/")[0])


def _absolute(link: str, *, url: str) -> str:
    return join_link(url, scrub_text(link)) if link else ""


def _moment(entry: Mapping[str, Any], *keys: str) -> datetime | None:
    for key in keys:
        parsed = entry.get(f"{key}_parsed")
        if isinstance(parsed, time.struct_time):
            return _utc(parsed)
        if isinstance(entry.get(key), str) and (moment := parse_date(entry[key])):
            return moment
    return None


def _utc(parsed: time.struct_time) -> datetime | None:
    try:
        return datetime.fromtimestamp(calendar.timegm(parsed), UTC)
    except (ValueError, OverflowError, OSError):  # feedparser accepts the years 0 and 12000
        return None
