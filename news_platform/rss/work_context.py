"""What a worker of articles uses and reports, and the options that it obeys."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa

from news_platform.isolation.pool import Pool
from news_platform.rss.full_text import FULL_TEXT_FOLDER
from news_platform.rss.page_store import PAGES_FOLDER
from news_platform.rss.robots_gate import KnownRobots
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.web.fetch import PoliteFetcher


@dataclass(frozen=True, slots=True)
class WorkPlaces:
    """Where a worker writes: full texts, what references to them begin with, and pages.

    `pages` is None if the bytes of pages are not kept.
    """

    full_texts: ObjectStore
    full_text_folder: str = FULL_TEXT_FOLDER
    pages: ObjectStore | None = None


def work_places(
    root: ObjectStore, full_texts: ObjectStore, *, fulltext_dir: str | None, keeps_pages: bool
) -> WorkPlaces:
    """Return where workers write; `fulltext_dir` is set if full texts lie outside the root."""
    return WorkPlaces(
        full_texts=full_texts,
        full_text_folder=fulltext_dir or FULL_TEXT_FOLDER,
        pages=root.child(PAGES_FOLDER) if keeps_pages else None,
    )


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """How articles are claimed, fetched and stored."""

    pending_batch_size: int = 100
    lease_seconds: int = 600
    max_retries: int = 5
    # The wait after the first failure; it doubles with each further one, up to a day.
    retry_seconds: int = 600
    concurrency: int = 32
    robots_cache_seconds: int = 24 * 3600
    # An article is skipped whose robots.txt could not be read for this long.
    robots_patience_seconds: int = 7 * 24 * 3600
    extractors: int = 2
    # None means no limit: work until nothing is due.
    max_articles: int | None = None
    takedowns: Takedowns = NO_TAKEDOWNS
    # Called with the addresses of a page that turned out to be taken down.
    keep_alias: Callable[[Sequence[str]], object] = len


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What a worker uses: the ledger, the web, the process pool, the stores, the clock.

    `secrets` are the variables that settings of feeds may name.
    """

    engine: sa.Engine
    fetcher: PoliteFetcher
    pool: Pool
    places: WorkPlaces
    user_agent: str
    known_robots: KnownRobots
    clock: Callable[[], datetime]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class WorkReport:
    """How many articles a worker claimed, and the number of articles by outcome."""

    claimed: int
    outcomes: Mapping[str, int]

    @property
    def stored(self) -> int:
        """Return how many articles were stored or revised."""
        return self.outcomes.get("stored", 0) + self.outcomes.get("revised", 0)

    @property
    def duplicates(self) -> int:
        """Return how many articles were duplicates, by URL or by text."""
        return sum(n for outcome, n in self.outcomes.items() if outcome.startswith("duplicate"))
