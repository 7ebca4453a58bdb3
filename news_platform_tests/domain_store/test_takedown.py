"""Taking records down from staged batches, the store and the catalog."""

from collections.abc import Iterable
from datetime import timedelta

import polars as pl
import pytest

from news_platform.datasets.dataset import WHOLE
from news_platform.datasets.domain_store import DOMAIN_CATALOG
from news_platform.domain_store.building.verify import iter_count_problems, verify_bucket
from news_platform.domain_store.catalog import write_catalog
from news_platform.domain_store.data_files import iter_inflated
from news_platform.domain_store.layout import range_keys
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.pipeline import build_range, compact_buckets
from news_platform.domain_store.staging.stage import (
    built_ranges,
    read_staged,
    stage_batch,
    wanted_ranges,
)
from news_platform.errors import Conflict
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import read_table
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.requests import list_pending
from news_platform_tests.domain_store.pages import NOW, SMALL, news_rows
from news_platform_tests.takedowns.asked import ask, served

DAYS = ("2025-11-01", "2025-11-02", "2025-11-03")
DOMAINS = ("harbour.example", "other.example", "third.example", "fourth.example")


def _rows(day: str) -> pl.DataFrame:
    hosts = [".".join(reversed(domain.split("."))) for domain in DOMAINS] * 6
    bodies = [f"<p>{'page ' * 20}{number} of {day}</p>" for number in range(len(hosts))]
    rows = news_rows(hosts, day=day, trees=bodies)
    uris = [f"https://www.{DOMAINS[n % 4]}/{day}/{n}" for n in range(rows.height)]
    return rows.with_columns(uri=pl.Series(uris))


def _stage(root: ObjectStore, days: Iterable[str] = DAYS) -> None:
    for day in days:
        stage_batch([_rows(day)], store=root, batch=day, inputs=day, options=SMALL, now=NOW)


def _build(root: ObjectStore) -> None:
    for key in range_keys(SMALL.buckets):
        build_range(key, store=root, options=SMALL, now=NOW)
    write_catalog(root, inputs=wanted_inputs(root, DOMAIN_CATALOG).get(WHOLE, ""))


def _records(root: ObjectStore) -> dict[str, list[dict[str, object]]]:
    reader = DomainStore(root)
    return {domain: list(reader.records(domain)) for domain in DOMAINS}


def _all_bytes(root: ObjectStore) -> bytes:
    pieces: list[bytes] = []
    for folder in ("domain_store", "domain_buckets", "domain_catalog"):
        for info in root.list(folder):
            body = root.read(info.path)
            pieces += iter_inflated([body]) if info.path.endswith(".gz") else [body]
            if info.path.endswith(".parquet"):
                pieces.append(str(pl.read_parquet(body).to_dicts()).encode())
    return b"\n".join(pieces)


REQUESTS = [
    ("url", "http://harbour.example/2025-11-02/4", "https://other.example/2025-11-03/1"),
    ("domain", "harbour.example"),
]


@pytest.mark.parametrize("asked", REQUESTS, ids=lambda one: " ".join(one))
def test_the_store_holds_what_it_would_if_the_pages_had_never_come(
    root: ObjectStore, tmp_path_factory: pytest.TempPathFactory, asked: tuple[str, ...]
) -> None:
    before = open_store(str(tmp_path_factory.mktemp("before")))
    ask(before, *asked)
    for one in (before, root):
        _stage(one)
        _build(one)
    built = built_ranges(root)
    ask(root, *asked)
    report = served(root)
    assert report.total("rows") > 0
    assert _records(root) == _records(before)
    columns = ["domain", "records", "languages", "first_seen", "last_seen"]
    catalogs = [read_table(one, DOMAIN_CATALOG.path, DOMAIN_CATALOG) for one in (root, before)]
    assert catalogs[0].select(columns).equals(catalogs[1].select(columns))
    assert all(not verify_bucket(root, bucket).problems for bucket in range(SMALL.buckets))
    assert list(iter_count_problems(root, range(SMALL.buckets))) == []
    assert wanted_ranges(root) == built_ranges(root) == built
    # A rebuild and a second search have nothing to do, and bring nothing back.
    etags = {info.path: info.etag for info in root.list("domain_store/data")}
    _build(root)
    served(root, search_again=True)
    assert {info.path: info.etag for info in root.list("domain_store/data")} == etags


def test_nothing_of_a_domain_is_left_in_any_file(root: ObjectStore) -> None:
    _stage(root)
    _build(root)
    # An old generation and a compaction leave retired files behind.
    stage_batch([_rows(DAYS[0])], store=root, batch=DAYS[0], inputs="again", options=SMALL)
    _build(root)
    compact_buckets(range(SMALL.buckets), store=root, options=SMALL, now=NOW + timedelta(hours=1))
    assert b"harbour" in _all_bytes(root)
    ask(root, "domain", "harbour.example")
    served(root)
    assert b"harbour" not in _all_bytes(root)


def test_a_batch_that_was_staged_before_the_request_is_cleaned_by_the_build(
    root: ObjectStore,
) -> None:
    _stage(root)
    ask(root, "domain", "harbour.example")
    _build(root)
    assert _records(root)["harbour.example"] == []
    assert b"harbour" not in _all_bytes(root)
    # A store that was read before the removal may have given the catalog more than it may have.
    assert list_pending(root) == [("domain_catalog", "all")]
    served(root)
    assert list_pending(root) == []


def test_a_request_that_comes_during_staging_stops_the_old_rows(root: ObjectStore) -> None:
    def frames() -> Iterable[pl.DataFrame]:
        yield _rows(DAYS[0])
        ask(root, "domain", "harbour.example")

    with pytest.raises(Conflict, match="takedowns changed"):
        stage_batch(frames(), store=root, batch=DAYS[0], inputs="x", options=SMALL, now=NOW)
    assert DAYS[0] not in read_staged(root, SMALL.buckets).markers
    served(root)
    assert b"harbour" not in _all_bytes(root)


def test_what_staging_leaves_out_is_counted(root: ObjectStore) -> None:
    ask(root, "domain", "harbour.example")
    report = stage_batch([_rows(DAYS[0])], store=root, batch=DAYS[0], inputs="x", options=SMALL)
    assert (report.taken_down, report.records) == (6, 18)
