"""The numbers of the room: limits, intervals and retries, with the seed's defaults."""

from dataclasses import dataclass

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
