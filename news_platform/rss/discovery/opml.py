"""OPML, the subscription lists of feed readers: addresses out of one, one out of addresses."""

from collections.abc import Iterable
from html import escape

from lxml import etree

from news_platform.errors import InputError


def opml_feeds(body: bytes) -> tuple[str, ...]:
    """Return the feed addresses of an OPML file in order, each once; else raise InputError."""
    # No entities and no network: the file comes from anywhere.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise InputError(f"not an OPML file: {error}") from error
    name = "" if root is None else etree.QName(root).localname.lower()
    if name == "opml":
        urls = [_feed_url(outline.attrib) for outline in root.iter("outline")]
    elif name == "object":  # what Google Reader exported
        urls = [
            (ident.text or "").removeprefix("feed/")
            for ident in root.iterfind(".//string[@name='id']")
        ]
    else:
        raise InputError("not an OPML file: its root element is not <opml>")
    return tuple(dict.fromkeys(url for url in map(_web_address, urls) if url))


def opml_document(feeds: Iterable[tuple[str, str]]) -> str:
    """Return an OPML document of (address, title) pairs, in the order given."""
    lines = (
        f'    <outline type="rss" text="{escape(title or url)}" xmlUrl="{escape(url)}"/>'
        for url, title in feeds
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0">\n  <head>'
    return "\n".join(
        (f"{head}<title>Feeds</title></head>\n  <body>", *lines, "  </body>\n</opml>\n")
    )


def _feed_url(attributes: "etree._Attrib") -> str:
    """Return the address under any spelling of xmlUrl, or ''."""
    for name, value in attributes.items():
        if str(name).lower() == "xmlurl":
            return str(value)
    return ""


def _web_address(text: str) -> str:
    url = text.strip().replace("feed://", "http://", 1)
    return url if url.startswith(("http://", "https://")) else ""
