"""Show the progress of `news-platform ccnews collect` in the terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from news_platform.ccnews.pool import CollectFailure, CollectListener, Estimate
from news_platform.ccnews.progress import WarcProgress
from news_platform.datasets.collected import Collected

_REFRESHES_PER_SECOND = 5


class ProgressBar(CollectListener):
    """Show one line for all WARCs in work: pages so far, bytes read, time left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)
        self._read: dict[str, int] = {}
        self._rows: dict[str, int] = {}

    def start(self, estimate: Estimate) -> None:
        """Print the estimate and set the length of the bar."""
        self._progress.console.print(f"{estimate}")
        self._progress.update(self._task, total=estimate.download_bytes)

    def advance(self, warc_name: str, progress: WarcProgress) -> None:
        """Show how far a WARC is."""
        self._update(warc_name, read_bytes=progress.read_bytes, rows=progress.rows)

    def finish(self, outcome: Collected | CollectFailure) -> None:
        """Show that a WARC is collected, or print why it failed."""
        if isinstance(outcome, Collected):
            self._update(outcome.warc, read_bytes=outcome.source_bytes, rows=outcome.rows)
        else:
            self._progress.console.print(f"{outcome.warc}: {outcome.reason}", markup=False)

    def _update(self, warc_name: str, *, read_bytes: int, rows: int) -> None:
        self._read[warc_name], self._rows[warc_name] = read_bytes, rows
        pages = f"{sum(self._rows.values()):,} pages"
        done = sum(self._read.values())
        self._progress.update(self._task, completed=done, description=pages)


@contextmanager
def progress_bar() -> Iterator[ProgressBar]:
    """Show a bar until the block ends."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        refresh_per_second=_REFRESHES_PER_SECOND,
    ) as progress:
        yield ProgressBar(progress)
