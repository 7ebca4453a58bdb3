"""Pure: find the lines of foreign text, such as logs and previews, that name a covered page."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.spellings import bare_key, page_keys

# An address or a host as people and programs write it, with or without its scheme.
_ADDRESS = re.compile(
    r"(?:https?://)?(?:[\w-]+\.)+[^\W\d_][\w-]+(?::\d+)?(?:/[^\s\"'<>|\\`\])}]*)?"
)
_AFTER = ".,;:!?"
# Previews of tables cut long addresses.
_CUT = "…"


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


def host_needles(takedowns: Takedowns) -> list[str]:
    """Return the hosts and domains of covered pages: no text names a page without one of them."""
    return sorted(takedowns.names)


def names_page(text: str, takedowns: Takedowns) -> bool:
    """Return whether a text names a covered page or domain, also with the end of it cut off."""
    for found in _ADDRESS.findall(text):
        if found.endswith(_CUT) and _begins_page(found.removesuffix(_CUT), takedowns):
            return True
        url = found.rstrip(_AFTER) if "://" in found else f"https://{found.rstrip(_AFTER)}"
        # Whatever follows the "?": a line too many is no loss.
        if takedowns.covers_url(url) or takedowns.covers_url(url.partition("?")[0]):
            return True
    return False


def _begins_page(cut: str, takedowns: Takedowns) -> bool:
    key = bare_key(cut if "://" in cut else f"https://{cut}")
    urls = _sorted(takedowns.urls)
    place = bisect_left(urls, key)
    return "/" in key and place < len(urls) and urls[place].startswith(key)


@lru_cache(2)
def _sorted(urls: frozenset[str]) -> list[str]:
    return sorted(urls)
