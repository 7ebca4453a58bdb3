"""The verification: what it reads, what it takes for stored, and what for a mere mention."""

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import tarfile
import zipfile
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from news_platform.rss.ledger.tables import METADATA
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.verify import VerificationReport, verify_objects
from news_platform.web.urls import url_hash
from news_platform_tests.takedowns.asked import asked

PAGE = "harbour.example/news/one"
URL = f"https://{PAGE}"
OWNED = "articles/full_text/ab/cd.txt.gz"
LINK = f'<a href="{URL}">'
NEWS = "news/raw/year=2025/month=11/day=01/main_lang=en/filename=a/part-0.parquet"
PROD = "prod/country=de/category=news/date=2025-11-01"
ARTICLES = "articles/date=2025-11-01/part-0.parquet"


def _parquet(metadata: dict[str, str] | None = None, **columns: Any) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(columns).write_parquet(file, metadata=metadata)
    return file.getvalue()


def _zip(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return file.getvalue()


def _tar(name: str, body: bytes) -> bytes:
    file, member = io.BytesIO(), tarfile.TarInfo(name)
    member.size = len(body)
    with tarfile.open(fileobj=file, mode="w") as tape:
        tape.addfile(member, io.BytesIO(body))
    return file.getvalue()


def _zstd(body: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(body, asbytes=True))


def _database(table: str, column: str, value: object) -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"create table {table} (id integer, {column})")
        database.execute(f"insert into {table} values (1, ?)", [value])
        database.commit()
        return database.serialize()


def _line(uri: str, text: str = "") -> bytes:
    domain = uri.split("/")[2]
    return json.dumps({"domain": domain, "uri": uri, "tree": text}, separators=(",", ":")).encode()


def _xlsx(header: str, cell: str) -> bytes:
    texts = {"A1": header, "A2": cell}
    cells = (f'<c r="{at}" t="inlineStr"><is><t>{one}</t></is></c>' for at, one in texts.items())
    return _zip(**{"xl/worksheets/sheet1.xml": "".join(cells).encode()})


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
    **{
        f"{name}.parquet": file
        for name, file in {
            "nested": _parquet(a=[[{"b": {"c": [URL]}}]]),
            "binary": _parquet(a=[URL.encode()]),
            "packed": _parquet(a=[gzip.compress(URL.encode())]),
            "category": _parquet(a=pl.Series([URL], dtype=pl.Categorical)),
            "metadata": _parquet(metadata={"source": URL}, a=[1]),
            "canonical": _parquet(canonical_url=[URL]),
        }.items()
    },
    "alerts/a/feed.xml": f"<item><link>https://www.{PAGE}?a=1&amp;b=2</link></item>".encode(),
    "export.csv": f"1,https://{PAGE},2025-11-01\n".encode(),
    "lines.log": f"GET https://u:p@HARBOUR.example:443/news//one 200 {'x' * 99}".encode(),
    "wide.txt": URL.encode("utf-16"),
    "escaped.json": json.dumps({"a": URL.replace("one", "\u00f6ne")}).encode(),
    "search/day=2025-11-01/1/notes.csv": URL.encode(),
    "no_suffix": gzip.compress(URL.encode()),
    "twice": gzip.compress(bz2.compress(URL.encode())),
    "x.tar.gz": gzip.compress(_tar("a/b.txt", URL.encode())),
    "x.xz": lzma.compress(URL.encode()),
    "archive": _zip(**{"deep.zip": _zip(**{"a.parquet": _parquet(a=[URL])})}),
    "links.xlsx": _zip(**{"xl/worksheets/_rels/sheet1.xml.rels": f'Target="{URL}"'.encode()}),
    "shared.xlsx": _zip(**{"xl/sharedStrings.xml": f"<si><t>{URL}</t></si>".encode()}),
    "copy.db": _database("raw", "article_url", URL),
    "backup.zip": _zip(**{"ledger.sqlite": _database("raw", "article_url", URL)}),
    "dagster.db": _database("kvs", "value", zlib.compress(f"cursor {URL}".encode())),
    "name#1": URL.encode(),
    "articles/pages/ab/cd.html.zst": _zstd(LINK.encode()),
}
MENTIONED = {
    NEWS: _parquet(uri=["https://o.example/"], tree=[LINK]),
    ARTICLES: _parquet(out_links=[[URL]], clean_text=[f"see {URL}"]),
    "domain_store/data/1/0/part-1.jsonl.gz": gzip.compress(
        _line("https://o.example/", LINK) + b"\n"
    ),
    OWNED: gzip.compress(LINK.encode()),
    "copy.db": _database("raw", "clean_text", LINK),
    ".dagster/history/runs/index.db": _database("event_logs", "event", f'{{"domain": "{PAGE}"}}'),
    "raw/country=de/category=news/date=2025-11-01/raw_0001.json": json.dumps({"url": URL}).encode(),
    f"{PROD}/o.example/sitemap.xml": f"<loc>{URL}</loc>".encode(),
    "article_sheets/articles.xlsx": _xlsx("feed_url", URL),
    "takedowns/requests/1.json": json.dumps({"values": [URL]}).encode(),
}


def _verified(store: ObjectStore, *asked_for: str) -> VerificationReport:
    requests = [asked(*(asked_for or ("url", URL))), asked("url", f"https://{PAGE}?a=1&b=2")]
    requests.append(asked("url", URL.replace("one", "\u00f6ne")))
    report = VerificationReport(
        Takedowns.of(requests), tables=METADATA.tables, owned=frozenset([OWNED])
    )
    verify_objects(store, report)
    return report


@pytest.mark.parametrize("path", STORED)
def test_what_is_stored_of_the_page_is_found(local_store: ObjectStore, path: str) -> None:
    _write(local_store, path, STORED[path])
    found = _verified(local_store)
    assert [one.place.split(" ")[0] for one in found.findings] == [path] and not found.is_clean
    assert (found.files, found.bytes_read) == (1, len(STORED[path]))


@pytest.mark.parametrize("path", MENTIONED)
def test_what_mentions_the_page_is_listed_and_does_not_fail(
    local_store: ObjectStore, path: str
) -> None:
    _write(local_store, path, MENTIONED[path])
    found = _verified(local_store)
    assert found.is_clean and {place.split(" ")[0] for place in found.mentioned} == {path}


UNREADABLE = {
    "truncated.parquet": STORED["unknown.parquet"][:-9],
    "empty.parquet": b"PAR1",
    "bad.zip": STORED["archive"][:40],
    "flipped.zip": STORED["archive"][:60] + b"\0\0" + STORED["archive"][62:],
    "short.gz": STORED["no_suffix"][:-6],
    "bad.zst": STORED["articles/pages/ab/cd.html.zst"][:9],
    "bad.xz": STORED["x.xz"][:-9],
    "bad.db": STORED["copy.db"][:4100],
    "header.db": b"SQLite format 3\0",
}


@pytest.mark.parametrize("path", UNREADABLE)
def test_what_cannot_be_read_is_listed_and_the_rest_is_read(
    local_store: ObjectStore, path: str
) -> None:
    _write(local_store, path, UNREADABLE[path])
    _write(local_store, "z.log", URL.encode())
    _write(local_store, "empty.sqlite", b"")
    found = _verified(local_store)
    assert found.unreadable.keys() == {path} and [one.place for one in found.findings] == ["z.log"]


def _write(store: ObjectStore, path: str, body: bytes) -> None:
    """Write a file as anybody may: a store would refuse some names."""
    assert store.local_folder is not None
    file = store.local_folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(body)


@pytest.mark.parametrize("path", ["logs/run.log", NEWS])
def test_another_page_that_begins_alike_is_not_found(local_store: ObjectStore, path: str) -> None:
    other = f"{URL}-more"
    local_store.put(path, other.encode() if path.endswith("log") else _parquet(uri=[other]))
    found = _verified(local_store)
    assert found.is_clean and not found.mentioned


def test_the_folder_of_a_domain_is_found(local_store: ObjectStore) -> None:
    local_store.put(f"{PROD}/harbour.example/robots.txt", b"")
    assert len(_verified(local_store, "domain", "harbour.example").findings) == 1
    assert _verified(local_store).findings == ()


def test_what_a_killed_writer_left_is_read(local_store: ObjectStore) -> None:
    _write(local_store, ".incoming/1.part", _parquet(uri=[URL]))
    assert [one.place for one in _verified(local_store).findings] == [".incoming/1.part"]


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
