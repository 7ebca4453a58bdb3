"""A small crawl folder for tests: WARC files, their listing, and collecting them."""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from news_platform.ccnews.pipeline import CollectReport, WarcSource, collect_warcs
from news_platform.ccnews.pool import CollectOptions, CollectTask, ProgressReporter, StoreAddress
from news_platform.ccnews.worker import collect_warc
from news_platform.datasets.collected import Collected
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.ccnews.archive import Record, gzipped, page

NOW = datetime(2025, 11, 3, 20, tzinfo=UTC)
DAY = date(2025, 11, 1)
DUTCH = "De burgemeester opende vanmorgen de nieuwe brug over de rivier in het midden van de stad."
FRENCH = (
    "Le maire a ouvert ce matin le nouveau pont sur la rivière, au milieu de la ville, devant tous."
)


def warc_name(day: date, number: int = 1) -> str:
    """Return a name as the crawl gives them."""
    return f"CC-NEWS-{day:%Y%m%d}{number:06d}-{number:05d}.warc.gz"


def warc_path(day: date, number: int = 1) -> str:
    """Return the path of a WARC in the crawl."""
    return f"crawl-data/CC-NEWS/{day:%Y}/{day:%m}/{warc_name(day, number)}"


def mixed_pages(count: int = 6) -> list[Record]:
    """Return pages in three languages, in turn."""
    texts = ("The mayor of the town opened the new bridge over the river.", DUTCH, FRENCH)
    return [page(number, text=texts[number % 3]) for number in range(count)]


def write_crawl(folder: Path, warcs: Mapping[str, Sequence[Record]]) -> ObjectStore:
    """Write WARC files by their path in the crawl and the listings that name them."""
    for path, records in warcs.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzipped(records))
    write_listings(folder, list(warcs))
    return open_store(str(folder))


def write_listings(folder: Path, paths: Sequence[str]) -> None:
    """Write the listing of every month that these paths are of."""
    months = {path.rpartition("/")[0] for path in paths}
    for month in months:
        lines = [path for path in paths if path.startswith(month)]
        file = folder / month / "warc.paths.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))


def address(store: ObjectStore) -> StoreAddress:
    """Return the address that a worker opens a store by."""
    return StoreAddress(store.url, store.options)


def task_of(
    path: str, *, source: ObjectStore, root: ObjectStore, scratch: Path, attempt: str = "a-1"
) -> CollectTask:
    """Return the task of collecting one WARC with default options."""
    return CollectTask(
        path=path,
        size_bytes=None,
        sources=(address(source),),
        root=address(root),
        scratch=str(scratch),
        options=CollectOptions(),
        attempt=attempt,
        now=NOW,
        skip={},
    )


def collect_here(
    path: str,
    *,
    source: ObjectStore,
    root: ObjectStore,
    scratch: Path,
    options: CollectOptions | None = None,
    skip: Mapping[int, str] | None = None,
    now: datetime = NOW,
) -> Collected:
    """Collect one WARC in this process."""
    scratch.mkdir(parents=True, exist_ok=True)
    task = task_of(path, source=source, root=root, scratch=scratch)
    return collect_warc(
        replace(task, options=options or CollectOptions(), skip=skip or {}, now=now),
        source=source,
        root=root,
        scratch=scratch,
        progress=ProgressReporter(),
    )


def collect_all(
    paths: Sequence[str],
    *,
    source: ObjectStore,
    root: ObjectStore,
    options: CollectOptions | None = None,
) -> CollectReport:
    """Collect WARCs in worker processes."""
    return collect_warcs(
        [WarcSource(path, (source,)) for path in paths],
        root=root,
        options=options or CollectOptions(workers=2),
        now=NOW,
        attempt="a-2",
    )


def stored_paths(store: ObjectStore) -> set[str]:
    """Return every path under the root."""
    return {info.path for info in store.list()}
