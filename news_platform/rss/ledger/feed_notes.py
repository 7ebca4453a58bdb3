"""The notes of a feed: what a person wrote, then our own remark in brackets; neither hides one."""

import re

_OURS = re.compile(r"\s*\[([^\[\]]*)\]\s*\Z")
_NO_BRACKETS = str.maketrans("[]", "()")


def with_remark(notes: str, remark: str) -> str:
    """Return the notes with this remark in place of our last one; '' takes it away."""
    theirs = _OURS.sub("", notes)
    return f"{theirs} [{remark.translate(_NO_BRACKETS)}]".strip() if remark else theirs.strip()


def remark_of(notes: str) -> str:
    """Return our own remark, or ''."""
    found = _OURS.search(notes)
    return found[1] if found else ""
