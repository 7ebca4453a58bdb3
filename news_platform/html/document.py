"""The bytes or text of a web page in, an lxml tree out."""

import re

from lxml import etree, html

from news_platform.html.decode import html_text

# lxml rejects a str that declares its own encoding, and after decoding the declaration is wrong.
_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")


def parse_document(page: str | bytes, charset: str | None = None) -> html.HtmlElement | None:
    """Return the root element, or None for a page without any markup.

    `charset` is the charset of the HTTP header; it is used for bytes only.
    """
    text = _XML_DECLARATION.sub("", html_text(page, charset))
    if not text.strip():
        return None
    try:
        return html.document_fromstring(text)
    except etree.ParserError:
        return None
