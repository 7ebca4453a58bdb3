"""The run of a WARC: one capture per response and revisit, with or without the pages."""

import base64
import hashlib
import io
import json
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest
from warcio.indexer import Indexer

from news_platform.ccnews.capture_index import build_index, run_paths
from news_platform.ccnews.captures import capture_row, iso_639_3, parse_time, surt_key
from news_platform.ccnews.page import parse_head
from news_platform.ccnews.pipeline import WarcSource, collect_warcs, plan_index
from news_platform.ccnews.pool import CollectOptions
from news_platform.ccnews.records import _read_from
from news_platform.ccnews.warc import WarcResponse, iter_responses
from news_platform.datasets.captures import CAPTURE_INDEX, CAPTURES, crawl_fields
from news_platform.datasets.raw_news import side_path
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import read_table
from news_platform.storage.units import stale_units, unit_states
from news_platform_tests.ccnews.archive import Record, http
from news_platform_tests.ccnews.crawl import (
    DAY,
    NOW,
    collect_here,
    mixed_pages,
    warc_name,
    warc_path,
    write_crawl,
)

PATH, NAME = warc_path(DAY), warc_name(DAY)
INDEX_ONLY = CollectOptions(index_only=True)
OTHERS = [
    Record(http("%PDF-1.4", mime="application/pdf"), uri="https://www.a.example:8080/X?b=1&a=2"),
    Record(http("gone", status="404 Not Found"), uri="https://a.example/gone"),
    Record(b"HTTP/1.1 304 Not Modified\r\n\r\n", "revisit", uri="https://a.example/again"),
    Record(b"GET / HTTP/1.1\r\n\r\n", "request", uri="https://a.example/asked"),
    Record(b"no header", uri="https://b\u00fccher.example/odd"),
]


@pytest.fixture
def crawl(tmp_path: Path) -> ObjectStore:
    return write_crawl(tmp_path / "crawl", {PATH: [*mixed_pages(3), *OTHERS]})


def _run(root: ObjectStore) -> pl.DataFrame:
    return read_table(root, side_path(CAPTURES, DAY, NAME), CAPTURES).select(*CAPTURES.schema)


def test_every_response_and_revisit_has_a_capture(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    marker = collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "s")
    rows = _run(local_store)
    assert (marker.rows, marker.captures) == (4, 7)
    assert rows["url_surtkey"].is_sorted()
    found = {row["url"]: row for row in rows.iter_rows(named=True)}
    pdf = found["https://www.a.example:8080/X?b=1&a=2"]
    assert pdf["url_surtkey"] == "example,a:8080)/x?a=2&b=1"
    assert (pdf["url_host_name"], pdf["url_host_registered_domain"]) == (
        "www.a.example",
        "a.example",
    )
    assert (pdf["content_mime_type"], pdf["content_mime_detected"]) == ("application/pdf",) * 2
    assert pdf["content_languages"] is None
    digest = hashlib.sha1(b"%PDF-1.4", usedforsecurity=False).digest()
    assert pdf["content_digest"] == base64.b32encode(digest).decode()
    assert found["https://a.example/gone"]["fetch_status"] == 404
    revisit = found["https://a.example/again"]
    assert (revisit["content_mime_type"], revisit["fetch_status"]) == ("warc/revisit", 304)
    assert revisit["content_digest"] is None  # the record states "sha1:ABC", which is none
    odd = found["https://b\u00fccher.example/odd"]
    assert (odd["fetch_status"], odd["url_host_name"]) == (None, "xn--bcher-kva.example")
    page = found["https://news0.example.com/a/0"]
    assert page["content_languages"].startswith("eng,")
    assert page["fetch_time"] == datetime(2025, 11, 1, 1, 44, 44, tzinfo=UTC)
    shared = {name: page[name] for name in ("warc_filename", "warc_segment", "crawl", "subset")}
    assert shared == {
        "warc_filename": PATH,
        "warc_segment": "2025/11",
        "crawl": "CC-NEWS-2025-11",
        "subset": "warc",
    }


def test_captures_alone_are_the_same_but_for_the_languages(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    other = open_store(str(tmp_path / "other"))
    marker = collect_here(
        PATH, source=crawl, root=local_store, scratch=tmp_path / "1", options=INDEX_ONLY
    )
    collect_here(PATH, source=crawl, root=other, scratch=tmp_path / "2")
    assert (marker.rows, marker.captures) == (0, 7)
    languages = pl.lit(None, pl.String()).alias("content_languages")
    assert _run(local_store).equals(_run(other).with_columns(languages))
    stored = {info.path.partition("/")[0] for info in local_store.list()}
    assert stored == {"news", "markers"} and not list(local_store.list("news/raw"))


def test_an_indexed_warc_is_skipped_and_collecting_it_replaces_its_run(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    plan = plan_index(DAY, crawl=crawl, root=local_store)
    (report,) = collect_warcs(
        [WarcSource(warc.path, (crawl,)) for warc in plan.todo],
        root=local_store,
        options=INDEX_ONLY,
        now=NOW,
        attempt="a",
    ).collected
    assert report.captures == 7
    assert plan_index(DAY, crawl=crawl, root=local_store).todo == ()
    assert build_index(local_store, str(DAY)) == 7
    alone = unit_states(local_store, CAPTURES)
    assert stale_units(local_store, CAPTURE_INDEX) == {}
    collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "s")
    # The run has languages now, so the index of the day is merged again.
    assert unit_states(local_store, CAPTURES).keys() == alone.keys()
    assert stale_units(local_store, CAPTURE_INDEX).keys() == {str(DAY)}
    assert not list(local_store.list("markers/captures"))
    assert plan_index(DAY, crawl=crawl, root=local_store).todo == ()


def test_a_run_without_a_marker_is_being_written(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "s", options=INDEX_ONLY)
    local_store.put(side_path(CAPTURES, DAY, "other.warc.gz"), b"half a file")
    assert run_paths(local_store, str(DAY)) == [side_path(CAPTURES, DAY, NAME)]


def test_a_warc_whose_offsets_do_not_fit_is_refused(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("news_platform.ccnews.worker.MAX_OFFSET", 100)
    with pytest.raises(InputError, match="split it"):
        collect_here(PATH, source=crawl, root=local_store, scratch=tmp_path / "s")


def test_the_place_in_the_crawl_follows_from_where_the_warc_was_read() -> None:
    day = date(2025, 11, 1)
    listed = crawl_fields(day, f"https://data.example/{PATH}")
    assert listed["warc_filename"] == PATH
    assert crawl_fields(day, f"file:///home/me/{NAME}")["warc_filename"] == PATH


def test_keys_have_no_blanks_and_odd_times_are_none() -> None:
    assert surt_key("urn:some thing\n") == "urn:some%20thing"
    assert surt_key("HTTP://www.Example.org/A B?q=1#x") == "org,example)/a%20b?q=1"
    assert parse_time("2025-11-01") == datetime(2025, 11, 1, tzinfo=UTC)
    assert parse_time("yesterday") is None and parse_time(None) is None
    assert iso_639_3(["en", "de", "xx"]) == "eng,deu,xx" and iso_639_3([]) is None


def _warcio(path: Path) -> set[tuple[int, str]] | None:
    """Return what warcio's own indexer finds; None for a file that it cannot read to its end."""
    out = io.StringIO()
    fields = ["offset", "warc-type", "warc-target-uri"]
    try:
        with path.open("rb") as file:
            Indexer(fields, [], "-").process_one(file, out, path.name)
    except Exception:  # noqa: BLE001 # whatever ends it
        return None
    rows = map(json.loads, out.getvalue().splitlines())
    return {
        (int(row["offset"]), row["warc-target-uri"].strip("<>"))
        for row in rows
        if row.get("warc-type") in ("response", "revisit")
    }


def test_real_and_odd_files_have_the_captures_that_warcio_finds_and_all_can_be_read(
    bench_data: Path,
) -> None:
    folder = bench_data / "warc"
    paths = [*folder.glob("edge/**/*"), folder / "bench.warc.gz", *folder.glob("world/*")]
    compared = captures = 0
    for path in sorted(path for path in paths if path.is_file()):
        rows = []
        with path.open("rb") as file:
            try:
                for item in iter_responses(file, warc_name=path.name, max_body_bytes=4096):
                    if isinstance(item, WarcResponse) and item.record.uri:
                        rows.append(capture_row(item, parse_head(item.head)))
            except InputError:
                continue  # an ARC, or a file that ends within a record: nothing is published
        source = open_store(str(path.parent))
        for row in rows:
            assert _read_from(source, path.name, row).response.record.uri == row["url"]
        captures += len(rows)
        others = _warcio(path)
        if others is not None:
            assert {(row["warc_record_offset"], row["url"]) for row in rows} == others, path
            compared += 1
    assert compared >= 30 and captures >= 2_400
