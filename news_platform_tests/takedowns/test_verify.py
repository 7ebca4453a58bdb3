"""The verification: what it reads, what it takes for stored, and what for a mere mention."""

import gzip
import io
import json
import sqlite3
import zipfile
from pathlib import Path

import polars as pl
import pytest

from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.evidence import StoredTraces
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.sqlite_pages import iter_free_space
from news_platform.takedowns.text_runs import RemovedTexts
from news_platform.takedowns.verify import VerifiedRoot, verify_store
from news_platform.web.urls import url_hash
from news_platform_tests.takedowns.asked import asked

URL = "https://harbour.example/news/one"
LINK = f'<a href="{URL}">'


def _parquet(**columns: list[object]) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(columns).write_parquet(file)
    return file.getvalue()


def _line(uri: str, text: str = "") -> bytes:
    domain = uri.split("/")[2]
    return json.dumps({"domain": domain, "uri": uri, "tree": text}, separators=(",", ":")).encode()


def _xlsx(cell: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", f'<c t="inlineStr"><is><t>{cell}</t></is></c>')
    return file.getvalue()


STORED = {
    "news/raw/part-0.parquet": _parquet(uri=[f"{URL}?utm_source=x"], text=["a"]),
    "news/feed_candidates/part-0.parquet": _parquet(feed_url=[URL]),
    "articles/date=2025-11-01/part-0.parquet": _parquet(url_hash=[url_hash(URL)]),
    "domain_store/data/1/0/part-1.jsonl.gz": gzip.compress(_line(URL) + b"\n"),
    f"articles/full_text/ab/{url_hash(URL)}.txt.gz": gzip.compress(b"text"),
    "samples/source_records/x.json": json.dumps([{"provenance": {"url": URL}}]).encode(),
    "snapshots/institution=x/a.json": json.dumps(
        {"data": {"metadata": {"sourceURL": URL}}}
    ).encode(),
    "article_sheets/articles.xlsx": _xlsx(URL),
    "quarantine/research/x.jsonl": json.dumps({"url": URL}).encode() + b"\n",
}
MENTIONED = {
    "news/raw/part-0.parquet": _parquet(uri=["https://o.example/"], tree=[LINK]),
    "domain_store/data/1/0/part-1.jsonl.gz": gzip.compress(
        _line("https://o.example/", LINK) + b"\n"
    ),
    "articles/full_text/ab/cd.txt.gz": gzip.compress(LINK.encode()),
    "raw/country=de/raw_0001.json": json.dumps({"url": URL}).encode(),
    "prod/country=de/o.example/sitemap.xml": f"<loc>{URL}</loc>".encode(),
    "article_sheets/articles.xlsx": _xlsx(f'["{URL}", "x"]'),
    "takedowns/requests/1.json": json.dumps({"values": [URL]}).encode(),
}


def _verified(store: ObjectStore, *asked_for: str) -> VerifiedRoot:
    return verify_store(store, Takedowns.of([asked(*(asked_for or ("url", URL)))]))


@pytest.mark.parametrize("path", STORED)
def test_what_is_stored_of_the_page_is_found(local_store: ObjectStore, path: str) -> None:
    local_store.put(path, STORED[path])
    found = _verified(local_store)
    assert [one.place.split(" ")[0] for one in found.findings] == [path]
    assert (found.files, found.bytes_read) == (1, len(STORED[path]))


@pytest.mark.parametrize("path", MENTIONED)
def test_what_mentions_the_page_is_listed_and_does_not_fail(
    local_store: ObjectStore, path: str
) -> None:
    local_store.put(path, MENTIONED[path])
    found = _verified(local_store)
    assert found.findings == () and found.mentioned.keys() == {path}


def test_another_page_that_begins_alike_is_not_found(local_store: ObjectStore) -> None:
    local_store.put("news/raw/part-0.parquet", _parquet(uri=[f"{URL}-more"]))
    assert _verified(local_store).findings == ()


def test_the_folder_of_a_domain_is_found(local_store: ObjectStore) -> None:
    local_store.put("prod/country=de/harbour.example/robots.txt", b"")
    assert len(_verified(local_store, "domain", "harbour.example").findings) == 1
    assert _verified(local_store).findings == ()


def test_what_a_killed_writer_left_is_read(local_store: ObjectStore) -> None:
    local_store.put("x", b"")
    assert local_store.local_folder is not None
    left = local_store.local_folder / ".incoming" / "1.part"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(_parquet(uri=[URL]))
    assert [one.place for one in _verified(local_store).findings] == [str(left)]


def test_deleted_rows_are_found_in_the_free_space_of_a_database(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    file = tmp_path / "x.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("pragma secure_delete = off")
        database.execute("create table t (url text)")
        rows = [(f"{URL if number == 50 else 'https://o.example/'}",) for number in range(100)]
        database.executemany("insert into t values (?)", rows)
    with sqlite3.connect(file) as database:
        database.execute("pragma secure_delete = off")  # which some systems set
        database.execute("delete from t where url = ?", [URL])
    local_store.put("ledger.sqlite", file.read_bytes())
    assert [one.what for one in _verified(local_store).findings] == [
        "'harbour.example/news/one' in space that no row uses"
    ]
    with sqlite3.connect(file) as database:
        database.execute("vacuum")
    local_store.put("ledger.sqlite", file.read_bytes())
    assert _verified(local_store).findings == ()


def test_free_pages_and_odd_files_end_quietly() -> None:
    assert list(iter_free_space(b"SQLite format 3\0" + b"\0" * 84)) == []
    assert list(iter_free_space(b"")) == []


def test_equal_text_under_another_address_is_a_copy_elsewhere(local_store: ObjectStore) -> None:
    other = "https://o.example/copy"
    body = _parquet(article_url_canon=[other], text_hash=["f00"])
    local_store.put("articles/date=2025-11-01/part-0.parquet", body)
    found = verify_store(
        local_store, Takedowns.of([asked("url", URL)]), texts=RemovedTexts(equal=frozenset(["f00"]))
    )
    assert found.findings == () and [one.url for one in found.copies] == [other]


def test_without_requests_nothing_is_read(local_store: ObjectStore) -> None:
    local_store.put("x", b"1")
    assert verify_store(local_store, Takedowns()).files == 0
    assert StoredTraces.of(Takedowns()).result().rows == 0
