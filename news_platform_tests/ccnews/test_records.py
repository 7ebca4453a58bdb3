"""Records by byte range, CDXJ clusters and web archives: all from a small crawl."""

import gzip
import json
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from news_platform.ccnews.capture_index import CaptureFiles, CaptureQuery, build_index
from news_platform.ccnews.cdxj import parse_stamp, write_cluster
from news_platform.ccnews.records import Capture, find_capture, iter_pages, read_record
from news_platform.ccnews.wacz import write_wacz
from news_platform.errors import FetchError, InputError, StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.ccnews.archive import Record, article, gzipped, http
from news_platform_tests.ccnews.crawl import (
    DAY,
    NOW,
    collect_here,
    mixed_pages,
    warc_path,
    write_crawl,
)
from news_platform_tests.takedowns.asked import ask

NEXT = date(2025, 11, 2)
PATHS = (warc_path(DAY), warc_path(NEXT))
URL = "https://www.harbour.example/news/one"
FIRST, SECOND = article("The bridge is open."), article("The bridge is closed again.")
RECORDS = {
    PATHS[0]: [
        *mixed_pages(3),
        Record(http(gzip.compress(FIRST.encode()), "Content-Encoding: gzip"), uri=URL),
        Record(http("moved", status="301 Moved"), uri=URL),
    ],
    PATHS[1]: [
        Record(http(SECOND), uri=URL, at="2025-11-02T03:00:00Z"),
        Record(b"HTTP/1.1 200 OK\r\n\r\n", "revisit", uri=URL, at="2025-11-02T04:00:00Z"),
    ],
}


@pytest.fixture
def crawl(tmp_path: Path) -> ObjectStore:
    return write_crawl(tmp_path / "crawl", RECORDS)


@pytest.fixture
def root(crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path) -> ObjectStore:
    for path in PATHS:
        collect_here(path, source=crawl, root=local_store, scratch=tmp_path / "s")
    for day in (DAY, NEXT):
        assert build_index(local_store, str(day))
    return local_store


def _rows(root: ObjectStore, url: str) -> list[Capture]:
    found = CaptureFiles(root).iter_days(CaptureQuery.parse(url))
    return [row for frame in found for row in frame.iter_rows(named=True)]


def test_a_page_is_read_by_its_range_as_it_was_archived(
    root: ObjectStore, crawl: ObjectStore
) -> None:
    newest = find_capture(root, URL)
    assert newest is not None and newest["date"] == str(NEXT)
    assert read_record(newest, crawl=[crawl], root=root).html == SECOND
    older = find_capture(root, "http://harbour.example/news/one", datetime(2025, 10, 1, tzinfo=UTC))
    assert older is not None and older["date"] == str(DAY)
    record = read_record(older, crawl=[crawl], root=root)
    assert (record.html, record.is_verified) == (FIRST, True)
    assert record.stored == gzipped([RECORDS[PATHS[0]][3]])
    assert find_capture(root, "https://nowhere.example/") is None


def test_all_captures_of_the_crawl_return_their_record(
    root: ObjectStore, crawl: ObjectStore
) -> None:
    rows = [row for url in ("*.example", "*.example.com") for row in _rows(root, url)]
    assert len(rows) == 7
    for row in rows:
        assert read_record(row, crawl=[crawl], root=root).response.record.uri == row["url"]


@pytest.mark.parametrize("damage", ["other", "cut", "gone", "moved"])
def test_what_is_not_the_indexed_record_is_refused(
    damage: str, root: ObjectStore, crawl: ObjectStore
) -> None:
    row = find_capture(root, URL)
    assert row is not None
    body = crawl.read(PATHS[1])
    changed = {
        "other": gzipped([Record(http(FIRST), uri=URL)]),
        "cut": body[:200],
        "moved": b"x" + body,
    }
    if damage == "gone":
        crawl.delete([PATHS[1]])
    else:
        crawl.put(PATHS[1], changed[damage])
    with pytest.raises(StorageError, match="CC-NEWS-20251102"):
        read_record(row, crawl=[crawl], root=root)


def test_a_second_source_helps_and_what_is_taken_down_is_not_fetched(
    root: ObjectStore, crawl: ObjectStore, tmp_path: Path
) -> None:
    row = find_capture(root, URL)
    assert row is not None
    empty = write_crawl(tmp_path / "empty", {})
    assert read_record(row, crawl=[empty, crawl], root=root).html == SECOND
    # From where it was collected, if the crawl does not have it.
    assert read_record(row, crawl=[empty], root=root).html == SECOND
    ask(root, "url", URL)
    with pytest.raises(FetchError, match="taken down"):
        read_record(row, crawl=[crawl], root=root)
    assert find_capture(root, URL) is None


def test_pages_that_are_only_indexed_are_read_as_rows(
    root: ObjectStore, crawl: ObjectStore
) -> None:
    rows = list(iter_pages(_rows(root, URL), crawl=[crawl], root=root))
    assert [row["tree"] for row in rows if row["fetch_status"] == 200] == [FIRST, SECOND]
    assert {row["domain"] for row in rows} == {"harbour.example"}


def test_a_cluster_has_every_capture_in_the_order_of_its_lines(
    root: ObjectStore, tmp_path: Path
) -> None:
    report = write_cluster(CaptureFiles(root), [str(DAY), str(NEXT)], tmp_path / "cdx")
    assert (report.days, report.captures, report.blocks) == (2, 7, 1)
    lines = gzip.decompress((tmp_path / "cdx" / "cdx-00000.gz").read_bytes()).decode().splitlines()
    assert len(lines) == 7
    assert [line.split(" ", 2)[:2] for line in lines] == sorted(
        line.split(" ", 2)[:2] for line in lines
    )
    fields = json.loads(next(line for line in lines if "harbour" in line).split(" ", 2)[2])
    assert fields["filename"].startswith("crawl-data/CC-NEWS/2025/11/")
    first = (tmp_path / "cdx" / "cluster.idx").read_text().split("\t")
    assert first[:3] == [" ".join(lines[0].split(" ", 2)[:2]), "cdx-00000.gz", "0"]
    assert (tmp_path / "cdx" / "cluster.loc").read_text() == "cdx-00000.gz\tcdx-00000.gz\n"
    before = {path.name: path.read_bytes() for path in (tmp_path / "cdx").iterdir()}
    write_cluster(CaptureFiles(root), [str(DAY), str(NEXT)], tmp_path / "cdx")
    assert {path.name: path.read_bytes() for path in (tmp_path / "cdx").iterdir()} == before
    ask(root, "domain", "harbour.example")
    assert write_cluster(CaptureFiles(root), [str(DAY)], tmp_path / "cdx").captures == 3
    assert b"harbour" not in gzip.decompress((tmp_path / "cdx" / "cdx-00000.gz").read_bytes())


def test_a_web_archive_holds_the_records_byte_by_byte_and_is_valid(
    root: ObjectStore, crawl: ObjectStore, tmp_path: Path
) -> None:
    target = tmp_path / "x.wacz"
    given = {"crawl": [crawl], "root": root, "title": "harbour", "now": NOW}
    report = write_wacz(_rows(root, "*.harbour.example"), target, **given)  # type: ignore[arg-type]
    assert (report.records, report.pages, report.left_out) == (4, 2, 0)
    with zipfile.ZipFile(target) as package:
        copied = package.read("archive/selection.warc.gz")
        own = [one for path in PATHS for one in RECORDS[path] if one.uri == URL]
        parts = [gzipped([record]) for record in own]
        assert sum(map(len, parts)) == len(copied) and all(part in copied for part in parts)
    wacz = [str(Path(sys.executable).with_name("wacz")), "validate", "-f", str(target)]
    checked = subprocess.run(wacz, capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and "Validation succeeded" in checked.stdout, checked.stdout
    first = target.read_bytes()
    write_wacz(_rows(root, "*.harbour.example"), target, **given)  # type: ignore[arg-type]
    assert target.read_bytes() == first
    with pytest.raises(InputError, match="no capture"):
        write_wacz([], target, **given)  # type: ignore[arg-type]
    assert target.read_bytes() == first and not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2025", "2025-01-01T00:00:00+00:00", "2025-12-31T23:59:59.999999+00:00"),
        ("202502", "2025-02-01T00:00:00+00:00", "2025-02-28T23:59:59.999999+00:00"),
        ("20251231", "2025-12-31T00:00:00+00:00", "2025-12-31T23:59:59.999999+00:00"),
        ("20251101004549", "2025-11-01T00:45:49+00:00", "2025-11-01T00:45:49.999999+00:00"),
    ],
)
def test_digits_are_the_first_or_the_last_moment(text: str, first: str, last: str) -> None:
    assert parse_stamp(text).isoformat() == first
    assert parse_stamp(text, is_end=True).isoformat() == last


@pytest.mark.parametrize("text", ["", "1", "20251", "20251301", "x025", "٢٠٢٥"])
def test_other_digits_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_stamp(text)


@pytest.mark.live
def test_pywb_serves_the_cluster_and_replays_its_pages(
    root: ObjectStore, crawl: ObjectStore, tmp_path: Path
) -> None:
    # Not a dependency: it pins an older redis than the cluster extra needs.
    python = tmp_path / "pywb" / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    for command in (
        [str(uv), "venv", "--quiet", str(tmp_path / "pywb")],
        [str(uv), "pip", "install", "--quiet", "--python", str(python), "pywb"],
    ):
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot install pywb: {done.stderr.decode()[-200:]}")
    write_cluster(CaptureFiles(root), [str(DAY), str(NEXT)], tmp_path / "cdx")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    (tmp_path / "config.yaml").write_text(
        "collections:\n  news:\n"
        f"    index_paths: {tmp_path}/cdx/cluster.idx\n    archive_paths: {crawl.local_folder}/\n"
    )
    words = [str(python.with_name("wayback")), "-p", str(port), "-b", "127.0.0.1"]
    log = (tmp_path / "log").open("wb")
    with log, subprocess.Popen(words, cwd=tmp_path, stdout=log, stderr=log) as server:
        try:
            site = f"http://127.0.0.1:{port}/news"
            listed = _get(f"{site}/cdx?url=*.harbour.example&output=json").decode().splitlines()
            assert len(listed) == 4
            assert _get(f"{site}/20251102030000id_/{URL}").decode() == SECOND
        finally:
            server.terminate()


def _get(url: str) -> bytes:
    for _ in range(100):
        try:
            with urllib.request.urlopen(url, timeout=20) as reply:
                body: bytes = reply.read()
                return body
        except ConnectionError:
            time.sleep(0.2)
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionError):
                raise
            time.sleep(0.2)
    raise AssertionError(f"no answer from {url}")
