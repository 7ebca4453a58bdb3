"""The worker process: what it reports, and that waiting is never taken for a bad page."""

from dataclasses import replace
from pathlib import Path

import pytest

from news_platform.ccnews.pool import (
    CollectTask,
    ProgressReporter,
    read_record_in_work,
)
from news_platform.ccnews.warc import WarcResponse
from news_platform.ccnews.worker import collect_task, collect_warc
from news_platform.errors import InputError, StorageError
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform_tests.ccnews.crawl import (
    DAY,
    address,
    mixed_pages,
    task_of,
    warc_path,
    write_crawl,
)

PATH = warc_path(DAY)


@pytest.fixture
def crawl(tmp_path: Path) -> ObjectStore:
    return write_crawl(tmp_path / "crawl", {PATH: mixed_pages(3)})


def test_the_record_in_work_is_in_a_file_and_reading_and_publishing_are_waits(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    path = tmp_path / "progress"
    seen: list[tuple[int | None, int | None]] = []

    class Watched(ProgressReporter):
        def begin_record(self, response: WarcResponse, rows: int) -> None:
            super().begin_record(response, rows)
            seen.append((read_record_in_work(path), rows))

        def begin_wait(self) -> None:
            super().begin_wait()
            seen.append((read_record_in_work(path), None))

    progress = Watched()
    with progress.heartbeat(path):
        collect_warc(
            task_of(PATH, source=crawl, root=local_store, scratch=tmp_path),
            source=crawl,
            root=local_store,
            scratch=tmp_path,
            progress=progress,
        )
    records = [(number, rows) for number, rows in seen if number is not None]
    assert records == [(0, 0), (1, 1), (2, 2)]
    assert seen[0] == seen[-1] == (None, None)


def _task(
    sources: tuple[ObjectStore, ...],
    root: ObjectStore,
    scratch: Path,
    *,
    size_bytes: int | None = None,
) -> CollectTask:
    task = task_of(PATH, source=sources[0], root=root, scratch=scratch)
    return replace(task, sources=tuple(map(address, sources)), size_bytes=size_bytes)


def test_the_next_source_is_tried_only_when_one_cannot_be_read(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    nowhere = open_store(str(tmp_path / "no"))
    assert collect_task(_task((nowhere, crawl), local_store, tmp_path)).rows == 3
    with pytest.raises(StorageError):
        collect_task(_task((nowhere, nowhere), local_store, tmp_path))
    crawl.put(PATH, b"<html>not a WARC</html>")
    with pytest.raises(InputError, match="not a WARC"):
        collect_task(_task((crawl, nowhere), local_store, tmp_path))


def test_a_size_other_than_was_told_is_refused(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    patient = open_store(crawl.url, options=StoreOptions(backoff_seconds=0.01))
    size = crawl.head(PATH).size_bytes
    with pytest.raises(StorageError, match="bytes"):
        collect_task(_task((patient,), local_store, tmp_path, size_bytes=size + 1))
    found = collect_task(_task((patient,), local_store, tmp_path, size_bytes=size))
    assert found.source_bytes == size
