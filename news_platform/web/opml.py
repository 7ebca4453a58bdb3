"""OPML files in, the addresses of feeds and sites out; and the other way round."""

from collections.abc import Iterable
from html import escape

from lxml import etree

from news_platform.errors import InputError


def opml_feeds(body: bytes) -> tuple[str, ...]:
    """Return the feed URLs of an OPML file in order, each once; raise InputError if it is none."""
    root = _parse(body)
    if _name(root) == "opml":
        urls = [_attribute(outline.attrib, "xmlurl") for outline in root.iter("outline")]
    else:
        urls = [
            (ident.text or "").removeprefix("feed/")
            for ident in root.iterfind(".//string[@name='id']")
        ]
    return tuple(dict.fromkeys(url for url in map(_web_address, urls) if url))


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
    name = "" if root is None else _name(root)
    if name not in ("opml", "object"):  # `object` is the export format of Google Reader
        raise InputError(f"not an OPML file: expected the root element <opml>, found {name!r}")
    return root


def _name(root: etree._Element) -> str:
    return str(etree.QName(root).localname).lower()


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
