"""`news-platform ccnews …`: what it prints, writes and returns."""

import json
from pathlib import Path

import pytest

from news_platform.ccnews.scan import scan_news
from news_platform.errors import NewsPlatformError
from news_platform_tests.ccnews.archive import gzipped
from news_platform_tests.ccnews.crawl import DAY, mixed_pages, warc_name, warc_path, write_crawl
from news_platform_tests.cli.runner import Commands

CCNEWS = Commands("ccnews")


@pytest.fixture
def crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a crawl of two WARCs, the one of the settings, to be collected in this process."""
    folder = tmp_path / "crawl"
    write_crawl(folder, {warc_path(DAY, number): mixed_pages(3) for number in (1, 2)})
    monkeypatch.setenv("NEWS_PLATFORM_CRAWL_URL", str(folder))
    monkeypatch.setenv("NEWS_PLATFORM_WORKERS", "0")
    return folder


def test_a_file_by_its_path_is_collected_once(crawl: Path, tmp_path: Path) -> None:
    file = str(crawl / warc_path(DAY, 1))
    first = CCNEWS.json(tmp_path / "root", "collect", file)
    assert [one["rows"] for one in first["collected"]] == [3]
    assert first["collected"][0]["day"] == "2025-11-01"
    again = CCNEWS.json(tmp_path / "root", "collect", file)
    assert (again["collected"], again["skipped"]) == ([], 1)
    # Other bytes of the same size are another file; so is one whose output was lost.
    data = Path(file).read_bytes()
    Path(file).write_bytes(data[:4] + b"\1" + data[5:])  # the time in the first gzip header
    assert len(CCNEWS.json(tmp_path / "root", "collect", file)["collected"]) == 1
    assert CCNEWS.json(tmp_path / "root", "collect", file)["skipped"] == 1
    next((tmp_path / "root" / "news" / "raw").rglob("*.parquet")).unlink()
    assert len(CCNEWS.json(tmp_path / "root", "collect", file)["collected"]) == 1
    # `extract` is the older name of the command.
    forced = CCNEWS.json(tmp_path / "root", "extract", file, "--again")
    assert len(forced["collected"]) == 1
    assert scan_news(str(tmp_path / "root")).collect().height == 3


def test_days_are_collected_from_the_listing(crawl: Path, tmp_path: Path) -> None:
    done = CCNEWS.json(tmp_path / "root", "collect", "--days", "2025-10-31..2025-11-02")
    assert sorted(one["warc"] for one in done["collected"]) == [
        warc_name(DAY, 1),
        warc_name(DAY, 2),
    ]
    listed = CCNEWS.json(tmp_path / "root", "list", "--month", "2025-11")
    assert listed["days"] == {"2025-11-01": {"listed": 2, "collected": 2}}
    assert listed["warcs"] == [warc_path(DAY, 1), warc_path(DAY, 2)]
    status = CCNEWS.json(tmp_path / "root", "status")
    assert [(day["day"], day["warcs"], day["rows"]) for day in status["days"]] == [
        ("2025-11-01", 2, 6)
    ]


def test_an_estimate_writes_nothing(crawl: Path, tmp_path: Path) -> None:
    cost = CCNEWS.json(tmp_path / "root", "collect", warc_path(DAY, 1), "--estimate")
    assert cost["warcs"] == 1
    assert cost["download_bytes"] == (crawl / warc_path(DAY, 1)).stat().st_size
    assert scan_news(str(tmp_path / "root")).collect().height == 0


def test_a_bad_warc_is_a_reported_failure_and_the_others_finish(
    crawl: Path, tmp_path: Path
) -> None:
    bad = tmp_path / warc_name(DAY, 7)
    bad.write_bytes(gzipped(mixed_pages(2))[:-7])
    result = CCNEWS.run(
        tmp_path / "root", "collect", str(bad), str(crawl / warc_path(DAY, 1)), "--json"
    )
    assert isinstance(result.exception, NewsPlatformError)
    assert "1 of 2 WARCs failed" in str(result.exception)
    assert "is truncated" in str(result.exception)
    document = json.loads(result.stdout)
    assert [one["warc"] for one in document["collected"]] == [warc_name(DAY, 1)]
    assert document["failed"][0]["warc"] == warc_name(DAY, 7)


@pytest.mark.parametrize(
    "arguments",
    [
        ("collect",),
        ("collect", "--days", "2025-11-02..2025-11-01"),
        ("collect", "--days", "2025-11-01", "--redo", "everything"),
        ("collect", "--older-than", "new"),
        ("collect", "."),
        ("list", "--month", "November"),
    ],
)
def test_wrong_use_exits_with_2(arguments: tuple[str, ...], crawl: Path, tmp_path: Path) -> None:
    assert CCNEWS.run(tmp_path / "root", *arguments).exit_code == 2
    assert not (tmp_path / "root").exists()


def test_a_file_given_twice_is_one_and_two_files_of_one_name_are_refused(
    crawl: Path, tmp_path: Path
) -> None:
    root, file = tmp_path / "root", crawl / warc_path(DAY, 1)
    other = tmp_path / "else where" / file.name
    other.parent.mkdir()
    other.write_bytes(gzipped(mixed_pages(2)))
    assert "have the same name" in CCNEWS.error(root, "collect", str(file), str(other))
    assert scan_news(root).collect().height == 0
    done = CCNEWS.json(root, "collect", str(other), str(other), "--days", "2025-11-01")
    assert {one["warc"]: one["rows"] for one in done["collected"]} == {
        warc_name(DAY, 1): 2,
        warc_name(DAY, 2): 3,
    }


def test_text_output_is_a_table_for_people(crawl: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    assert "nothing to do" in CCNEWS.run(root, "collect", "--days", "2025-11-20").stdout
    assert "3 rows" in CCNEWS.run(root, "collect", warc_path(DAY, 1)).stdout
    assert "1 already collected" in CCNEWS.run(root, "collect", warc_path(DAY, 1)).stdout
    assert "2025-11-01          1       2" in CCNEWS.run(root, "list", "--month", "2025-11").stdout
    assert "2025-11-01      1     3" in CCNEWS.run(root, "status").stdout


def test_redo_chooses_what_is_collected_again(
    crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, days = tmp_path / "root", ("--days", "2025-11-01")
    monkeypatch.setenv("NEWS_PLATFORM_CCNEWS_LANGUAGES", "nl")
    assert len(CCNEWS.json(root, "collect", *days)["collected"]) == 2
    monkeypatch.delenv("NEWS_PLATFORM_CCNEWS_LANGUAGES")
    status = CCNEWS.json(root, "status")
    assert (status["outdated_days"], status["outdated_warcs"]) == (1, 2)
    assert status["days"][0]["outdated"] == 2
    assert CCNEWS.json(root, "collect", *days, "--redo", "missing")["collected"] == []
    assert len(CCNEWS.json(root, "collect", *days)["collected"]) == 2
    assert CCNEWS.json(root, "collect", *days)["collected"] == []
    assert CCNEWS.json(root, "status")["outdated_days"] == 0


def test_a_broken_warc_can_be_accepted(crawl: Path, tmp_path: Path) -> None:
    root, file = tmp_path / "root", crawl / warc_path(DAY, 1)
    file.write_bytes(file.read_bytes()[:-30])
    assert "cannot find WARC" in CCNEWS.error(root, "accept", warc_name(DAY, 9))
    assert CCNEWS.run(root, "collect", "--days", "2025-11-01").exit_code == 1
    assert (root / "news/wanted/2025-11-01.json").exists()
    (note,) = CCNEWS.json(root, "accept", warc_name(DAY, 1))["accepted"]
    assert (note["warc"], note["failures"], note["accepted"]) == (warc_name(DAY, 1), 1, True)
    (marker,) = CCNEWS.json(root, "collect", "--days", "2025-11-01")["collected"]
    assert (marker["rows"], marker["truncated_at"] > 0) == (2, True)
    assert CCNEWS.json(root, "status")["days"][0]["truncated"] == 1
    assert not (root / "news/wanted/2025-11-01.json").exists()


def test_a_changed_source_is_listed_and_collected_again(crawl: Path, tmp_path: Path) -> None:
    root, days = tmp_path / "root", ("--days", "2025-11-01")
    CCNEWS.json(root, "collect", *days)
    (crawl / warc_path(DAY, 2)).write_bytes(gzipped(mixed_pages(6)))
    assert CCNEWS.json(root, "list", "--month", "2025-11")["changed"] == []
    listed = CCNEWS.json(root, "list", "--month", "2025-11", "--check-source")
    assert [one["warc"] for one in listed["changed"]] == [warc_name(DAY, 2)]
    assert listed["days"]["2025-11-01"] == {"listed": 2, "collected": 1}
    (marker,) = CCNEWS.json(root, "collect", *days, "--redo", "missing")["collected"]
    assert (marker["warc"], marker["rows"]) == (warc_name(DAY, 2), 6)
    assert CCNEWS.json(root, "list", "--month", "2025-11")["days"]["2025-11-01"]["collected"] == 2
