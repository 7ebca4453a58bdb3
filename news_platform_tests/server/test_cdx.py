"""The CDX endpoint, asked by hand and by cdx_toolkit, and single records."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from news_platform.ccnews.capture_index import build_index
from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.ccnews.archive import Record, article, http
from news_platform_tests.ccnews.crawl import collect_here, mixed_pages, warc_path, write_crawl
from news_platform_tests.server.explorer import Explorer, exploring
from news_platform_tests.takedowns.asked import ask

DAYS = [date(2025, 11, 1) + timedelta(days=number) for number in range(3)]
URL = "https://www.harbour.example/news/one"


def _records(day: date) -> list[Record]:
    at = f"{day}T06:00:00Z"
    return [
        *mixed_pages(1),
        Record(http(article(f"It is {day}.")), uri=URL, at=at),
        Record(http("%PDF-1.4", mime="application/pdf"), uri=f"{URL}/file.pdf", at=at),
        Record(http("gone", status="404 Not Found"), uri=f"{URL}/{day}", at=at),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cdx")
    root = open_store(str(folder / "root"))
    claim_root(root, sample=False)
    crawl = write_crawl(folder / "crawl", {warc_path(day): _records(day) for day in DAYS})
    for day in DAYS:
        collect_here(warc_path(day), source=crawl, root=root, scratch=folder / "s")
    # The last day is not merged yet.
    for day in DAYS[:2]:
        assert build_index(root, str(day))
    return folder


@pytest.fixture(scope="module")
def explorer(folder: Path) -> Iterator[Explorer]:
    with exploring(folder / "root", NEWS_PLATFORM_CRAWL_URL=str(folder / "crawl")) as running:
        yield running


def _lines(explorer: Explorer, query: str) -> list[str]:
    reply = explorer.get(f"/cdx?{query}")
    assert reply.status == 200, reply.text
    return reply.text.splitlines()


def test_captures_come_as_cdxj_and_as_json(explorer: Explorer) -> None:
    lines = _lines(explorer, f"url={URL}")
    assert [line.split(" ")[:2] for line in lines] == [
        ["example,harbour)/news/one", f"{day:%Y%m%d}060000"] for day in DAYS
    ]
    found = [json.loads(line) for line in _lines(explorer, f"url={URL}&output=json")]
    assert [one["status"] for one in found] == ["200"] * 3
    assert {"urlkey", "timestamp", "url", "mime", "digest", "offset", "length", "filename"} <= {
        *found[0]
    }


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("url=*.harbour.example", 9),
        ("url=harbour.example&matchType=domain", 9),
        ("url=www.harbour.example&matchType=host", 9),
        ("url=harbour.example/news/one/*", 6),
        ("url=harbour.example/news/one/&matchType=prefix", 6),
        ("url=*.harbour.example&limit=4", 4),
        ("url=*.harbour.example&from=20251102&to=20251102", 3),
        ("url=*.harbour.example&from=2025&to=202511", 9),
        ("url=*.harbour.example&filter==status:404", 3),
        ("url=*.harbour.example&filter=!=status:404", 6),
        ("url=*.harbour.example&filter=~mime:.*pdf", 3),
        ("url=*.harbour.example&filter=mime:html&filter=statuscode:200", 3),
        ("url=*.harbour.example&pageSize=1&page=1", 3),
        ("url=*.harbour.example&fl=url,status", 9),
    ],
)
def test_what_is_asked_for_is_found(explorer: Explorer, query: str, count: int) -> None:
    assert len(_lines(explorer, query)) == count


def test_fields_are_chosen(explorer: Explorer) -> None:
    (line, *_) = _lines(explorer, f"url={URL}&fl=timestamp,status,languages&limit=1")
    assert line.startswith("20251101060000 200 eng")
    (line, *_) = _lines(explorer, f"url={URL}&fl=original&limit=1&output=json")
    assert json.loads(line) == {"url": URL}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("url=nowhere.example", 404),
        ("url=*.harbour.example&page=1", 400),
        ("url=*.harbour.example&page=-1", 400),
        ("url=*.harbour.example&limit=0", 400),
        ("url=*.harbour.example&matchType=range", 400),
        ("url=*.harbour.example&from=yesterday", 400),
        ("url=*.harbour.example&fl=secret", 400),
        ("url=*.harbour.example&filter=status", 400),
        ("url=*.harbour.example&filter=~status:(", 400),
        ("url=*.harbour.example&filter=~url:(a%2B)%2B$", 404),
    ],
)
def test_wrong_questions_have_an_answer_in_json(
    explorer: Explorer, query: str, status: int
) -> None:
    reply = explorer.get(f"/cdx?{query}")
    assert reply.status == status, reply.text
    assert reply.json.keys() == {"error"}


def test_pages_are_counted(explorer: Explorer) -> None:
    reply = explorer.get("/cdx?url=*.harbour.example&showNumPages=true&pageSize=2")
    assert reply.json == {"pages": 2, "pageSize": 2, "blocks": 2}


def test_cdx_toolkit_reads_all_pages(explorer: Explorer) -> None:
    program = str(Path(sys.executable).with_name("cdxt"))
    done = subprocess.run(
        [program, "--source", f"{explorer.url}/cdx", "iter", "*.harbour.example", "--jsonl"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    urls = [json.loads(line)["url"] for line in done.stdout.splitlines()]
    assert len(urls) == 9 and urls.count(URL) == 3


def test_a_record_is_shown_as_text_as_it_was_archived(explorer: Explorer) -> None:
    newest = explorer.get(f"/record?url={URL}")
    assert newest.status == 200 and "It is 2025-11-03." in newest.text
    assert newest.headers["content-type"].startswith("text/plain")
    first = explorer.get(f"/record?url={URL}&at=20251101")
    assert "It is 2025-11-01." in first.text
    assert explorer.get("/record?url=https://nowhere.example/").status == 404
    assert explorer.get("/record").status == 400


def test_what_is_taken_down_is_not_shown(folder: Path, tmp_path: Path) -> None:
    root: ObjectStore = open_store(str(folder / "root"))
    copy = open_store(str(tmp_path / "root"))
    for info in root.list():
        copy.put(info.path, root.read(info.path))
    ask(copy, "domain", "harbour.example")
    crawl = str(folder / "crawl")
    with exploring(tmp_path / "root", NEWS_PLATFORM_CRAWL_URL=crawl) as running:
        assert running.get("/cdx?url=*.harbour.example").status == 404
        assert running.get(f"/cdx?url={URL}&output=json&page=0").status == 404
        assert running.get(f"/record?url={URL}").status == 410
        assert running.get("/cdx?url=*.example.com").status == 200
