"""A web host as a store: read-only, polite, resumable."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic

import pytest

from news_platform.errors import ConfigError, StorageError
from news_platform.storage.objects.backends import backoff_seconds
from news_platform.storage.objects.store import NotFound, ObjectStore, StoreOptions, open_store
from news_platform_tests.emulators.relay import Answer, Request, serve

BODY = bytes(range(256)) * 10_000


@dataclass(slots=True)
class Archive:
    """A web server with one file; each entry of `troubles` is a fault for one request."""

    troubles: list[str] = field(default_factory=list)
    asked: list[Request] = field(default_factory=list)
    asked_at: list[float] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        self.asked.append(request)
        self.asked_at.append(monotonic())
        trouble = self.troubles.pop(0) if self.troubles else ""
        if trouble == "503":
            return Answer(503, {}, b"slow down", 9)
        if request.path != "/crawl data/big.warc.gz".replace(" ", "%20"):
            return Answer(404, {}, b"", 0)
        return self._file(request, drop=trouble == "drop")

    def _file(self, request: Request, *, drop: bool) -> Answer:
        start, _, last = request.headers.get("range", "bytes=0-")[6:].partition("-")
        part = BODY[int(start) : int(last) + 1 if last else None]
        headers = {"etag": '"v1"', "last-modified": "Mon, 03 Nov 2025 20:00:00 GMT"}
        if "range" in request.headers:
            end = int(start) + len(part) - 1
            headers["content-range"] = f"bytes {start}-{end}/{len(BODY)}"
        body = part[: len(part) // 2] if drop else part
        return Answer(206 if "range" in request.headers else 200, headers, body, len(part))


@pytest.fixture
def archive() -> Iterator[tuple[Archive, ObjectStore]]:
    server = Archive()
    with serve(server) as url:
        options = StoreOptions(allow_http=True, backoff_seconds=0.2, retries=3)
        yield server, open_store(f"{url}/crawl%20data", options=options)


def test_a_file_is_read_with_its_size_and_tag(archive: tuple[Archive, ObjectStore]) -> None:
    _server, store = archive
    assert store.read("big.warc.gz") == BODY
    assert store.head("big.warc.gz").etag == '"v1"'
    assert store.read_range("big.warc.gz", 5, 2) == b"\x05\x06"
    with pytest.raises(NotFound):
        store.read("missing")


def test_a_dropped_download_is_resumed(archive: tuple[Archive, ObjectStore]) -> None:
    server, store = archive
    server.troubles = ["drop", "drop", "503"]
    with store.stream("big.warc.gz", expected_size=len(BODY)) as stream:
        assert stream.read() == BODY
    assert ["range" in request.headers for request in server.asked][1:] == [True] * 3


def test_503_is_answered_by_patience(archive: tuple[Archive, ObjectStore]) -> None:
    server, store = archive
    server.troubles = ["503", "503"]
    assert store.read("big.warc.gz") == BODY
    first, second, third = server.asked_at
    assert second - first >= 0.2
    assert third - second >= 0.2


def test_by_default_a_public_archive_is_asked_at_most_once_a_second() -> None:
    assert backoff_seconds("https://archive.example", StoreOptions()) == 1.0
    assert backoff_seconds("s3://bucket", StoreOptions()) == 0.1


def test_a_web_host_cannot_be_listed(archive: tuple[Archive, ObjectStore]) -> None:
    _server, store = archive
    with pytest.raises(StorageError, match=r"crawl data': a web address cannot be listed"):
        list(store.list())


def test_plain_http_is_refused_unless_allowed() -> None:
    with pytest.raises(ConfigError, match="expected a folder"):
        open_store("http://archive.example/")
