"""Normalize text for display or for comparison, and hash it."""

import hashlib
import re
import unicodedata
from typing import Any

_NOT_WORD = re.compile(r"[\W_]+")
# Soft hyphens and zero-width characters only mark where a line may break.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
# What UTF-8 (lone surrogates), PostgreSQL (NUL) or XML (other controls) cannot hold. Tabs and line
# breaks stay; the controls that Python counts as spaces still separate words.
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSAFE_SPACES = frozenset("\x0b\x0c\x1c\x1d\x1e\x1f\x85")


def scrub_text(text: str) -> str:
    """Return foreign text that every file and database can store.

    Lone surrogates become U+FFFD; NUL and other control characters are removed, or become a space.
    """
    # A short text in print, as nearly all are, needs no search.
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_safe, text)


def scrub_json(value: Any) -> Any:
    """Return a parsed JSON value with its texts scrubbed: escapes spell any character."""
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, list):
        return [scrub_json(part) for part in value]
    if isinstance(value, dict):
        return {scrub_text(key): scrub_json(part) for key, part in value.items()}
    return value


def _safe(found: re.Match[str]) -> str:
    character = found[0]
    if character >= "\ud800":
        return "\ufffd"
    return " " if character in _UNSAFE_SPACES else ""


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
