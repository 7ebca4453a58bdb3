"""Parse the bytes of a sitemap into its URLs or children: XML, text, RSS or Atom, gzipped or not.

Parsing never raises: an unreadable sitemap has the kind `invalid` and a list of problems. A file
with a DOCTYPE is refused. An entry counts only if its end tag was seen, so a truncated file loses
its last entry.
"""

import codecs
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, cast
from urllib.parse import urlsplit

from lxml import etree

from news_platform.html.links import join_link

# The limits of the sitemap protocol.
MAX_URLS = 50_000
MAX_INFLATED_BYTES = 50 * 1024 * 1024
# Small enough that the nodes of one piece take little memory, large enough to need few calls.
PIECE_BYTES = 65_536
# Some servers gzip a .gz file a second time.
_MAX_GZIP_LAYERS = 2
_GZIP_MAGIC = b"\x1f\x8b"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_TEXT_CODECS = ("iso8859", "cp", "koi8", "gb", "euc", "shift")
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
# Characters that XML 1.0 forbids.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]+")
# An ampersand that starts neither one of XML's five entities nor a number: an unescaped URL.
_RAW_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_LONGEST_ENTITY = 10  # `&#1114111;`


class TooLarge(Exception):
    """The sitemap inflates to more than the protocol allows."""


class BadGzip(Exception):
    """The gzip stream of the sitemap is damaged."""


def inflated(body: bytes) -> Iterator[bytes]:
    """Yield the decompressed sitemap in small pieces.

    Raise TooLarge past the limit and BadGzip if the gzip stream is damaged or truncated.
    """
    starts = range(0, len(body), PIECE_BYTES)
    pieces: Iterable[bytes] = (body[start : start + PIECE_BYTES] for start in starts)
    for _ in range(_MAX_GZIP_LAYERS):
        pieces = _unwrapped(pieces)
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > MAX_INFLATED_BYTES:
            raise TooLarge(f"more than {MAX_INFLATED_BYTES} bytes")
        yield piece


def clean_text(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield text that an XML parser accepts: bad bytes replaced, raw ampersands escaped."""
    decoder = None
    carried = ""
    for piece in pieces:
        if decoder is None:
            encoding, piece = _encoding(piece)
            decoder = codecs.getincrementaldecoder(encoding)("replace")
        text = carried + decoder.decode(piece)
        text, carried = _cut_before_entity(text)
        yield _escape_for_xml(text)
    yield _escape_for_xml(carried)


def _unwrapped(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """Remove one layer of gzip if there is one."""
    rest = iter(pieces)
    first = next(rest, b"")
    whole = chain([first], rest)
    return filter(None, _gunzipped(whole)) if first.startswith(_GZIP_MAGIC) else whole


def _gunzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    member = zlib.decompressobj(wbits=31)
    for piece in pieces:
        left = piece
        while left:
            if member.eof and left[0] != _GZIP_MAGIC[0]:
                return  # padding after the last gzip member
            member = zlib.decompressobj(wbits=31) if member.eof else member
            # The output limit keeps a decompression bomb from filling the memory in one call.
            try:
                yield member.decompress(left, PIECE_BYTES)
            except zlib.error as error:
                raise BadGzip(str(error)) from error
            left = member.unused_data or member.unconsumed_tail
    if not member.eof:
        raise BadGzip("the gzip stream is truncated")


def _encoding(first: bytes) -> tuple[str, bytes]:
    """Return the encoding of a sitemap from its first piece, and the piece without its BOM."""
    for mark, name in _BOMS:
        if first.startswith(mark):
            return name, first.removeprefix(mark)
    declared = _DECLARED.match(first)
    try:
        name = codecs.lookup(declared.group(1).decode("ascii") if declared else "utf-8").name
    except LookupError:
        return "utf-8", first
    # A declaration that is readable as ASCII rules out UTF-16, whatever it claims. Python also has
    # codecs that are not text encodings (such as `zip`): accept the known text encodings only.
    return (name if name.startswith(_TEXT_CODECS) else "utf-8"), first


def _cut_before_entity(text: str) -> tuple[str, str]:
    """Split off an entity that the end of the piece may have cut in half."""
    start = text.rfind("&", max(0, len(text) - _LONGEST_ENTITY))
    return (text, "") if start < 0 or ";" in text[start:] else (text[:start], text[start:])


def _escape_for_xml(text: str) -> str:
    return _RAW_AMPERSAND.sub("&amp;", _NOT_XML.sub("", text))


Kind = Literal["urlset", "index", "txt", "rss", "atom", "invalid"]

MAX_NEWS_SITEMAPS = 2
"""News sitemaps that are noted per domain."""

# `news-sitemap.xml`, `sitemap_news.xml.gz`, `/sitemaps/news/1.xml`; not newsletters, not newsrooms.
_NEWS_NAME = re.compile(r"(?:^|[^a-z])(?:google)?news(?![a-z])", re.IGNORECASE)
_NEWS_ELEMENT = re.compile(rb"<(?:[A-Za-z]+:)?publication_date\b")
# Far more than the longest real entry (a page with 1,000 images): beyond it the file is padding.
# Together with dropping finished entries, this bounds the memory.
_MAX_ENTRY_CHARACTERS = 1024 * 1024
_ROOTS: dict[str, Kind] = {
    "urlset": "urlset",
    "sitemapindex": "index",
    "rss": "rss",
    "rdf": "rss",  # RSS 1.0
    "feed": "atom",
}
_ENTRIES: dict[Kind, str] = {"urlset": "url", "index": "sitemap", "rss": "item", "atom": "entry"}
_TAGS = [
    f"{{*}}{name}" for name in ("urlset", "sitemapindex", "rss", "RDF", "feed", *_ENTRIES.values())
]
_ROOT_TAG = re.compile(r"<[^!?]")
_DOCTYPE = re.compile(rb"<!DOCTYPE", re.IGNORECASE)
_WEB = re.compile(r"https?://[^\s/]", re.IGNORECASE)
# A link that needs no stripping, unescaping or joining, as nearly all are.
_PLAIN_LINK = re.compile(r"https?://[^\s/&][^\s&]*")
# Shared by all short sitemaps: creating a parser costs more than parsing one. lxml locks it.
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True)


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The content of a sitemap: page URLs, or the sitemaps of an index, in document order.

    `problems` are names for counting: empty, not_xml, doctype, bad_gzip, too_large, too_many_urls,
    truncated, bad_url, relative_url.
    """

    kind: Kind
    urls: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class _SitemapBuilder:
    """The part of a sitemap that has been parsed so far."""

    base: str
    kind: Kind = "invalid"
    found: list[str] = field(default_factory=list)
    problems: dict[str, None] = field(default_factory=dict)
    complete: bool = False
    on_entry: Callable[[etree._Element], None] | None = None

    def add(self, link: str | None) -> None:
        """Add a link, absolute or relative to the sitemap."""
        # Doubly escaped links still contain `&amp;` here, as do escaped links inside CDATA.
        text = (link or "").strip().replace("&amp;", "&")
        if not text.startswith(("https://", "http://")) or not _WEB.match(text):
            text = self._joined(text)
        if text:
            self.found.append(text)

    def add_all(self, links: Iterable[str | None]) -> None:
        """Add links in their order, plain ones without further checks."""
        is_plain, take = _PLAIN_LINK.fullmatch, self.found.append
        for link in links:
            if link and is_plain(link):
                take(link)
            else:
                self.add(link)

    def _joined(self, text: str) -> str:
        joined = join_link(self.base, text) if text else ""
        usable = bool(_WEB.match(joined))
        self.problems["relative_url" if usable else "bad_url"] = None
        return joined if usable else ""

    def result(self) -> Sitemap:
        """Return the finished sitemap with at most as many URLs as the protocol allows."""
        if len(self.found) > MAX_URLS:
            self.problems["too_many_urls"] = None
        links, problems = tuple(self.found[:MAX_URLS]), tuple(self.problems)
        if self.kind == "index":
            return Sitemap("index", children=links, problems=problems)
        return Sitemap(self.kind, urls=links, problems=problems)


def parse_sitemap(
    body: bytes, url: str, *, on_entry: Callable[[etree._Element], None] | None = None
) -> Sitemap:
    """Parse a sitemap fetched from `url`; `problems` lists what is wrong with it.

    `on_entry` is called for each entry of XML, before its memory is freed.
    """
    reading = _SitemapBuilder(url, on_entry=on_entry)
    try:
        if on_entry is None and _read_plain(reading, body):
            return reading.result()
        text = _skip_leading_blanks(clean_text(inflated(body)))
        first = next(text, "")
        if not first:
            return Sitemap("invalid", problems=("empty",))
        if first.startswith("<"):
            _read_xml(reading, first, text)
        else:
            _read_lines(reading, chain([first], text))
    except TooLarge:
        return Sitemap("invalid", problems=("too_large",))
    except BadGzip:
        reading.problems["bad_gzip"] = None
    except _Doctype:
        return Sitemap("invalid", problems=("doctype",))
    except (etree.XMLSyntaxError, ValueError):
        # ValueError: lxml cannot look up a name in a namespace that contains braces.
        reading.problems["not_xml"] = None
    return reading.result()


def news_sitemap_urls(named: Iterable[str], *, body: bytes | None, url: str | None) -> list[str]:
    """Return the sitemaps that are for news: by name, or the stored one by its content."""
    found = [one for one in dict.fromkeys(named) if _has_news_name(one)]
    if url and url not in found and body is not None and _NEWS_ELEMENT.search(body):
        found.insert(0, url)
    return found[:MAX_NEWS_SITEMAPS]


def _has_news_name(url: str) -> bool:
    try:
        return "news" in url and _NEWS_NAME.search(urlsplit(url).path) is not None
    except ValueError:  # not a URL, such as one with an open bracket
        return False


def _read_plain(reading: _SitemapBuilder, body: bytes) -> bool:
    """Parse a short, well-formed sitemap in one call, as most are; return whether it was one."""
    # Longer, padded, gzipped and non-XML sitemaps need the tolerant path, which reads in pieces.
    if len(body) > PIECE_BYTES or not body.startswith(b"<") or _DOCTYPE.search(body):
        return False
    try:
        root = etree.fromstring(body, _PARSER)
    except etree.XMLSyntaxError:
        return False
    kind = _kind(root.getroottree())
    if kind not in ("urlset", "index"):
        return False
    namespace = root.tag[: root.tag.rfind("}") + 1]
    locs = [loc.text for loc in root.iter(f"{namespace}loc")]
    if len(locs) != len(root):
        return False  # an entry has no <loc>, two of them, or one of another namespace
    reading.kind = kind
    reading.add_all(locs)
    return True


class _Doctype(Exception):
    """The sitemap declares a document type, which only attacks on XML parsers need."""


@dataclass(slots=True)
class _PaddingGuard:
    """Count the characters since the last entry, and raise TooLarge past the limit."""

    characters: int = 0

    def count(self, piece: str, *, found: bool) -> None:
        # A piece that is empty after cleaning consisted of padding only.
        self.characters = 0 if found else self.characters + (len(piece) or PIECE_BYTES)
        if self.characters > _MAX_ENTRY_CHARACTERS:
            raise TooLarge("too long without a finished entry")


def _skip_leading_blanks(pieces: Iterator[str]) -> Iterator[str]:
    """Drop leading blanks: an XML declaration must start at the first character."""
    for piece in pieces:
        start = piece.lstrip("\ufeff \t\r\n")
        if start:
            yield start
            break
    yield from pieces


def _read_lines(reading: _SitemapBuilder, pieces: Iterator[str]) -> None:
    patience, carried = _PaddingGuard(), ""
    for piece in pieces:
        *lines, carried = (carried + piece).split("\n")
        patience.count(piece, found=_take_lines(reading, lines))
        if len(reading.found) > MAX_URLS:
            break
    _take_lines(reading, [carried])
    if reading.found:
        reading.kind = "txt"
    else:
        reading.problems["not_xml"] = None


def _take_lines(reading: _SitemapBuilder, lines: Iterable[str]) -> bool:
    links = [line for line in map(str.strip, lines) if _WEB.match(line)]
    reading.add_all(links)
    return bool(links)


def _read_xml(reading: _SitemapBuilder, first: str, rest: Iterator[str]) -> None:
    root = _ROOT_TAG.search(first)
    if "<!DOCTYPE" in first[: root.start() if root else None].upper():
        raise _Doctype
    parser = etree.XMLPullParser(
        events=("end",),
        tag=_TAGS,
        encoding="utf-8",
        recover=True,  # real sitemaps have small syntax errors
        resolve_entities=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    patience = _PaddingGuard()
    for piece in chain([first], rest):
        parser.feed(piece.encode("utf-8"))
        patience.count(piece, found=_take_entries(reading, parser))
        if len(reading.found) > MAX_URLS:
            return
    if not reading.complete:
        reading.problems["not_xml" if reading.kind == "invalid" else "truncated"] = None


def _take_entries(reading: _SitemapBuilder, parser: etree.XMLPullParser) -> bool:
    """Add the entries finished so far and free their memory; return whether there were any."""
    entry: etree._Element | None = None
    for _, item in parser.read_events():
        element = cast(etree._Element, item)
        if reading.kind == "invalid":
            reading.kind = _kind(element.getroottree())
        # No tag ends with NUL, so an unknown kind has no entries.
        if element.tag.endswith(_ENTRIES.get(reading.kind, "\0")):
            entry = element
            reading.add(_link(reading.kind, entry))
            if reading.on_entry is not None:
                reading.on_entry(entry)
        elif element.getparent() is None:
            reading.complete = True
    # Deleting the finished siblings keeps memory constant; the parser still needs the last one.
    if entry is not None and (parent := entry.getparent()) is not None:
        del parent[: parent.index(entry)]
    return entry is not None


def _kind(tree: etree._ElementTree) -> Kind:
    if tree.docinfo.doctype:  # type: ignore[attr-defined]  # the stubs leave it out
        raise _Doctype
    # lxml keeps an undeclared prefix as part of the name.
    name = tree.getroot().tag.rpartition("}")[2].rpartition(":")[2]
    return _ROOTS.get(name.lower(), "invalid")


def _link(kind: Kind, entry: etree._Element) -> str | None:
    """Return the URL of an entry; children of other namespaces (image:loc) do not count."""
    namespace = entry.tag.removesuffix(_ENTRIES[kind])
    # Atom entries may also have links with rel="self", "enclosure" or "related".
    if kind == "atom":
        links = entry.iterchildren(f"{namespace}link")
        pages = (link.get("href") for link in links if link.get("rel", "alternate") == "alternate")
        return next(pages, None)
    for child in entry.iterchildren(f"{namespace}{'link' if kind == 'rss' else 'loc'}"):
        return child.text
    for child in entry.iterchildren(f"{namespace}guid"):
        return child.text if child.get("isPermaLink") != "false" else None
    return entry.text  # some sitemaps have the URL without a <loc> around it
