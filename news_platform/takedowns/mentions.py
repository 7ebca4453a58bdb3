"""Find texts that name a covered page or domain, such as logs, reports and other pages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import polars as pl

from news_platform.storage.commit.markers import change_report, read_markers
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.spellings import bare_key, page_keys

# An address or a host as people and programs write it, with or without its scheme.
_ADDRESS = re.compile(
    r"(?:https?://)?(?:[\w-]+\.)+[^\W\d_][\w-]+(?::\d+)?(?:/[^\s\"'<>|\\`\])}]*)?"
)
_AFTER = ".,;:!?"


def page_needles(takedowns: Takedowns) -> tuple[str, ...]:
    """Return the texts of which one occurs wherever a covered page is named as it was requested."""
    return _needles(takedowns.pages, takedowns.prefixes, takedowns.domains)


@lru_cache(4)
def _needles(
    pages: tuple[str, ...], prefixes: tuple[str, ...], domains: frozenset[str]
) -> tuple[str, ...]:
    found = {*(min(page_keys(url), key=len) for url in pages), *map(bare_key, prefixes), *domains}
    # JSON may escape the slashes of an address.
    return tuple(sorted({*found, *(one.replace("/", "\\/") for one in found)}))


def contain_any(texts: Sequence[str], needles: Sequence[str]) -> list[bool]:
    """Return for each text whether it has a needle; the number of needles hardly matters."""
    return [bool(one) for one in pl.Series(texts, dtype=pl.String).str.contains_any(list(needles))]


def name_pages(texts: Sequence[str], takedowns: Takedowns) -> list[bool]:
    """Return for each text whether it names a covered page or domain."""
    if not texts or not takedowns:
        return [False] * len(texts)
    likely = contain_any(texts, page_needles(takedowns))
    return [may and any(_named(text, takedowns)) for text, may in zip(texts, likely, strict=True)]


def names_page(text: str, takedowns: Takedowns) -> bool:
    """Return whether a text names a covered page or domain."""
    return name_pages([text], takedowns)[0]


def _named(text: str, takedowns: Takedowns) -> Iterator[bool]:
    for found in _ADDRESS.findall(text.replace("\\/", "/")):
        plain = found.rstrip(_AFTER)
        url = plain if "://" in plain else f"https://{plain}"
        # Whatever follows the "?": a text too many is no loss.
        yield takedowns.covers_url(url) or takedowns.covers_url(url.partition("?")[0])


def forget_in_report(store: ObjectStore, dataset: str, unit: str, takedowns: Takedowns) -> None:
    """Remove covered pages and domains from what the marker of a unit tells about its run."""
    marker = read_markers(store, dataset).get(unit)
    if marker is None or not names_page(store.read(marker.path).decode(), takedowns):
        return

    def left(value: object) -> object:
        if isinstance(value, Mapping):
            return {key: left(one) for key, one in value.items() if not is_named(key)}
        return (
            [left(one) for one in value if not is_named(one)] if isinstance(value, list) else value
        )

    def is_named(value: object) -> bool:
        words = value if isinstance(value, list) else [value]
        return any(isinstance(word, str) and names_page(word, takedowns) for word in words)

    change_report(store, marker, lambda report: {key: left(one) for key, one in report.items()})
