"""From what an operator sets to what the room works with; settings are read elsewhere."""

from typing import Protocol

from news_platform.ccnews.page import HTML_TYPES, PageOptions
from news_platform.ccnews.pool import CrewOptions
from news_platform.errors import ConfigError


class Given(Protocol):
    """The settings of this room, by whatever name they were read."""

    @property
    def workers(self) -> int: ...  # noqa: D102 - named after its setting
    @property
    def page_seconds(self) -> float: ...  # noqa: D102 - named after its setting
    @property
    def memory_mb(self) -> int: ...  # noqa: D102 - named after its setting
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


def page_options(given: Given) -> PageOptions:
    """Return what is taken from a WARC; raise ConfigError for a status that is no number."""
    wrong = [status for status in given.statuses if not status.isdecimal()]
    if wrong:
        raise ConfigError(f"not an HTTP status code: {wrong[0]!r}", thing=wrong[0])
    return PageOptions(
        main_content=given.main_content,
        with_metadata=given.captures,
        with_feeds=given.feed_candidates,
        mimes=frozenset(mime.lower() for mime in given.mimes) or HTML_TYPES,
        hosts=frozenset(host.lower() for host in given.hosts),
        languages=frozenset(given.languages),
        statuses=frozenset(int(status) for status in given.statuses),
    )


def crew_options(given: Given) -> CrewOptions:
    """Return how the workers are run."""
    return CrewOptions(
        workers=max(1, given.workers),
        page_seconds=given.page_seconds,
        memory_bytes=given.memory_mb << 20,
    )
