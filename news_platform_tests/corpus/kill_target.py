"""The work of a process that a test kills: build, cluster or export a day, maintain the tables."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat
from multiprocessing.connection import Connection
from pathlib import Path

from deltalake import DeltaTable

from news_platform.corpus.crawl_pages import CorpusOptions
from news_platform.corpus.export.filtering import ExportSelection
from news_platform.corpus.export.pipeline import ExportOptions, export_corpus
from news_platform.corpus.export.publish import replacing_folder
from news_platform.corpus.pipeline import build_crawl_day, crawl_dataset
from news_platform.near_duplicates.pipeline import build_day
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform_tests.corpus.hostile import QUICK
from news_platform_tests.corpus.pages import DAY

OPTIONS = replace(CorpusOptions(workers=1), target=QUICK)
WINDOW = 14


def build(store: ObjectStore, scratch: str) -> None:
    """Extract and replace the day."""
    # Killed processes leave their scratch folders: they must not be those of the system.
    build_crawl_day(store, DAY, options=replace(OPTIONS, scratch=scratch))


def _write_version(store: ObjectStore) -> None:
    options = store.delta_options() or None
    table = DeltaTable(crawl_dataset(store).uri, storage_options=options)
    table.delete("domain = 'nobody.example'")


def optimize(store: ObjectStore, scratch: str) -> None:
    """Write a version without rows of nobody, and join the files."""
    _write_version(store)
    crawl_dataset(store).maintain(timedelta(days=7))


def vacuum(store: ObjectStore, scratch: str) -> None:
    """Delete all files that were replaced."""
    _write_version(store)
    crawl_dataset(store).maintain(timedelta(0))


def cluster(store: ObjectStore, scratch: str) -> None:
    """Cluster the articles of the day."""
    build_day(store, DAY, days=WINDOW, scratch=scratch)


def export(store: ObjectStore, scratch: str) -> None:
    """Export the day in the place of the last export."""
    with replacing_folder(Path(scratch) / "export") as folder:
        options = ExportOptions(scratch=scratch)
        export_corpus(store, folder, ExportSelection(days=(DAY,)), options)


WORKS: Mapping[str, Callable[[ObjectStore, str], None]] = {
    work.__name__: work for work in (build, optimize, vacuum, cluster, export)
}


def repeat_work(
    told: Connection, root: str, options: StoreOptions, *, scratch: str, work: str
) -> None:
    """Do the work again and again until the process is killed, with a word after each time."""
    store = open_store(root, options=options)
    for word in chain(["ready"], repeat("done")):
        told.send(word)
        WORKS[work](store, scratch)
