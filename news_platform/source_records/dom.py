"""Bytes or text in, an lxml tree out; too large, too deep or too many attributes is an error."""

import re

from lxml import etree
from resiliparse.parse.encoding import detect_encoding

from news_platform.errors import InputError

MAX_PAGE_BYTES = 16_000_000
# libxml2 looks every attribute up among all before it: 100,000 on one tag cost 17 s.
MAX_ATTRIBUTES = 2_000
# What libxml2 allows with huge_tree; everything below is lost, so such a page counts as failed.
MAX_DEPTH = 2_048

# Six times the largest of 364 real pages; more takes longer than a page is worth.
MAX_ELEMENTS = 60_000

_IS_SMALL = etree.XPath("count(//*) <= $most")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# A shorter tag holds too few attributes to cost a second.
_LONG_TAG_BYTES = 40_000
_LONG_TAG = re.compile(rb"<[a-zA-Z][^>]{%d,}" % (_LONG_TAG_BYTES - 1))
_QUOTED = re.compile(rb"\"[^\"]*\"|'[^']*'")
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def decode(body: bytes, *, declared: str | None = None) -> tuple[str, str]:
    """Return the text and the charset that was used.

    A declaration is believed while the bytes agree with it; then UTF-8 is tried, then detection.
    """
    for mark, charset in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, errors="replace"), charset
    meta = _META_CHARSET.search(body, 0, 4096)
    stated = meta.group(1).decode("ascii") if meta else None
    for charset in filter(None, (declared, stated, "utf-8")):
        text = _decoded(body, charset)
        if text is not None:
            return text, charset.lower()
    guessed = detect_encoding(body[:100_000])
    return body.decode(guessed, errors="replace"), guessed


def _decoded(body: bytes, charset: str) -> str | None:
    try:
        return body.decode(charset)
    except (UnicodeDecodeError, LookupError):
        return None


def parse_html(html: str | bytes) -> etree._Element:
    """Return the root element; raises InputError for a page no tree can be built from.

    Bytes are UTF-8.
    """
    body = html.encode("utf-8", errors="replace") if isinstance(html, str) else html
    body = body.replace(b"\0", b" ")
    _check_bounds(body)
    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, no_network=True
    )
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        raise InputError(f"cannot parse the page: {error}") from error
    if root is None:
        raise InputError("cannot parse the page: no element in it")
    # Counting "<" is cheap, counting elements is not: ask only where there may be too many.
    if body.count(b"<") > MAX_ELEMENTS and not _IS_SMALL(root, most=MAX_ELEMENTS):
        raise InputError(f"the page has more than {MAX_ELEMENTS} elements")
    if any("Excessive depth" in entry.message for entry in parser.error_log):
        raise InputError(f"nested deeper than {MAX_DEPTH} elements")
    return root


def _check_bounds(body: bytes) -> None:
    if not body or body.isspace():
        raise InputError("the page is empty")
    if len(body) > MAX_PAGE_BYTES:
        raise InputError(f"the page has {len(body)} bytes, at most {MAX_PAGE_BYTES} are read")
    for tag in _LONG_TAG.findall(body) if _may_have_long_tag(body) else ():
        if len(_QUOTED.sub(b"", tag).split()) > MAX_ATTRIBUTES:
            raise InputError(f"a tag has more than {MAX_ATTRIBUTES} attributes")


def _may_have_long_tag(body: bytes) -> bool:
    """Tell by probing whether anywhere so many bytes could lie between two ">"."""
    half = _LONG_TAG_BYTES // 2
    return any(body.find(b">", at, at + half) < 0 for at in range(0, len(body) - half, half))
