"""Find texts that name a covered page or domain, such as logs, reports and other pages."""

import re
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from news_platform.storage.commit.markers import change_report, read_markers
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns

# An address or a host as people and programs write it, with or without its scheme.
_ADDRESS = re.compile(
    r"(?:https?://)?(?:[\w-]+\.)+[^\W\d_][\w-]+(?::\d+)?(?:/[^\s\"'<>|\\`\])}]*)?"
)
_AFTER = ".,;:!?"


def name_pages(texts: Sequence[str], takedowns: Takedowns) -> list[bool]:
    """Return for each text whether it names a covered page or domain."""
    if not texts or not takedowns.names:
        return [False] * len(texts)
    # No text names a page without its host; their number hardly matters.
    likely = pl.Series(texts, dtype=pl.String).str.contains_any(sorted(takedowns.names))
    return [
        bool(may) and any(_named(text, takedowns)) for text, may in zip(texts, likely, strict=True)
    ]


def names_page(text: str, takedowns: Takedowns) -> bool:
    """Return whether a text names a covered page or domain."""
    return name_pages([text], takedowns)[0]


def _named(text: str, takedowns: Takedowns) -> Iterator[bool]:
    # JSON may escape the slashes of an address.
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
