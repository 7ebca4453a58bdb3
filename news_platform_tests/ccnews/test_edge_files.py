"""Quirky WARC and ARC files of the real inputs, against a table checked by hand."""

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from news_platform.ccnews.page import CrawledPage, read_page
from news_platform.ccnews.pool import CollectOptions
from news_platform.ccnews.warc import DroppedWarcRecord, iter_responses
from news_platform.errors import InputError

_HANG_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Expected:
    """Rows and what is dropped, or the reason why the file as a whole fails."""

    rows: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    failure: str = ""


REAL_PAGES = Expected(16)

EXPECTED: dict[str, Expected] = {
    # Office documents only.
    "aut/example.docs.warc.gz": Expected(0, {"not_html": 9}),
    # One page and the HTML of two redirected counters.
    "aut/example.pdf.warc.gz": Expected(3, {"not_html": 32, "revisit_record": 2}),
    # 38 of the others are DNS answers, the rest scripts, images and feeds.
    "aut/example.warc.gz": Expected(140, {"not_html": 159}),
    "aut/issue-493.warc": Expected(5, {"not_html": 5, "revisit_record": 5}),
    "aut/issue-514.warc": Expected(2, {"resource_record": 2}),
    "block-sized-records.warc.lz4": Expected(0, {"unknown_record": 3}),
    "clipped.warc.gz": Expected(failure="is truncated"),
    # LF-only HTTP headers that claim gzip over a plain body.
    "clueweb-quirk.warc.gz": Expected(29),
    # All records in one gzip member.
    "example-bad-non-chunked.warc.gz": Expected(1, {"revisit_record": 1}),
    "example-bad.warc.gz.bad": Expected(2, {"revisit_record": 1}),
    # Four requests, no response.
    "example-digest.warc": Expected(0),
    "example-iana.org-chunked.warc": Expected(1),
    "example-resource.warc.gz": Expected(0, {"resource_record": 1}),
    # Its gzipped body is two bytes short and still readable; the file itself is whole.
    "example-trunc.warc": Expected(1),
    "example-wget-bad-target-uri.warc.gz": Expected(1, {"resource_record": 2}),
    # One record in three gzip members.
    "example-wrong-chunks.warc.gz": Expected(1),
    "example.arc.gz": Expected(failure="is an ARC file"),
    "example.warc.gz": Expected(1, {"revisit_record": 1}),
    # A lone warcinfo, its gzip header with an extra field.
    "gzip_extra_sl.warc.gz": Expected(0),
    "post-test.warc.gz": Expected(0, {"not_html": 3}),
    # One status line says HTTPX, and the last revisit ends by one line instead of two.
    "pywb/example-extra.warc": Expected(2, {"revisit_record": 2}),
    "pywb/iana.warc.gz": Expected(20, {"not_html": 28, "revisit_record": 123}),
    # A redirect without a body, every line end doubled.
    "pywb/missing-status-text.warc": Expected(0, {"not_html": 1}),
    # Extracted text only, its lengths counted in characters.
    "sample.warc.txt": Expected(0, {"conversion_record": 2}),
    "warcfile.warc": REAL_PAGES,
    "warcfile.warc.gz": REAL_PAGES,
    "warcfile.warc.lz4": REAL_PAGES,
}


def _pages(path: Path) -> tuple[list[CrawledPage], Counter[str]]:
    pages: list[CrawledPage] = []
    dropped: Counter[str] = Counter()
    with path.open("rb") as stream:
        for item in iter_responses(stream, warc_name=path.name, max_body_bytes=32 << 20):
            found = (
                item if isinstance(item, DroppedWarcRecord) else read_page(item, CollectOptions())
            )
            if isinstance(found, DroppedWarcRecord):
                dropped[found.reason] += 1
            else:
                pages.append(found)
    return pages, dropped


@pytest.mark.parametrize("name", EXPECTED)
def test_a_quirky_file_gives_its_rows_or_its_reason(name: str, bench_data: Path) -> None:
    expected = EXPECTED[name]
    started = time.process_time()
    if expected.failure:
        with pytest.raises(InputError, match=expected.failure):
            _pages(bench_data / "warc" / "edge" / name)
    else:
        pages, dropped = _pages(bench_data / "warc" / "edge" / name)
        assert (len(pages), dropped) == (expected.rows, expected.dropped)
        assert all(page.tree or page.http.status in (301, 302) for page in pages)
    assert time.process_time() - started < _HANG_SECONDS


def test_false_headers_and_odd_charsets_do_not_spoil_the_text(bench_data: Path) -> None:
    pages, _ = _pages(bench_data / "warc" / "edge" / "clueweb-quirk.warc.gz")
    assert Counter(page.main_lang for page in pages).most_common(1)[0][0] == "ja"
    assert {page.http.charset for page in pages} == {"euc-jp"}
    assert all("ヘッドポーター" in page.text for page in pages[:3])
    assert b"\xef\xbf\xbd" not in pages[0].tree


def test_a_chunked_page_is_read_without_its_chunk_lines(bench_data: Path) -> None:
    (page,), _ = _pages(bench_data / "warc" / "edge" / "example-iana.org-chunked.warc")
    assert page.tree.startswith(b"<!doctype html>")
    assert page.text.startswith("Internet Assigned Numbers Authority")
