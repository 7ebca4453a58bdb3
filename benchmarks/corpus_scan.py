"""Scan the titles of one domain over a year: crawl_articles against page_metadata of the same days.

A day has 300,000 pages of 18 WARCs, as a real one. The rows of a week repeat, in files and versions
of their own. The articles have no text, so that a day is one file with all its row groups, which is
to the disadvantage of crawl_articles: a real day is several, of which one is read. Each scan runs
in a process of its own. CPU time is that of the scan without imports; bytes are the column chunks
and footers that the scan has to read.
"""

import json
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from benchmarks.near_duplicates import article_bodies
from news_platform.corpus.pipeline import crawl_dataset
from news_platform.datasets.corpus import CRAWL_ARTICLES
from news_platform.datasets.raw_news import PAGE_METADATA, side_path
from news_platform.storage.delta_files import arrow_schema
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import scan_table, write_table

DAYS = 365
# So many days are drawn; the others have the same rows, by links to their files.
_DRAWN_DAYS = 7
_WARCS = 18
_PAGES_PER_DAY = 300_000
_DOMAINS = 1_000
_TITLE_WORDS = 9
_WANTED = "site00123.example"
_FIRST = date(2025, 1, 1)
_TABLES = ("page_metadata", "crawl_articles")
_MADE_AT = 1_735_689_600_000


def scan_ratios(data: Path) -> Mapping[str, float]:
    """Return how many times less CPU time and bytes the corpus takes.

    Headlines are drawn from the words of real articles, so that they compress as real ones do.
    """
    words = pl.Series(sorted({word for body in article_bodies(data) for word in body.split()}))
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/root")
        days = [_FIRST + timedelta(days=number) for number in range(DAYS)]
        for day in days[:_DRAWN_DAYS]:
            _store_day(store, day, words, Path(folder))
        for number, day in enumerate(days[_DRAWN_DAYS:]):
            _repeat_day(Path(folder) / "root", days[number % _DRAWN_DAYS], day)
        sizes = {
            name: sum(_read_bytes(path, name) for path in _files(store, name)) for name in _TABLES
        }
        found = {name: _scanned(name, store.url) for name in _TABLES}
    assert found["page_metadata"]["rows"] == found["crawl_articles"]["rows"], found
    return {
        "rows": found["page_metadata"]["rows"],
        "page_metadata_cpu_seconds": found["page_metadata"]["cpu"],
        "crawl_articles_cpu_seconds": found["crawl_articles"]["cpu"],
        "cpu_ratio": found["page_metadata"]["cpu"] / found["crawl_articles"]["cpu"],
        "bytes_ratio": sizes["page_metadata"] / sizes["crawl_articles"],
    }


def _scanned(name: str, root: str) -> Mapping[str, float]:
    command = [sys.executable, "-m", "benchmarks.corpus_scan", name, root]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found: Mapping[str, float] = json.loads(done.stdout)
    return found


def _store_day(store: ObjectStore, day: date, words: pl.Series, scratch: Path) -> None:
    places = pl.int_range(_PAGES_PER_DAY, eager=True)
    drawn = [
        words.sample(
            _PAGES_PER_DAY, with_replacement=True, seed=day.toordinal() * 10 + number
        ).alias(str(number))
        for number in range(_TITLE_WORDS)
    ]
    titles = pl.DataFrame(drawn).select(pl.concat_str(pl.all(), separator=" ")).to_series()
    site = (places % _DOMAINS).cast(pl.String).str.zfill(5)
    slugs = titles.str.to_lowercase().str.replace_all(r"\W+", "-")
    rows = pl.DataFrame({"site": site, "at": places, "title": titles, "slug": slugs}).select(
        canonical_url=pl.format("https://site{}.example/news/{}/{}", "site", "at", "slug"),
        domain=pl.format("site{}.example", "site"),
        title="title",
        fetched_at=pl.lit(datetime(day.year, day.month, day.day, 9, tzinfo=UTC)),
        day=pl.lit(day.isoformat()),
    )
    full = rows.select(
        pl.col(name) if name in rows.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in CRAWL_ARTICLES.full_schema.items()
    )
    ordered = full.sort("domain", "canonical_url")
    crawl_dataset(store).replace(day.isoformat(), [ordered], scratch=scratch)
    for warc in range(_WARCS):
        part = rows.gather_every(_WARCS, warc).rename({"canonical_url": "uri"})
        frame = part.select(
            pl.col(name) if name in ("uri", "title") else pl.lit(None, dtype=kind).alias(name)
            for name, kind in PAGE_METADATA.schema.items()
        )
        write_table(store, side_path(PAGE_METADATA, day, f"{warc}.warc.gz"), frame, PAGE_METADATA)


def _repeat_day(root: Path, drawn: date, day: date) -> None:
    """Store a day with the rows of another one, in a version of its own."""
    for warc in range(_WARCS):
        _link(*(root / side_path(PAGE_METADATA, one, f"{warc}.warc.gz") for one in (drawn, day)))
    folder = root / CRAWL_ARTICLES.name
    actions: list[AddAction | RemoveAction] = []
    for add in _added_files(folder, drawn):
        name = f"day={day}/{uuid.uuid4()}.parquet"
        _link(folder / str(add["path"]), folder / name)
        actions.append(
            AddAction(name, add["size"], {"day": str(day)}, _MADE_AT, True, add["stats"])
        )
    table = DeltaTable(folder)
    schema = arrow_schema(CRAWL_ARTICLES)
    table.create_write_transaction(actions, mode="append", schema=schema, partition_by=["day"])


def _added_files(folder: Path, day: date) -> list[dict[str, Any]]:
    """Return the files of a day, from the logs of the days that were drawn."""
    logs = sorted((folder / "_delta_log").glob("*.json"))[: _DRAWN_DAYS + 1]
    lines = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    adds: list[dict[str, Any]] = [line["add"] for line in lines if "add" in line]
    return [add for add in adds if add["partitionValues"]["day"] == str(day)]


def _link(known: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.hardlink_to(known)


def _files(store: ObjectStore, name: str) -> Sequence[Path]:
    folder = store.local_folder
    assert folder is not None
    if name == "page_metadata":
        return [folder / info.path for info in store.list("news/page_metadata")]
    return [folder / file.path for file in crawl_dataset(store).files()]


def _read_bytes(path: Path, name: str) -> int:
    """Return the bytes of a file that the scan of a table has to read."""
    metadata = pq.ParquetFile(path).metadata
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return int(metadata.serialized_size) + sum(_group_bytes(group, name) for group in groups)


def _group_bytes(group: pq.RowGroupMetaData, name: str) -> int:
    columns = (group.column(number) for number in range(group.num_columns))
    chunks = {chunk.path_in_schema: chunk for chunk in columns}
    known = chunks["domain"].statistics if "domain" in chunks else None
    if known is not None and not known.min <= _WANTED <= known.max:
        return 0
    wanted = ("uri", "title") if name == "page_metadata" else ("domain", "title")
    return sum(int(chunks[column].total_compressed_size) for column in wanted)


def _scan(name: str, store: ObjectStore) -> pl.LazyFrame:
    if name == "crawl_articles":
        return crawl_dataset(store).scan().filter(pl.col("domain") == _WANTED)
    paths = [info.path for info in store.list("news/page_metadata")]
    is_wanted = pl.col("uri").str.contains(f"://{_WANTED}/", literal=True)
    return scan_table(store, paths, PAGE_METADATA).filter(is_wanted)


def main(name: str, root: str) -> None:
    """Scan one table and print rows and CPU seconds as JSON."""
    store = open_store(root)
    import deltalake  # noqa: F401 - loading the library is not part of the scan

    started = time.process_time()
    found = _scan(name, store).select("title").collect()
    print(json.dumps({"rows": found.height, "cpu": time.process_time() - started}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
