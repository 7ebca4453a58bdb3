"""How the corpus is built."""

from dataclasses import dataclass
from datetime import timedelta

from news_platform.corpus.worker_types import TARGET


@dataclass(frozen=True, slots=True)
class CorpusOptions:
    """Which pages are judged, the limits of the workers, and how long replaced files stay.

    Empty `languages` or `domains` mean all; domains are registrable, in natural order. `run_bytes`
    is the memory for rows that wait to be sorted. `target` is what a worker runs on each page.
    """

    languages: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    workers: int = 2
    page_seconds: float = 30.0
    memory_bytes: int = 1_000_000_000
    run_bytes: int = 64 << 20
    scratch: str | None = None
    grace: timedelta = timedelta(days=7)
    target: str = TARGET
