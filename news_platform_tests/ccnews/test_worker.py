"""The worker's side: who is told what, and that waiting is never taken for a bad page."""

from pathlib import Path

import pytest

from news_platform.ccnews.gzip_members import ByteSource
from news_platform.ccnews.page import PageOptions
from news_platform.ccnews.warc import WarcResponse
from news_platform.ccnews.worker import (
    Attempt,
    CollectTask,
    StoreAddress,
    Watch,
    collect_task,
    collect_warc,
)
from news_platform.errors import InputError, StorageError
from news_platform.storage.objects.store import ObjectStore, StoreOptions
from news_platform_tests.ccnews.archive import stream
from news_platform_tests.ccnews.crawl import DAY, NOW, mixed_pages, warc_path, write_crawl

PATH = warc_path(DAY)


@pytest.fixture
def crawl(tmp_path: Path) -> ObjectStore:
    return write_crawl(tmp_path / "crawl", {PATH: mixed_pages(3)})


class Diary:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def watched(self, stream: ByteSource) -> ByteSource:
        return stream

    def tell_record(self, response: WarcResponse, rows: int) -> None:
        self.entries.append(f"record {response.record.number}, {rows} rows")

    def begin_wait(self) -> None:
        self.entries.append("wait")


def test_each_record_is_told_and_publishing_is_a_wait(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    diary = Diary()
    collect_warc(
        PATH,
        source=crawl,
        root=local_store,
        options=PageOptions(),
        attempt=Attempt("a", NOW, tmp_path, {}),
        watcher=diary,
    )
    assert diary.entries == [
        "record 0, 0 rows",
        "record 1, 1 rows",
        "record 2, 2 rows",
        "wait",
    ]


def test_a_watched_stream_gives_the_same_bytes() -> None:
    watch = Watch()
    with watch.beating():
        watched = watch.watched(stream(b"abc"))
        assert watched.read(2) + watched.read() == b"abc"


def _task(
    sources: tuple[StoreAddress, ...], root: ObjectStore, scratch: Path, **more: int
) -> CollectTask:
    return CollectTask(
        path=PATH,
        size_bytes=more.get("size_bytes"),
        sources=sources,
        root=StoreAddress(root.url, root.options),
        scratch=str(scratch),
        options=PageOptions(),
        attempt="a",
        now=NOW,
        skip={},
    )


def test_the_next_source_is_tried_only_when_one_cannot_be_read(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    here, nowhere = (
        StoreAddress(crawl.url, StoreOptions()),
        StoreAddress(str(tmp_path / "no"), StoreOptions()),
    )
    assert collect_task(_task((nowhere, here), local_store, tmp_path)).rows == 3
    with pytest.raises(StorageError):
        collect_task(_task((nowhere, nowhere), local_store, tmp_path))
    crawl.put(PATH, b"<html>not a WARC</html>")
    with pytest.raises(InputError, match="not a WARC"):
        collect_task(_task((here, nowhere), local_store, tmp_path))


def test_a_size_other_than_was_told_is_refused(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    here = StoreAddress(crawl.url, StoreOptions(backoff_seconds=0.01))
    size = crawl.head(PATH).size_bytes
    with pytest.raises(StorageError, match="bytes"):
        collect_task(_task((here,), local_store, tmp_path, size_bytes=size + 1))
    assert collect_task(_task((here,), local_store, tmp_path, size_bytes=size)).source_bytes == size


def test_the_scratch_folder_is_left_empty(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    collect_task(_task((StoreAddress(crawl.url, StoreOptions()),), local_store, scratch))
    assert list(scratch.iterdir()) == []
