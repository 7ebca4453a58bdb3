"""Text folded for comparison: letters and digits only, lower case."""

import re

_NOT_WORD = re.compile(r"[\W_]+")


def folded(text: str) -> str:
    """Return only the letters and digits of `text`, in lower case."""
    return _NOT_WORD.sub("", text).casefold()
