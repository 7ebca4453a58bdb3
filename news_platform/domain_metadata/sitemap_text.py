"""Turn the bytes of a sitemap into clean text: inflate, decode and escape it piece by piece."""

import codecs
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

MAX_INFLATED_BYTES = 50 * 1024 * 1024
"""The limit of the sitemap protocol."""

# Small enough that the nodes of one piece take little memory, large enough to need few calls.
PIECE_BYTES = 65_536
# Some servers gzip a .gz file a second time.
_MAX_GZIP_LAYERS = 2
_GZIP_MAGIC = b"\x1f\x8b"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_TEXT_CODECS = ("iso8859", "cp", "koi8", "gb", "euc", "shift")
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
# Characters that XML 1.0 forbids.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]+")
# An ampersand that starts neither one of XML's five entities nor a number: an unescaped URL.
_RAW_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_LONGEST_ENTITY = 10  # `&#1114111;`


class TooLarge(Exception):
    """The sitemap inflates to more than the protocol allows."""


class BadGzip(Exception):
    """The gzip stream of the sitemap is damaged."""


def inflated(body: bytes) -> Iterator[bytes]:
    """Yield the decompressed sitemap in small pieces.

    Raise TooLarge past the limit and BadGzip if the gzip stream is damaged or truncated.
    """
    pieces: Iterable[bytes] = _slices(body)
    for _ in range(_MAX_GZIP_LAYERS):
        pieces = _unwrapped(pieces)
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > MAX_INFLATED_BYTES:
            raise TooLarge(f"more than {MAX_INFLATED_BYTES} bytes")
        yield piece


def clean_text(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield text that an XML parser accepts: bad bytes replaced, raw ampersands escaped."""
    decoder = None
    carried = ""
    for piece in pieces:
        if decoder is None:
            encoding, piece = _encoding(piece)
            decoder = codecs.getincrementaldecoder(encoding)("replace")
        text = carried + decoder.decode(piece)
        text, carried = _cut_before_entity(text)
        yield _escape_for_xml(text)
    yield _escape_for_xml(carried)


def _slices(body: bytes) -> Iterator[bytes]:
    view = memoryview(body)
    for start in range(0, len(body), PIECE_BYTES):
        yield bytes(view[start : start + PIECE_BYTES])


def _unwrapped(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """Remove one layer of gzip if there is one."""
    rest = iter(pieces)
    first = next(rest, b"")
    whole = chain([first], rest)
    return filter(None, _gunzipped(whole)) if first.startswith(_GZIP_MAGIC) else whole


def _gunzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    member = zlib.decompressobj(wbits=31)
    for piece in pieces:
        left = piece
        while left:
            if member.eof and left[0] != _GZIP_MAGIC[0]:
                return  # padding after the last gzip member
            member = zlib.decompressobj(wbits=31) if member.eof else member
            # The output limit keeps a decompression bomb from filling the memory in one call.
            try:
                yield member.decompress(left, PIECE_BYTES)
            except zlib.error as error:
                raise BadGzip(str(error)) from error
            left = member.unused_data or member.unconsumed_tail
    if not member.eof:
        raise BadGzip("the gzip stream is truncated")


def _encoding(first: bytes) -> tuple[str, bytes]:
    """Return the encoding of a sitemap from its first piece, and the piece without its BOM."""
    for mark, name in _BOMS:
        if first.startswith(mark):
            return name, first.removeprefix(mark)
    declared = _DECLARED.match(first)
    try:
        name = codecs.lookup(declared.group(1).decode("ascii") if declared else "utf-8").name
    except LookupError:
        return "utf-8", first
    # A declaration that is readable as ASCII rules out UTF-16, whatever it claims. Python also has
    # codecs that are not text encodings (such as `zip`): accept the known text encodings only.
    return (name if name.startswith(_TEXT_CODECS) else "utf-8"), first


def _cut_before_entity(text: str) -> tuple[str, str]:
    """Split off an entity that the end of the piece may have cut in half."""
    start = text.rfind("&", max(0, len(text) - _LONGEST_ENTITY))
    return (text, "") if start < 0 or ";" in text[start:] else (text[:start], text[start:])


def _escape_for_xml(text: str) -> str:
    return _RAW_AMPERSAND.sub("&amp;", _NOT_XML.sub("", text))
