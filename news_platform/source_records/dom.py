"""Bytes or text in, the events of a page out; too large, too deep or too much of it is an error."""

import re

from lxml import etree
from resiliparse.parse.encoding import detect_encoding

from news_platform.errors import InputError
from news_platform.source_records.events import Event, EventList

MAX_PAGE_BYTES = 16_000_000

_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
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


def parse_html(html: str | bytes) -> list[Event]:
    """Return what a page consists of; raises InputError for one that cannot be read.

    Bytes are UTF-8.
    """
    body = html.encode("utf-8", errors="replace") if isinstance(html, str) else html
    body = body.replace(b"\0", b" ")
    _check_bounds(body)
    told = EventList()
    parser = etree.HTMLParser(
        target=told,  # type: ignore[arg-type]  # the stubs ask for methods that lxml does not
        encoding="utf-8",
        huge_tree=True,
    )
    try:
        etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        raise InputError(f"cannot parse the page: {error}") from error
    return told.events


def _check_bounds(body: bytes) -> None:
    if not body or body.isspace():
        raise InputError("the page is empty")
    if len(body) > MAX_PAGE_BYTES:
        raise InputError(f"the page has {len(body)} bytes, at most {MAX_PAGE_BYTES} are read")
