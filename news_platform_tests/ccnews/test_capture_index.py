"""The index of a day: merged runs, lookups equal to a scan, two range reads per file."""

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from news_platform.ccnews.capture_index import CaptureFiles, CaptureQuery, Match, build_index
from news_platform.ccnews.captures import surt_key, write_sorted
from news_platform.ccnews.cdxj import parse_stamp
from news_platform.datasets.captures import CAPTURE_INDEX, CAPTURES, run_key
from news_platform.datasets.raw_news import side_path
from news_platform.errors import StorageError
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import stale_units
from news_platform.web.urls import registrable_domain, url_host
from news_platform_tests.emulators.fault_proxy import FaultProxy
from news_platform_tests.takedowns.asked import ask, served

DAY = date(2025, 11, 1)
SITES = ("harbour.example", "www.harbour.example", "a.harbour.example", "harbour-x.example")


def drawn(count: int, *, seed: int = 1, day: date = DAY, warc: str = "a.warc.gz") -> pl.DataFrame:
    """Return captures of many sites, four of which have similar names."""
    chance = random.Random(seed)
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    hosts = [*SITES, "harbour.example:8080", *(f"s{n}.example.com" for n in range(count // 40))]
    rows = []
    for number in range(count):
        path = f"{chance.choice('abc')}/{chance.randrange(10**6)}"
        url = f"https://{chance.choice(hosts)}/{path}{chance.choice(['', '/', '?x=1'])}"
        host = url_host(url)
        rows.append(
            {
                "url_surtkey": surt_key(url),
                "url": url,
                "url_host_name": host,
                "url_host_registered_domain": registrable_domain(host),
                "fetch_time": start + timedelta(seconds=chance.randrange(86_400)),
                "fetch_status": 200,
                "content_digest": "".join(chance.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=32)),
                "content_mime_type": "text/html",
                "content_mime_detected": None,
                "content_languages": None,
                "warc_filename": f"crawl-data/CC-NEWS/2025/11/{warc}",
                "warc_record_offset": number * 1000,
                "warc_record_length": 1000,
                "warc_segment": "2025/11",
                "crawl": "CC-NEWS-2025-11",
                "subset": "warc",
            }
        )
    return pl.DataFrame(rows, schema=CAPTURES.schema, orient="row")


def write_run(store: ObjectStore, rows: pl.DataFrame, folder: Path, *, warc: str) -> None:
    """Store captures as the run of a WARC that was indexed alone."""
    write_sorted(rows, folder / "run", level=1)
    store.put(side_path(CAPTURES, DAY, warc), folder / "run")
    write_marker(store, CAPTURES.name, run_key(DAY, warc), inputs="0123456789abcdef-0", report={})


@pytest.fixture
def rows() -> pl.DataFrame:
    return drawn(6_000)


@pytest.fixture
def root(local_store: ObjectStore, rows: pl.DataFrame, tmp_path: Path) -> ObjectStore:
    write_run(local_store, rows.gather_every(2), tmp_path, warc="a.warc.gz")
    write_run(local_store, rows.gather_every(2, 1), tmp_path, warc="b.warc.gz")
    assert build_index(local_store, str(DAY)) == rows.height
    return local_store


def found(store: ObjectStore, query: CaptureQuery) -> set[tuple[str, datetime]]:
    frames = list(CaptureFiles(store).iter_days(query))
    assert all(frame["url_surtkey"].is_sorted() for frame in frames)
    return {
        (row["url"], row["fetch_time"]) for frame in frames for row in frame.iter_rows(named=True)
    }


@pytest.mark.parametrize(
    ("asked", "match", "test"),
    [
        ("harbour.example", "domain", pl.col("url_host_registered_domain") == "harbour.example"),
        ("https://a.harbour.example/", "host", pl.col("url_host_name") == "a.harbour.example"),
        ("s7.example.com/a/", "prefix", pl.col("url").str.contains("//s7.example.com/a/")),
        ("*.s7.example.com", None, pl.col("url_host_name") == "s7.example.com"),
        ("s7.example.com/b/*", None, pl.col("url").str.contains("//s7.example.com/b/")),
    ],
)
def test_a_lookup_finds_what_a_scan_finds(
    root: ObjectStore, rows: pl.DataFrame, asked: str, match: Match | None, test: pl.Expr
) -> None:
    expected = set(rows.filter(test).select("url", "fetch_time").iter_rows())
    assert found(root, CaptureQuery.parse(asked, match)) == expected
    assert expected


def test_one_address_in_any_spelling_and_a_span_of_time(
    root: ObjectStore, rows: pl.DataFrame
) -> None:
    row = rows.row(17, named=True)
    key = (row["url"], row["fetch_time"])
    spelled = row["url"].replace("https://", "HTTP://")
    assert key in found(root, CaptureQuery.parse(spelled))
    stamp = f"{row['fetch_time']:%Y%m%d%H%M%S}"
    inside = CaptureQuery.parse(
        row["url"], None, parse_stamp(stamp), parse_stamp(stamp, is_end=True)
    )
    assert key in found(root, inside)
    later = CaptureQuery.parse(row["url"], None, row["fetch_time"] + timedelta(seconds=1))
    assert key not in found(root, later)


def test_a_late_run_makes_the_day_stale_and_is_found_before_it_is_merged(
    root: ObjectStore, tmp_path: Path
) -> None:
    assert stale_units(root, CAPTURE_INDEX) == {}
    write_run(root, drawn(50, seed=2, warc="c.warc.gz"), tmp_path, warc="c.warc.gz")
    assert stale_units(root, CAPTURE_INDEX).keys() == {str(DAY)}
    assert build_index(root, str(DAY)) == 6_050
    before = root.read(CAPTURE_INDEX.place.path(date=str(DAY)))
    assert build_index(root, str(DAY)) == 6_050
    assert root.read(CAPTURE_INDEX.place.path(date=str(DAY))) == before
    root.delete([CAPTURE_INDEX.place.path(date=str(DAY))])
    assert found(root, CaptureQuery.parse("*.harbour.example"))


def test_a_damaged_index_names_its_file_and_the_cure(root: ObjectStore) -> None:
    path = CAPTURE_INDEX.place.path(date=str(DAY))
    for body in (b"", b"garbage", root.read(path)[:-9], b"x" * 300_000):
        root.put(path, body)
        with pytest.raises(StorageError, match="captures build --days 2025-11-01"):
            found(root, CaptureQuery.parse("*.harbour.example"))
    assert build_index(root, str(DAY)) == 6_000
    assert found(root, CaptureQuery.parse("*.harbour.example"))


def test_a_damaged_run_is_named_and_the_old_index_stays(root: ObjectStore) -> None:
    before = root.read(CAPTURE_INDEX.place.path(date=str(DAY)))
    root.put(side_path(CAPTURES, DAY, "b.warc.gz"), b"garbage")
    with pytest.raises(StorageError, match=r"b\.warc\.gz"):
        build_index(root, str(DAY))
    assert root.read(CAPTURE_INDEX.place.path(date=str(DAY))) == before


def test_a_year_of_a_domain_takes_two_range_reads_per_day(
    s3_store: ObjectStore, s3_faults: tuple[FaultProxy, str], tmp_path: Path
) -> None:
    days = [DAY + timedelta(days=number) for number in range(12)]
    for number, day in enumerate(days):
        write_sorted(drawn(40_000, seed=number, day=day), tmp_path / "index", level=3)
        s3_store.put(CAPTURE_INDEX.place.path(date=str(day)), tmp_path / "index")
    files, query = CaptureFiles(s3_store), CaptureQuery.parse("*.s77.example.com")
    proxy = s3_faults[0]
    before = len(proxy.seen)
    rows = list(files.iter_days(query, files.days(query)))
    reads = [one for one in proxy.seen[before:] if "capture_index/date" in one.target]
    assert {one.method for one in reads} == {"GET"}
    assert len(rows) == len(days) and all(0 < len(frame) <= 100 for frame in rows)
    assert len(reads) == 2 * len(days)


def test_a_takedown_leaves_nothing_in_the_runs_and_the_index(
    root: ObjectStore, rows: pl.DataFrame
) -> None:
    ask(root, "domain", "harbour.example")
    # Before it is served, no reader shows it.
    assert found(root, CaptureQuery.parse("*.harbour.example")) == set()
    served(root)
    lost = rows.filter(url_host_registered_domain="harbour.example").height
    for dataset in (CAPTURES, CAPTURE_INDEX):
        left = ParquetEngine(root, dataset).scan().collect()
        assert left.height == rows.height - lost
        assert not left["url"].str.contains("harbour.example", literal=True).any()
    # The index is still sorted, with the statistics that lookups need, and nothing is stale.
    assert found(root, CaptureQuery.parse("*.s7.example.com"))
    assert stale_units(root, CAPTURE_INDEX) == {}
