"""Small raw_news frames for tests, and a store built from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

import polars as pl

from news_platform.datasets.collected import (
    Collected,
    collected_prefix,
)
from news_platform.datasets.raw_news import (
    RAW_NEWS,
    RAW_NEWS_ORDER,
    raw_news_day_prefix,
    raw_news_path,
)
from news_platform.domain_store.layout import BuildOptions
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.pipeline import BuildReport, build_buckets
from news_platform.domain_store.staging.engine import StagedEngine
from news_platform.domain_store.staging.stage import stage_batch
from news_platform.storage.commit.collected import write_collected
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import write_table
from news_platform_tests.collected import MARKER

NOW = datetime(2025, 11, 3, 20, tzinfo=UTC)
# The brake on mass removal has tests of its own.
SMALL = BuildOptions(buckets=4, memory_bytes=8 << 20, uploads=2, allow_removal=True)


def news_rows(
    hosts: Sequence[str | None], *, day: str = "2025-11-01", trees: Sequence[str] | None = None
) -> pl.DataFrame:
    """Return one row per reversed host; the addresses contain day and position."""
    year, month, of_month = day.split("-")
    count = len(hosts)
    bodies = list(trees) if trees else [f"<p>page {n} of {day}</p>" for n in range(count)]
    columns: dict[str, object] = {
        "uri": [f"https://{host}/{day}/{n}" for n, host in enumerate(hosts)],
        "tree": bodies,
        "text": [f"page {n}" for n in range(count)],
        "main_lang": ["en", "de", "fr"] * (count // 3) + ["en", "de", "fr"][: count % 3],
        "langs": [["en", "de"]] * count,
        "confs": [[300, 310]] * count,
        "http_date": [f"{day}T01:02:03+00:00"] * count,
        "http_last_modified": [None] * count,
        "http_charset": ["utf-8"] * count,
        "surt_uri": [f"surt)/{n}" for n in range(count)],
        "host": list(hosts),
        "filename": [f"CC-NEWS-{day.replace('-', '')}004549-04954.warc.gz"] * count,
        "year": [year] * count,
        "month": [month] * count,
        "day": [of_month] * count,
        "warc_record_offset": [1000 * n for n in range(count)],
        "fetch_status": [200] * count,
    }
    schema = {name: RAW_NEWS.full_schema[name] for name in RAW_NEWS_ORDER}
    return pl.DataFrame(columns, schema=schema)


def stage(
    store: ObjectStore, days: Mapping[str, Sequence[str]], *, options: BuildOptions = SMALL
) -> None:
    """Stage the hosts of each day; a day without hosts is removed."""
    for day, hosts in days.items():
        if not hosts:
            StagedEngine(store).delete([day])
            continue
        rows = news_rows(hosts, day=day)
        inputs = fingerprint(f"{number} {host}" for number, host in enumerate(hosts))
        stage_batch([rows], store=store, batch=day, inputs=inputs, options=options)


def build(store: ObjectStore, *, options: BuildOptions = SMALL, now: datetime = NOW) -> BuildReport:
    """Build all buckets."""
    return build_buckets(range(options.buckets), store=store, options=options, now=now)


def urls(store: ObjectStore, domains: Iterable[str]) -> dict[str, list[str]]:
    """Return the addresses that a fresh reader finds for each domain."""
    reader = DomainStore(store)
    return {domain: [str(row["uri"]) for row in reader.records(domain)] for domain in domains}


def collect(store: ObjectStore, days: Mapping[str, Sequence[str]]) -> None:
    """Put raw_news rows of these days and their markers under a root, as ccnews does."""
    for day, hosts in days.items():
        when = date.fromisoformat(day)
        name = f"CC-NEWS-{when:%Y%m%d}004549-04954.warc.gz"
        parts = news_rows(hosts, day=day).partition_by("main_lang", as_dict=True)
        for (language,), part in parts.items():
            path = raw_news_path(when, str(language), filename=name)
            write_table(store, path, part, RAW_NEWS)
        languages = {str(language): part.height for (language,), part in parts.items()}
        marker = replace(_marker(name, when, languages), source_digest=fingerprint(hosts))
        write_collected(store, marker)


def _marker(name: str, day: date, languages: Mapping[str, int]) -> Collected:
    return replace(
        MARKER,
        warc=name,
        day=day,
        source=f"crawl-data/{name}",
        rows=sum(languages.values()),
        languages=languages,
    )


def uncollect(store: ObjectStore, day: str) -> None:
    """Remove the rows and markers of a day."""
    when = date.fromisoformat(day)
    for folder in (collected_prefix(when), raw_news_day_prefix(when)):
        store.delete([info.path for info in store.list(folder)])


def collect_late(store: ObjectStore, day: str, hosts: Sequence[str]) -> str:
    """Put a second WARC of a day under a root, as if it had arrived late; return its name."""
    when = date.fromisoformat(day)
    name = f"CC-NEWS-{when:%Y%m%d}224549-04999.warc.gz"
    rows = news_rows(hosts, day=day).with_columns(pl.lit("en").alias("main_lang"))
    rows = rows.with_columns(uri=pl.col("uri") + "/late")
    write_table(store, raw_news_path(when, "en", filename=name), rows, RAW_NEWS)
    marker = _marker(name, when, {"en": len(hosts)})
    write_collected(store, replace(marker, source_etag=fingerprint(hosts)))
    return name
