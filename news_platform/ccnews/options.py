"""The options of collecting, from the settings to the worker processes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from news_platform.datasets import versions
from news_platform.datasets.collected import recipe

# Raise this when the same WARC would give other rows; `ccnews collect --older-than` then collects
# again what an older version wrote. 2: pages are decoded as browsers do, in `html.decode`.
EXTRACTOR_VERSION = versions.CRAWL_EXTRACTOR
# The options that decide which rows a WARC gives.
_RECORDED = ("max_page_bytes", "hosts", "languages")


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """How WARCs are collected: workers and their limits, what is written, which pages are kept.

    `page_seconds` is the longest time one page may take and `memory_mb` the most memory a worker
    may hold. `max_warcs` caps the WARCs of a day; None collects all. An empty filter keeps every
    page; `hosts` are registrable domains in natural order (`bbc.co.uk`).
    """

    workers: int = 1
    # Real pages take milliseconds: what takes longer hangs.
    page_seconds: float = 30.0
    memory_mb: int = 1024
    max_warcs: int | None = None
    dropped_responses: bool = True
    # Equal failures of the same file after which what can be read of it is published; 0: never.
    # Downloads are retried within each: five rule out a passing fault of the network.
    accept_after: int = 5
    max_page_bytes: int = 32 << 20
    hosts: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()

    def recorded(self) -> Mapping[str, object]:
        """Return what a marker records: the options that decide on rows and are not defaults."""
        defaults = {field.name: field.default for field in fields(self)}
        given = {name: getattr(self, name) for name in _RECORDED}
        return {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in given.items()
            if value != defaults[name]
        }

    @property
    def recipe(self) -> str:
        """Return the end of the fingerprint of every WARC collected with these options."""
        return recipe(EXTRACTOR_VERSION, self.recorded())
