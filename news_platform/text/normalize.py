"""Text in, the same text normalized for display or for comparison out, or its hash."""

import hashlib
import re
import unicodedata

_NOT_WORD = re.compile(r"[\W_]+")
# Soft hyphens and zero-width characters only mark where a line may break.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")


def normalize_text(text: str) -> str:
    """Return the text after NFKC and casefolding, with single spaces between its words."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def text_hash(text: str) -> str:
    """Return the SHA-256 of the normalized text in hex; case, width and spacing do not matter."""
    return hashlib.sha256(normalize_text(text).encode("utf-8", "replace")).hexdigest()


def normalize_letters(text: str) -> str:
    """Return only the letters and digits of the text, casefolded."""
    return _NOT_WORD.sub("", text).casefold()


def normalize_spaces(text: str) -> str:
    """Return the text with single spaces and without invisible characters."""
    return " ".join((text if text.isascii() else _INVISIBLE.sub("", text)).split())
