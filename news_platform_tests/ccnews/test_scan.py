"""scan_news reads exactly the files that the markers name, with the requested columns."""

from datetime import UTC, date, datetime

import polars as pl
import pytest

from news_platform.api import NewsData
from news_platform.ccnews.scan import scan_news
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_ORDER, raw_news_path
from news_platform.errors import InputError
from news_platform.settings import Settings
from news_platform.storage.commit.collected import combine_month
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.ccnews.crawl import (
    DAY,
    collect_here,
    mixed_pages,
    warc_path,
    write_crawl,
)
from news_platform_tests.domain_store.pages import collect
from news_platform_tests.storage.counted import Counted

OTHER_DAY = date(2025, 11, 2)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> ObjectStore:
    tmp_path = tmp_path_factory.mktemp("scan")
    store = open_store(str(tmp_path / "root"))
    paths = [warc_path(DAY, 1), warc_path(DAY, 2), warc_path(OTHER_DAY, 1)]
    crawl = write_crawl(tmp_path / "crawl", dict.fromkeys(paths, mixed_pages(6)))
    for number, path in enumerate(paths):
        collect_here(path, source=crawl, root=store, scratch=tmp_path / f"s{number}")
    # A file that no marker names is not opened.
    store.put(raw_news_path(DAY, "en", filename="torn.warc.gz"), b"half a file")
    return store


def test_columns_come_in_the_order_of_the_seed_added_ones_last(root: ObjectStore) -> None:
    frame = scan_news(root)
    assert tuple(frame.collect_schema()) == RAW_NEWS_ORDER
    assert RAW_NEWS_ORDER[15:] == ("warc_record_offset", "fetch_status")
    assert dict(frame.collect_schema()) == {
        name: RAW_NEWS.full_schema[name] for name in RAW_NEWS_ORDER
    }
    assert frame.collect().height == 18


def test_days_languages_hosts_and_columns_narrow_it(root: ObjectStore) -> None:
    assert root.local_folder is not None
    url = str(root.local_folder)
    assert scan_news(url, days=["2025-11-01"]).collect().height == 12
    assert scan_news(url, days=OTHER_DAY, langs="nl").collect().height == 2
    assert scan_news(url, days="2025-11-03").collect().height == 0
    found = scan_news(url, hosts=["example.com"], columns=["uri", "day"]).collect()
    assert found.columns == ["uri", "day"]
    assert found.height == 18
    assert scan_news(url, hosts="levels.fyi").collect().height == 0
    assert set(scan_news(url, columns=["day"]).collect()["day"]) == {"01", "02"}


_FILTERS = {
    "a day": (pl.col("year") == "2025") & (pl.col("month") == "11") & (pl.col("day") == "02"),
    "a month that is not there": pl.col("month").is_in(["09", "12"]),
    "a language": pl.col("main_lang") == "nl",
    "one of two": (pl.col("day") == "01") | (pl.col("main_lang") == "nl"),
    "another column too": (pl.col("day") >= "02") & pl.col("uri").str.ends_with("1"),
    "a WARC": pl.col("filename").str.contains("00002") & (pl.col("month") == "11"),
}


@pytest.mark.parametrize("rule", _FILTERS.values(), ids=_FILTERS)
def test_a_filter_on_all_days_gives_what_the_same_rows_give_in_memory(
    root: ObjectStore, rule: pl.Expr
) -> None:
    days = [DAY, OTHER_DAY]
    expected = scan_news(root, days=days).collect().filter(rule).select("uri", "day")
    assert scan_news(root).filter(rule).select("uri", "day").collect().equals(expected)
    assert scan_news(root).filter(rule).head(2).collect().height == min(2, expected.height)


def test_a_day_of_many_years_reads_the_markers_of_its_month(local_store: ObjectStore) -> None:
    months = [f"{year}-{month:02}" for year in range(2017, 2027) for month in (1, 3)]
    collect(local_store, {f"{month}-{day}": ["org.a"] for month in months for day in ("05", "06")})
    for month in months:
        combine_month(local_store, date.fromisoformat(f"{month}-01"))
    counted = Counted(local_store)
    wanted = [("year", "2020"), ("month", "03"), ("day", "05")]
    found = scan_news(counted).filter(pl.col(name) == value for name, value in wanted).collect()
    assert found.height == 1 and counted.gets == ["news/collected/2020/03/month.jsonl.gz"]
    news = NewsData(Settings(root=local_store.url))
    where = " and ".join(f"{name} = '{value}'" for name, value in wanted)
    assert news.sql(f"select uri from raw_news where {where}")["uri"].equals(found["uri"])
    assert news.sql("select count(*) from raw_news where year >= '2026'").item() == 4


def test_a_root_may_be_a_path_and_names_are_understood_as_people_write_them(
    root: ObjectStore,
) -> None:
    folder = root.local_folder
    assert folder is not None
    assert scan_news(folder, langs="NL").collect().height == 6
    assert scan_news(folder, hosts=["Example.COM."]).collect().height == 18
    assert scan_news(folder, columns="uri").collect().columns == ["uri"]
    assert scan_news(folder, columns=["day", "uri", "day"]).collect().columns == ["day", "uri"]
    instants = [datetime(2025, 11, 1, 12), datetime(2025, 11, 2, 1, tzinfo=UTC), DAY]  # noqa: DTZ001 - what a notebook gives
    assert scan_news(folder, days=instants).collect().height == 18


def test_a_host_in_its_own_letters_is_found_by_them(local_store: ObjectStore) -> None:
    collect(local_store, {"2025-11-01": ["de.xn--bcher-kva", "org.a"]})
    assert scan_news(local_store, hosts="Bücher.de").collect()["host"].to_list() == [
        "de.xn--bcher-kva"
    ]


def test_what_cannot_be_a_day_or_a_column_is_told_before_anything_is_read(
    root: ObjectStore,
) -> None:
    with pytest.raises(InputError, match="invalid day 'yesterday'"):
        scan_news(root, days="yesterday")
    with pytest.raises(InputError, match=r"unknown column 'url' of raw_news: .* uri, tree"):
        scan_news(root, columns=["uri", "url"])
