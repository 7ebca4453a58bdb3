"""The worker process: what it reports, and that waiting is never taken for a bad page."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from news_platform.ccnews.pool import CollectTask, WarcProgress
from news_platform.ccnews.warc import WarcResponse, iter_responses
from news_platform.ccnews.worker import ProgressReporter, collect_task, collect_warc
from news_platform.errors import InputError, StorageError
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform_tests.ccnews.archive import stream
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


def test_each_record_is_reported_and_reading_and_publishing_are_waits(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    sent: list[WarcProgress] = []
    collect_warc(
        task_of(PATH, source=crawl, root=local_store, scratch=tmp_path),
        source=crawl,
        root=local_store,
        scratch=tmp_path,
        progress=ProgressReporter(send=sent.append),
    )
    # The end of the file is read before the last record is yielded.
    assert [(one.number, one.rows) for one in sent] == [
        (0, 0),
        (1, 1),
        (None, 1),
        (2, 2),
        (None, 2),
    ]


def test_heartbeats_are_sent_while_waiting_and_not_while_a_record_is_in_work(
    crawl: ObjectStore,
) -> None:
    sent: list[WarcProgress] = []
    beat = threading.Event()

    def send(progress: WarcProgress) -> None:
        sent.append(progress)
        beat.set()

    progress = ProgressReporter(send=send)
    with progress.heartbeat():
        assert beat.wait(60)
    assert sent[0] == WarcProgress(None, 0, 0)
    (response, *_) = iter_responses(
        crawl.stream(PATH), warc_name="w.warc.gz", max_body_bytes=1 << 20
    )
    assert isinstance(response, WarcResponse)
    sent.clear()
    progress.begin_record(response, 7)
    progress.begin_wait()
    progress.begin_wait()
    assert [(one.number, one.rows) for one in sent] == [(0, 7), (None, 7)]


def test_a_wrapped_stream_gives_the_same_bytes() -> None:
    wrapped = ProgressReporter().wrap(stream(b"abc"))
    assert wrapped.read(2) + wrapped.read() == b"abc"


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


def test_the_scratch_folder_is_left_empty(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    collect_task(_task((crawl,), local_store, scratch))
    assert list(scratch.iterdir()) == []
