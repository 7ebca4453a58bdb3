"""The bytes or text of a web page in, an lxml tree out; nothing is fetched or judged."""

import re

from lxml import etree, html

from news_platform.html.decode import html_text

# lxml refuses a str that declares its own encoding, and the declaration is wrong by then anyway.
_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
# Control characters that libxml2 would stop at.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def parse_document(page: str | bytes, charset: str | None = None) -> html.HtmlElement | None:
    """Return the root element, or None when there is no markup at all.

    `charset` is what the HTTP header declares; it matters for bytes only.
    """
    text = _CONTROL.sub("", _XML_DECLARATION.sub("", html_text(page, charset)))
    if not text.strip():
        return None
    try:
        return html.document_fromstring(text)
    except etree.ParserError:
        return None
