"""Decode and parse the bytes of a web page by the rules that browsers follow (WHATWG).

The first of these that is known decides: byte order mark, charset of the HTTP header, `<meta>`
element or XML declaration, detection. Labels mean what they mean to browsers: `iso-8859-1` and
`ascii` are windows-1252, `gb2312` is GB18030. Bad bytes become U+FFFD. NUL and other control
characters are removed (`scrub_text`), because neither XML nor PostgreSQL accepts them.

A declaration is ignored if the bytes contradict it:

- The body has more valid multi-byte UTF-8 characters than errors: it is UTF-8. Text in another
  encoding hardly ever forms such characters by chance.
- Decoding gives more errors than characters outside ASCII: the next declaration is tried, then
  detection, then windows-1252. A UTF-8 page that is cut within its last character and a single
  byte that a legacy encoding leaves undefined do not count.
- The header says UTF-16 and the page contains no zero byte.

Differences to browsers: bytes that windows-1252 leaves undefined become U+FFFD, not control
characters; the labels of `replacement` (`iso-2022-kr`, `hz-gb-2312`) count as unknown.
"""

import re
from functools import cache, lru_cache
from typing import NamedTuple

from lxml import etree, html
from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

from news_platform.text.normalize import is_safe_utf8, scrub_text

# lxml rejects a str that declares its own encoding, and after decoding the declaration is wrong.
_XML_DECLARATION = re.compile(rb"\s*<\?xml[^>]*\?>")

_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16le"),
    (b"\xfe\xff", "utf-16be"),
)
# UTF-16 without a byte order mark has a zero byte beside the first angle bracket.
_UTF_16_STARTS = {b"<\0": "utf-16le", b"\0<": "utf-16be"}
# Browsers scan 1,024 bytes, but real pages put comments and scripts before the element.
_SCANNED_BYTES = 4096
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_META = re.compile(rb"<meta[\s/]([^>]{1,500})", re.IGNORECASE)
_META_CHARSET = re.compile(
    rb"(?:^|[\s\"';,/])charset\s*=\s*[\"']?\s*([^\s\"'/>;,]+)", re.IGNORECASE
)
_XML_ENCODING = re.compile(rb"\s*<\?xml[^>]{1,200}?encoding\s*=\s*[\"']([^\"'>]+)", re.IGNORECASE)
_HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\"';,\s]+)", re.IGNORECASE)
# References to what `scrub_text` removes. Parsers resolve them, and a terminal obeys the result.
# `re` skips quickly to one character, not to two: so the second is looked for twice.
_CONTROL_REFERENCE = re.compile(
    rb"&(?=#)#(?:0*([1-8]|1[124-9]|2\d|3[01]|127|129|141|143|144|157)(?!\d)"
    rb"|[xX]0*([1-8bBcCeEfF]|1[0-9a-fA-F]|7[fF]|8[1dDfF]|9[0dD])(?![0-9a-fA-F]));?"
)
# Where Python's codec of that name has fewer characters than the browsers' decoder.
_WIDER_CODECS = {
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso8859-11": "cp874",
}
# The wider form of these two differs in common characters (U+2015 becomes U+2014), so it is used
# only for pages with characters of NEC's extension, such as a circled 1.
_LAST_CODECS = {"euc_jp": "euc_jis_2004", "iso2022_jp": "iso2022_jp_2004"}
_NAMES = {
    "utf-16-le": "utf-16le",
    "utf-16-be": "utf-16be",
    "cp866": "ibm866",
    "mac-roman": "macintosh",
    "mac-cyrillic": "x-mac-cyrillic",
    "iso8859-11": "windows-874",
    "euc_jp": "euc-jp",
    "euc_kr": "euc-kr",
    "iso2022_jp": "iso-2022-jp",
}
# WHATWG labels that resiliparse leaves out, and one that only people write.
_MORE_LABELS = {
    "x-mac-cyrillic": "mac-cyrillic",
    "x-mac-ukrainian": "mac-cyrillic",
    "x-user-defined": "cp1252",
    "latin-1": "cp1252",
}
_MULTI_BYTE = frozenset(("gbk", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr"))
# One in seven Chinese characters in GBK is valid UTF-8 by chance, so one or two prove nothing.
_ENOUGH_CHARACTERS = 3


class DecodedPage(NamedTuple):
    """A page as text, the same text as UTF-8, and the WHATWG name of the page's encoding."""

    text: str
    utf8: bytes
    encoding: str


def decode_html(body: bytes, charset: str | None = None) -> DecodedPage:
    """Return the text of a page whose HTTP header declares `charset`; never fails."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], encoding)
    declared = tuple(_declared_encodings(body, charset))
    try:
        text, errors, is_cut = body.decode(), 0, False
    except UnicodeDecodeError as error:
        text = body.decode("utf-8", "replace")
        # A page may contain U+FFFD of its own.
        errors = text.count("\ufffd") - body.count(b"\xef\xbf\xbd")
        is_cut = error.reason == "unexpected end of data"
    if _is_utf8(text, errors, declared, is_cut=is_cut):
        return _scrubbed(text, text.encode() if errors else body, "utf-8")
    return _decode_legacy(body, declared)


def decode_page(page: str | bytes, charset: str | None = None) -> DecodedPage:
    """Return a page as text without lone surrogates and control characters."""
    if isinstance(page, bytes):
        return decode_html(page, charset)
    try:
        return _scrubbed(page, page.encode(), "utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        clean = scrub_text(page)
        return _scrubbed(clean, clean.encode(), "utf-8")


def html_text(page: str | bytes, charset: str | None = None) -> str:
    """Return the text of a page."""
    return decode_page(page, charset).text


def content_type_charset(content_type: str) -> str | None:
    """Return the charset of a Content-Type header in lower case, unquoted; None without one."""
    found = _HEADER_CHARSET.search(content_type)
    return found[1].lower() if found else None


def _declared_encodings(body: bytes, charset: str | None) -> list[str]:
    """Return the known encodings of the header and of the meta element or XML declaration."""
    head = body[:_SCANNED_BYTES]
    if head[:2] in _UTF_16_STARTS:
        return [_UTF_16_STARTS[head[:2]]]
    header = encoding_of_label(charset.strip("\"' ")) if charset else None
    if header in _UTF_16_STARTS.values() and b"\0" not in head:
        header = None
    return [encoding for encoding in (header, _meta_encoding(head)) if encoding]


def _meta_encoding(head: bytes) -> str | None:
    if b"<!--" in head:
        head = _COMMENT.sub(b"", head)
    for meta in _META.finditer(head):
        attributes = meta[1]
        # A description may contain "charset=": only http-equiv gives `content` that meaning.
        if b"content" in attributes.lower() and b"http-equiv" not in attributes.lower():
            continue
        found = _META_CHARSET.search(attributes)
        if found and (encoding := _ascii_compatible(found[1])):
            return encoding
    declaration = _XML_ENCODING.match(head)
    return _ascii_compatible(declaration[1]) if declaration else None


def _ascii_compatible(label: bytes) -> str | None:
    """Return the encoding; UTF-16 was read byte by byte, so it cannot be UTF-16."""
    encoding = encoding_of_label(label.decode("latin-1"))
    return "utf-8" if encoding in _UTF_16_STARTS.values() else encoding


@lru_cache(maxsize=1024)
def encoding_of_label(label: str) -> str | None:
    """Return the WHATWG name of a charset label, in lower case; None for an unknown label."""
    codec = _python_codec(label)
    if codec is None:
        return None
    name = _NAMES.get(codec, codec)
    return name.replace("cp125", "windows-125").replace("iso8859", "iso-8859")


def _python_codec(label: str) -> str | None:
    known = label.strip().lower()
    codec: str | None = _MORE_LABELS.get(known) or map_encoding_to_html5(known, fallback_utf8=False)
    return codec.lower().replace("iso-8859", "iso8859") if codec else None


def _is_utf8(text: str, errors: int, declared: tuple[str, ...], *, is_cut: bool) -> bool:
    first = declared[0] if declared else None
    if not errors and (first in (None, "utf-8") or text.isascii()):
        return first in (None, "utf-8")
    characters = _foreign_characters(text) - errors
    if first == "utf-8":
        return errors <= characters or is_cut
    enough = _ENOUGH_CHARACTERS if first in _MULTI_BYTE else 1
    return characters >= enough and characters > errors


def _decode_legacy(body: bytes, declared: tuple[str, ...]) -> DecodedPage:
    for encoding in declared:
        page = _decoded(body, encoding)
        errors = page.text.count("\ufffd")
        if encoding != "utf-8" and errors <= max(1, _foreign_characters(page.text) - errors):
            return page
    detected = encoding_of_label(detect_encoding(body))
    return _decoded(body, "windows-1252" if detected in (None, "utf-8") else detected)


def _foreign_characters(text: str) -> int:
    """Return the number of characters outside ASCII."""
    return len(text) - len(text.encode("ascii", "ignore"))


def _decoded(body: bytes, encoding: str) -> DecodedPage:
    codec = _python_codec(encoding) or "cp1252"
    codec = _WIDER_CODECS.get(codec, codec)
    try:
        text = body.decode(codec)
    except UnicodeDecodeError:
        text = body.decode(_LAST_CODECS.get(codec, codec), "replace")
    return _scrubbed(text, text.encode(), encoding)


def _scrubbed(text: str, utf8: bytes, encoding: str) -> DecodedPage:
    if not is_safe_utf8(utf8):
        text = scrub_text(text)
        utf8 = text.encode()
    if _CONTROL_REFERENCE.search(utf8):
        utf8 = _CONTROL_REFERENCE.sub(_resolved, utf8)
        text = utf8.decode()
    return DecodedPage(text, utf8, encoding)


def _resolved(found: re.Match[bytes]) -> bytes:
    return scrub_text(chr(int(found[1]) if found[1] else int(found[2], 16))).encode()


def parse_document(page: str | bytes, charset: str | None = None) -> html.HtmlElement | None:
    """Return the root element, or None for a page without any markup.

    `charset` is the charset of the HTTP header; it is used for bytes only.
    """
    return parse_decoded(decode_page(page, charset))


def parse_decoded(page: DecodedPage) -> html.HtmlElement | None:
    """Return the root element of a decoded page, or None for a page without any markup."""
    declared = _XML_DECLARATION.match(page.utf8)
    # The bytes of UTF-8 are parsed faster than a str.
    utf8 = page.utf8[declared.end() :] if declared else page.utf8
    try:
        return None if not utf8 or utf8.isspace() else html.document_fromstring(utf8, _parser())
    except etree.ParserError:
        return None


@cache
def _parser() -> html.HTMLParser:
    # Choosing the class of each element by its tag takes as long as reading it.
    classes = etree.ElementDefaultClassLookup(
        element=html.HtmlElement,
        comment=html.HtmlComment,
        pi=html.HtmlProcessingInstruction,
        entity=html.HtmlEntity,
    )
    parser = html.HTMLParser(encoding="utf-8")
    parser.set_element_class_lookup(classes)
    return parser
