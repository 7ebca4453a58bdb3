"""The bytes or text of a web page in, an lxml tree out; nothing is fetched or judged."""

import codecs
import re

from lxml import etree, html
from resiliparse.parse.encoding import bytes_to_str, detect_encoding

# lxml refuses a str that declares its own encoding, and the declaration is wrong by then anyway.
_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
# Control characters that libxml2 would stop at.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_DECLARED = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
_HEAD_BYTES = 4096


def decode_page(page: str | bytes) -> str:
    """Return the page as text: UTF-8 where it fits, else as declared, else as detected."""
    if isinstance(page, str):
        return page
    try:
        return page.decode("utf-8-sig")
    except UnicodeDecodeError:
        encoding = _declared_encoding(page) or detect_encoding(page)
        return str(bytes_to_str(page, encoding, errors="replace"))


def parse_document(page: str | bytes) -> html.HtmlElement | None:
    """Return the root element, or None when there is no markup at all."""
    text = _CONTROL.sub("", _XML_DECLARATION.sub("", decode_page(page)))
    if not text.strip():
        return None
    try:
        return html.document_fromstring(text)
    except etree.ParserError:
        return None


def _declared_encoding(page: bytes) -> str | None:
    declared = _DECLARED.search(page[:_HEAD_BYTES])
    if declared is None:
        return None
    try:
        name = codecs.lookup(declared[1].decode("ascii")).name
    except (LookupError, UnicodeDecodeError):
        return None
    # The page is known not to be UTF-8, whatever it says.
    return None if name == "utf-8" else name
