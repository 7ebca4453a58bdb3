"""The numbers of the room: limits, intervals and retries, with the seed's defaults."""

from dataclasses import dataclass
from typing import Protocol

_HOUR = 3600
_DAY = 24 * _HOUR


@dataclass(frozen=True, slots=True)
class DiscoveryOptions:
    """Which feeds are taken in; an empty `languages` takes any."""

    fresh_days_limit: int = 7
    languages: tuple[str, ...] = ("en",)
    concurrency: int = 32
    # A feed that was refused is looked at again after so many days.
    recheck_days: int = 30
    parsers: int = 1


@dataclass(frozen=True, slots=True)
class PollOptions:
    """How often feeds are asked and how much is taken from one answer."""

    max_items_per_feed: int = 20
    min_interval_seconds: int = 3 * _HOUR
    max_interval_seconds: int = 6 * _HOUR
    # A feed that failed for long is asked this rarely, instead of never.
    probe_interval_seconds: int = 7 * _DAY
    errors_until_dead: int = 10
    # A poller that dies gives its feeds back after so long; a long poll must end before.
    lease_seconds: int = 3600
    concurrency: int = 64
    max_body_bytes: int = 5 * 1024 * 1024
    batch_size: int = 200
    parsers: int = 1


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """How articles are claimed, fetched and kept."""

    pending_batch_size: int = 100
    clean_text_limit: int = 20_000
    lease_seconds: int = 600
    max_retries: int = 5
    retry_seconds: int = 600
    concurrency: int = 32
    robots_cache_seconds: int = _DAY
    extractors: int = 2
    # None: until nothing is due.
    max_articles: int | None = None


class Given(Protocol):
    """What a person may set; the names are those of the settings."""

    @property
    def fresh_days_limit(self) -> int:
        """Days the newest entry of a feed may be old."""

    @property
    def feed_languages(self) -> str:
        """Codes with commas; empty takes any."""

    @property
    def max_items_per_feed(self) -> int:
        """New articles a feed and poll."""

    @property
    def poll_min_seconds(self) -> int:
        """Shortest interval between polls."""

    @property
    def poll_max_seconds(self) -> int:
        """Longest interval between polls."""

    @property
    def pending_batch_size(self) -> int:
        """Articles claimed at once."""

    @property
    def clean_text_limit(self) -> int:
        """Characters of clean_text in a row."""

    @property
    def article_concurrency(self) -> int:
        """Articles fetched at the same time."""

    @property
    def extractors(self) -> int:
        """Processes that read pages."""


def discovery_options(given: Given) -> DiscoveryOptions:
    """Return how to discover feeds, as set."""
    languages = (code.strip().lower() for code in given.feed_languages.split(","))
    return DiscoveryOptions(
        fresh_days_limit=given.fresh_days_limit,
        languages=tuple(code for code in languages if code),
    )


def poll_options(given: Given) -> PollOptions:
    """Return how to poll feeds, as set."""
    return PollOptions(
        max_items_per_feed=given.max_items_per_feed,
        min_interval_seconds=given.poll_min_seconds,
        max_interval_seconds=max(given.poll_max_seconds, given.poll_min_seconds),
    )


def work_options(given: Given, *, max_articles: int | None = None) -> WorkOptions:
    """Return how to work on articles, as set."""
    return WorkOptions(
        pending_batch_size=given.pending_batch_size,
        clean_text_limit=given.clean_text_limit,
        concurrency=given.article_concurrency,
        extractors=given.extractors,
        max_articles=max_articles,
    )
