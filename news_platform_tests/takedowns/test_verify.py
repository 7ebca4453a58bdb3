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
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.verify import VerificationReport, verify_objects
from news_platform.web.urls import url_hash
from news_platform_tests.takedowns.asked import asked

URL = "https://harbour.example/news/one"
LINK = f'<a href="{URL}">'
NEWS = "news/raw/year=2025/month=11/day=01/main_lang=en/filename=a/part-0.parquet"
PROD = "prod/country=de/category=news/date=2025-11-01"
ARTICLES = "articles/date=2025-11-01/part-0.parquet"


def _parquet(**columns: list[object]) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(columns).write_parquet(file)
    return file.getvalue()


def _line(uri: str, text: str = "") -> bytes:
    domain = uri.split("/")[2]
    return json.dumps({"domain": domain, "uri": uri, "tree": text}, separators=(",", ":")).encode()


def _xlsx(header: str, cell: str) -> bytes:
    file, texts = io.BytesIO(), {"A1": header, "A2": cell}
    cells = (f'<c r="{at}" t="inlineStr"><is><t>{one}</t></is></c>' for at, one in texts.items())
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", "".join(cells))
    return file.getvalue()


STORED = {
    NEWS: _parquet(uri=[f"{URL}?utm_source=x"], text=["a"]),
    NEWS.replace("main_lang=en/", "").replace("raw", "feed_candidates"): _parquet(feed_url=[URL]),
    ARTICLES: _parquet(url_hash=[url_hash(URL)]),
    "crawl_articles/_delta_log/0.json": json.dumps({"add": {"stats": f'{{"a":"{URL}"}}'}}).encode(),
    "crawl_articles/_delta_log/1.checkpoint.parquet": _parquet(add=[{"stats": URL}]),
    "domain_store/data/1/0/part-1.jsonl.gz": gzip.compress(_line(URL) + b"\n"),
    "domain_store/manifests/1/CURRENT": json.dumps({"sparse": [URL]}).encode(),
    f"articles/full_text/ab/{url_hash(URL)}.txt.gz": gzip.compress(b"text"),
    "samples/source_records/x.json": json.dumps([{"provenance": {"url": URL}}]).encode(),
    "snapshots/institution=x/a.json": json.dumps(
        {"data": {"metadata": {"sourceURL": URL}}}
    ).encode(),
    "article_sheets/articles.xlsx": _xlsx("article_url", URL),
    "quarantine/research/x.jsonl": json.dumps({"url": URL}).encode() + b"\n",
    "markers/x/all@1.json": json.dumps({"slowest": [[URL, 1]]}).replace("/", "\\/").encode(),
    "logs/run.log": f"cannot read {URL}.".encode(),
    "unknown.parquet": _parquet(note=[f"see {URL}"]),
}
MENTIONED = {
    NEWS: _parquet(uri=["https://o.example/"], tree=[LINK]),
    ARTICLES: _parquet(out_links=[[URL]], clean_text=[f"see {URL}"]),
    "domain_store/data/1/0/part-1.jsonl.gz": gzip.compress(
        _line("https://o.example/", LINK) + b"\n"
    ),
    "articles/full_text/ab/cd.txt.gz": gzip.compress(LINK.encode()),
    "raw/country=de/category=news/date=2025-11-01/raw_0001.json": json.dumps({"url": URL}).encode(),
    f"{PROD}/o.example/sitemap.xml": f"<loc>{URL}</loc>".encode(),
    "article_sheets/articles.xlsx": _xlsx("feed_url", URL),
    "takedowns/requests/1.json": json.dumps({"values": [URL]}).encode(),
}


def _verified(store: ObjectStore, *asked_for: str) -> VerificationReport:
    report = VerificationReport(Takedowns.of([asked(*(asked_for or ("url", URL)))]))
    verify_objects(store, report)
    return report


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


@pytest.mark.parametrize("path", ["logs/run.log", NEWS])
def test_another_page_that_begins_alike_is_not_found(local_store: ObjectStore, path: str) -> None:
    other = f"{URL}-more"
    local_store.put(path, other.encode() if path.endswith("log") else _parquet(uri=[other]))
    found = _verified(local_store)
    assert found.findings == () and not found.mentioned


def test_the_folder_of_a_domain_is_found(local_store: ObjectStore) -> None:
    local_store.put(f"{PROD}/harbour.example/robots.txt", b"")
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
    (found,) = _verified(local_store).findings
    assert found.place == "ledger.sqlite: space that no row uses"
    with sqlite3.connect(file) as database:
        database.execute("vacuum")
    local_store.put("ledger.sqlite", file.read_bytes())
    assert _verified(local_store).findings == ()
