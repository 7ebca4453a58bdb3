"""The catalog and the figures of a range."""

from datetime import date

import pytest

from news_platform.datasets.dataset import WHOLE
from news_platform.datasets.domain_store import DOMAIN_CATALOG
from news_platform.domain_store.catalog import write_catalog
from news_platform.domain_store.layout import MANIFESTS
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.pipeline import build_range
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.storage.units import wanted_inputs
from news_platform_tests.domain_store.pages import NOW, SMALL, build, stage

DAYS = {"2025-11-01": ["org.a", "org.a", "org.b"], "2025-11-02": ["org.a"]}


def test_the_catalog_has_one_row_a_domain(root: ObjectStore) -> None:
    stage(root, DAYS)
    build(root)
    report = write_catalog(root, inputs="x")
    rows = read_table(root, DOMAIN_CATALOG.path, DOMAIN_CATALOG).to_dicts()
    assert [row["domain"] for row in rows] == ["a.org", "b.org"]
    first = rows[0]
    assert first["records"] == 3
    assert first["languages"] == ["de", "en"]
    assert (first["first_seen"], first["last_seen"]) == (date(2025, 11, 1), date(2025, 11, 2))
    assert first["bytes"] > 0
    assert (report.domains, report.records) == (2, 4)
    assert report.top[0] == ("a.org", 3)


def test_the_catalog_stands_on_the_ranges_that_are_built(root: ObjectStore) -> None:
    assert wanted_inputs(root, DOMAIN_CATALOG).get(WHOLE) is None
    stage(root, DAYS)
    assert wanted_inputs(root, DOMAIN_CATALOG).get(WHOLE) is None
    build_range("0000-0015", store=root, options=SMALL, now=NOW)
    first = wanted_inputs(root, DOMAIN_CATALOG).get(WHOLE)
    assert first is not None
    stage(root, {"2025-11-03": ["org.b"]})
    assert wanted_inputs(root, DOMAIN_CATALOG).get(WHOLE) == first
    build_range("0000-0015", store=root, options=SMALL, now=NOW)
    assert wanted_inputs(root, DOMAIN_CATALOG).get(WHOLE) not in (None, first)


def test_no_catalog_is_written_of_a_store_whose_files_are_gone(root: ObjectStore) -> None:
    stage(root, DAYS)
    build_range("0000-0015", store=root, options=SMALL, now=NOW)
    write_catalog(root, inputs="x")
    root.delete([info.path for info in root.list(MANIFESTS)])
    with pytest.raises(StorageError, match="bucket 0 of the domain store is gone"):
        write_catalog(root, inputs="y")
    assert read_table(root, DOMAIN_CATALOG.path, DOMAIN_CATALOG).height == 2


def test_records_are_scanned_by_column_without_dropped_batches(root: ObjectStore) -> None:
    stage(root, DAYS)
    build(root)
    stage(root, {"2025-11-01": ["org.b"]})
    build(root)
    rows = DomainStore(root).scan_records().collect().sort("url")
    assert rows["url"].to_list() == ["https://org.a/2025-11-02/0", "https://org.b/2025-11-01/0"]
    assert rows["batch"].to_list() == ["2025-11-02", "2025-11-01"]
