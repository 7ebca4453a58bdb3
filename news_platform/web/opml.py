"""Read and write OPML files, and report where a file stops being well-formed XML."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from lxml import etree

from news_platform.errors import InputError


class OpmlFeed(NamedTuple):
    """One feed of a file; `group` is the path of its folders, such as `Europe/Spain`, or ''."""

    url: str
    title: str = ""
    group: str = ""


def opml_feeds(body: bytes) -> tuple[str, ...]:
    """Return the feed URLs of an OPML file in order, each once; raise InputError if it is none."""
    return tuple(feed.url for feed in opml_entries(body))


def opml_entries(body: bytes) -> tuple[OpmlFeed, ...]:
    """Return the feeds of an OPML file in order, each once; raise InputError if it is none."""
    by_url: dict[str, OpmlFeed] = {}
    for feed in _outlines(_parse(body)):
        if url := _web_address(feed.url):
            by_url.setdefault(url, feed._replace(url=url))
    return tuple(by_url.values())


def _outlines(root: etree._Element) -> Iterator[OpmlFeed]:
    for outline in root.iter("outline"):
        if url := _attribute(outline.attrib, "xmlurl"):
            folders = [_label(above) for above in outline.iterancestors("outline")]
            group = "/".join(filter(None, reversed(folders)))
            yield OpmlFeed(url, _title(outline), group)


def _title(outline: etree._Element) -> str:
    return _attribute(outline.attrib, "title") or _attribute(outline.attrib, "text")


def _label(folder: etree._Element) -> str:
    """Return the name of a folder, which may be a path; a feed that holds feeds is not a folder."""
    if _attribute(folder.attrib, "xmlurl"):
        return ""
    name = _attribute(folder.attrib, "text") or _attribute(folder.attrib, "title")
    return "/".join(filter(None, (" ".join(part.split()) for part in name.split("/"))))


def opml_sites(body: bytes) -> tuple[str, ...]:
    """Return the site of every outline, or else its feed; raise InputError if it is no OPML."""
    outlines = (outline.attrib for outline in _parse(body).iter("outline"))
    urls = (_attribute(one, "htmlurl") or _attribute(one, "xmlurl") for one in outlines)
    return tuple(dict.fromkeys(url for url in map(_web_address, urls) if url))


def _parse(body: bytes) -> etree._Element:
    # Anyone may have written the file: resolve no entities and open no network connection, and
    # accept the errors that feed readers make in their exports.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise InputError(f"not an OPML file: cannot parse it as XML: {error}") from error
    name = "" if root is None else str(etree.QName(root).localname).lower()
    if name != "opml":
        raise InputError(f"not an OPML file: expected the root element <opml>, found {name!r}")
    return root


def opml_document(feeds: Iterable[OpmlFeed]) -> str:
    """Return an OPML document of feeds in the order given, those of a group inside its folders."""
    lines: list[str] = []
    opened: list[str] = []
    # Stable: without groups the order is that of the feeds.
    for feed in sorted(feeds, key=lambda feed: feed.group.split("/") if feed.group else []):
        folders = feed.group.split("/") if feed.group else []
        shared = 0
        while shared < min(len(opened), len(folders)) and opened[shared] == folders[shared]:
            shared += 1
        while len(opened) > shared:
            opened.pop()
            lines.append(f"{_indent(opened)}</outline>")
        for name in folders[shared:]:
            lines.append(f'{_indent(opened)}<outline text="{escape(name)}">')
            opened.append(name)
        about = f'text="{escape(feed.title or feed.url)}" xmlUrl="{escape(feed.url)}"'
        lines.append(f'{_indent(opened)}<outline type="rss" {about}/>')
    while opened:
        opened.pop()
        lines.append(f"{_indent(opened)}</outline>")
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0">\n  <head>'
    return "\n".join(
        (f"{head}<title>Feeds</title></head>\n  <body>", *lines, "  </body>\n</opml>\n")
    )


def _indent(opened: list[str]) -> str:
    return "    " + "  " * len(opened)


def _attribute(attributes: "etree._Attrib", wanted: str) -> str:
    """Return an attribute whose name is in any capitalisation, or ''."""
    for name, value in attributes.items():
        if str(name).lower() == wanted:
            return str(value)
    return ""


def _web_address(text: str) -> str:
    # feed:// is how some feed readers write http://.
    url = text.strip().replace("feed://", "http://", 1)
    return url if url.startswith(("http://", "https://")) else ""


@dataclass(frozen=True, slots=True)
class XmlDamage:
    """How many errors a parser found in a file, and the first of them."""

    errors: int
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        """Return one line for a person."""
        what = "an XML error" if self.errors == 1 else f"{self.errors} XML errors, the first"
        return f"{what} at line {self.line}, column {self.column}: {self.message}"


def xml_damage(body: bytes) -> XmlDamage | None:
    """Return what a tolerant parser had to repair or leave out, or None if nothing."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    # If not even a tolerant parser finds an element, its log says why.
    with contextlib.suppress(etree.XMLSyntaxError, ValueError):
        etree.fromstring(body, parser)
    found = list(parser.error_log)
    if not found:
        return None
    # The message quotes the file, which anyone may have written.
    message = " ".join(ascii(found[0].message)[1:-1].split())
    return XmlDamage(len(found), found[0].line, found[0].column, message)
