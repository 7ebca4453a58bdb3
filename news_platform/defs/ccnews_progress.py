"""Show in Dagster how far a run of raw_news is."""

import time
from threading import Lock

import dagster as dg

from news_platform.ccnews.pool import CollectFailure, CollectListener, Estimate, WarcProgress
from news_platform.datasets.collected import Collected
from news_platform.errors import hide_addresses

_LOG_EVERY_SECONDS = 15.0


class ProgressLogger(CollectListener):
    """Log the progress of a run and report it as observations, at most every 15 seconds."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context = context
        self._lock = Lock()
        self._total = 0
        self._done = 0
        self._rows: dict[str, int] = {}
        self._logged_at = time.monotonic()

    def start(self, estimate: Estimate) -> None:
        """Log the estimate."""
        self._total = estimate.warcs
        self._context.log.info("%s: %s", self._context.partition_key, estimate)

    def advance(self, warc_name: str, progress: WarcProgress) -> None:
        """Note how far a WARC is."""
        with self._lock:
            self._rows[warc_name] = progress.rows
            if time.monotonic() - self._logged_at >= _LOG_EVERY_SECONDS:
                self._observe()

    def finish(self, outcome: Collected | CollectFailure) -> None:
        """Log the outcome of a WARC."""
        with self._lock:
            self._done += 1
            if isinstance(outcome, Collected):
                self._rows[outcome.warc] = outcome.rows
                self._context.log.info("%s: %s rows", outcome.warc, outcome.rows)
            else:
                reason = hide_addresses(outcome.reason)
                self._context.log.error("%s: %s", outcome.warc, reason)
            self._observe()

    def _observe(self) -> None:
        self._logged_at = time.monotonic()
        rows = sum(self._rows.values())
        self._context.log.info("%s of %s WARCs done, %s rows so far", self._done, self._total, rows)
        self._context.log_event(
            dg.AssetObservation(
                "raw_news",
                partition=self._context.partition_key,
                metadata={
                    "rows_so_far": rows,
                    "warcs_done": self._done,
                    "warcs_to_do": self._total,
                },
            )
        )
