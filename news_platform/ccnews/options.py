"""The options of collecting, from the settings to the worker processes."""

from dataclasses import dataclass
from typing import Protocol

from news_platform.errors import ConfigError

# Raise this when the same WARC would give other rows; `ccnews collect --older-than` then collects
# again what an older version wrote.
EXTRACTOR_VERSION = "1"
HTML_TYPES = frozenset(("text/html", "application/xhtml+xml"))


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """How WARCs are collected: workers and their limits, what is written, which pages are kept.

    `page_seconds` is the longest time one page may take and `memory_mb` the most memory a worker
    may hold. `max_warcs` caps the WARCs of a day; None collects all. `main_content` False keeps the
    text of the whole page. An empty filter keeps every page; `hosts` are registrable domains in
    natural order (`bbc.co.uk`).
    """

    workers: int = 1
    page_seconds: float = 30.0
    memory_mb: int = 1024
    max_warcs: int | None = None
    main_content: bool = True
    captures: bool = True
    feed_candidates: bool = True
    max_page_bytes: int = 32 << 20
    mimes: frozenset[str] = HTML_TYPES
    hosts: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()
    statuses: frozenset[int] = frozenset()


class Given(Protocol):
    """The settings of ccnews that become options."""

    @property
    def workers(self) -> int: ...  # noqa: D102 - named after its setting
    @property
    def page_seconds(self) -> float: ...  # noqa: D102 - named after its setting
    @property
    def memory_mb(self) -> int: ...  # noqa: D102 - named after its setting
    @property
    def max_warcs(self) -> int | None: ...  # noqa: D102 - named after its setting
    @property
    def main_content(self) -> bool: ...  # noqa: D102 - named after its setting
    @property
    def captures(self) -> bool: ...  # noqa: D102 - named after its setting
    @property
    def feed_candidates(self) -> bool: ...  # noqa: D102 - named after its setting
    @property
    def hosts(self) -> tuple[str, ...]: ...  # noqa: D102 - named after its setting
    @property
    def languages(self) -> tuple[str, ...]: ...  # noqa: D102 - named after its setting
    @property
    def statuses(self) -> tuple[str, ...]: ...  # noqa: D102 - named after its setting
    @property
    def mimes(self) -> tuple[str, ...]: ...  # noqa: D102 - named after its setting


def collect_options(given: Given) -> CollectOptions:
    """Return the options that the settings ask for; raise ConfigError for an invalid status."""
    return CollectOptions(
        workers=max(1, given.workers),
        page_seconds=given.page_seconds,
        memory_mb=given.memory_mb,
        max_warcs=given.max_warcs,
        main_content=given.main_content,
        captures=given.captures,
        feed_candidates=given.feed_candidates,
        mimes=frozenset(mime.lower() for mime in given.mimes) or HTML_TYPES,
        hosts=frozenset(host.lower() for host in given.hosts),
        languages=frozenset(given.languages),
        statuses=frozenset(map(_status_code, given.statuses)),
    )


def _status_code(text: str) -> int:
    if not text.isdecimal():
        message = f"invalid HTTP status code {text!r}: expected a number such as 200"
        raise ConfigError(message, thing=text)
    return int(text)
