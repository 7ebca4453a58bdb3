"""Make foreign text safe to show in a page, and decide which addresses may be links.

Templates escape everything. This is about what escaping leaves: characters that reorder or hide
what stands around them, and texts that are too long for a page.
"""

import re
import unicodedata
from urllib.parse import urlsplit

from markupsafe import escape

from news_platform.text.normalize import scrub_text

# Characters that change the direction of what follows, and those that only hide.
_DECEIVING = re.compile(
    "[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
_LINK_SCHEMES = ("http", "https")
_LONGEST_LINK = 2_000
ELLIPSIS = " …"
# Of a character in a page: `"` is written as `&#34;`.
_MOST_BYTES = 5


def visible(text: str) -> str:
    """Return a text without characters that reorder or hide what stands around them."""
    return _DECEIVING.sub("", scrub_text(text))


def one_line(text: object, *, limit: int = 300) -> str:
    """Return a text as one line without deceiving characters; empty if nothing is visible."""
    # A title of megabytes is not searched to its end.
    start = str(text if text is not None else "")[: 20 * limit]
    line = " ".join(visible(start).split())
    if not any(unicodedata.category(letter)[0] in "LNPS" for letter in line):
        return ""
    return line if len(line) <= limit else line[:limit].rstrip() + ELLIPSIS


def paragraphs(text: str, *, max_bytes: int) -> tuple[list[str], bool]:
    """Return the paragraphs of a text up to a size as HTML, and whether that is all of it."""
    found: list[str] = []
    left = max_bytes
    for line in text.splitlines():
        shown = visible(line).strip()
        if not shown:
            continue
        size = len(str(escape(shown)).encode()) + len("<p></p>\n")
        if size > left:
            cut = shown[: left // _MOST_BYTES]
            return [*found, cut] if cut else found, False
        found.append(shown)
        left -= size
    return found, True


def link(url: object) -> str | None:
    """Return an address that may be the target of a link: http or https, else None."""
    text = str(url if url is not None else "")
    if len(text) > _LONGEST_LINK or _DECEIVING.search(text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:  # such as an unclosed bracket
        return None
    return text if parts.scheme in _LINK_SCHEMES and parts.netloc else None


def language_code(text: object) -> str | None:
    """Return a language as the attribute `lang` takes it, or None."""
    code = str(text if text is not None else "")
    return code if _LANGUAGE.fullmatch(code) else None
