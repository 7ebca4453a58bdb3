"""Bytes or text in, the events of a page out; too large, too deep or too much of it is an error."""

from lxml import etree

from news_platform.errors import InputError
from news_platform.source_records.events import Event, EventList

MAX_PAGE_BYTES = 16_000_000


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
