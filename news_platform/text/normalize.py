"""Normalize text for display and for comparison."""

import re

_NOT_WORD = re.compile(r"[\W_]+")
# Soft hyphens only say where a line may break.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")


def normalize_letters(text: str) -> str:
    """Return only the letters and digits of `text`, in lower case."""
    return _NOT_WORD.sub("", text).casefold()


def normalize_spaces(text: str) -> str:
    """Return `text` with single spaces and without invisible characters."""
    return " ".join((text if text.isascii() else _INVISIBLE.sub("", text)).split())
