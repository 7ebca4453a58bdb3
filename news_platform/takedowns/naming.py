"""Pure: find the lines of foreign text, such as logs and previews, that name a covered page."""

import re
from collections.abc import Sequence

import polars as pl

from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.spellings import bare_key, page_keys

# An address or a host as people and programs write it, with or without its scheme.
_ADDRESS = re.compile(
    r"(?:https?://)?(?:[\w-]+\.)+[^\W\d_][\w-]+(?::\d+)?(?:/[^\s\"'<>|\\`\])}]*)?"
)
_AFTER = ".,;:!?"


def page_needles(takedowns: Takedowns) -> list[str]:
    """Return the texts of which one occurs wherever a covered page is named as it was requested."""
    keys = {page_keys(url)[0] for url in takedowns.pages}
    return sorted({*keys, *map(bare_key, takedowns.prefixes), *takedowns.domains})


def may_name_pages(texts: Sequence[str], needles: Sequence[str]) -> list[bool]:
    """Return for each text whether it has a needle; their number hardly matters."""
    if not texts or not needles:
        return [False] * len(texts)
    found = pl.Series(texts, dtype=pl.String).str.contains_any(list(needles))
    return [bool(one) for one in found]


def names_page(text: str, takedowns: Takedowns) -> bool:
    """Return whether a text names a covered page or domain."""
    for found in _ADDRESS.findall(text):
        url = found.rstrip(_AFTER)
        if takedowns.covers_url(url if "://" in url else f"https://{url}"):
            return True
    return False
