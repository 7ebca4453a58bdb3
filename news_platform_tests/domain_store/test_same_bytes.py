"""The same days in two folders give the same files, but for the path of the root in the index."""

from dataclasses import replace
from pathlib import Path

from news_platform.datasets.collected import (
    dump_collected,
    parse_collected,
)
from news_platform.datasets.dataset import WHOLE
from news_platform.datasets.domain_store import DOMAIN_BUCKETS, DOMAIN_CATALOG
from news_platform.domain_store.catalog import write_catalog
from news_platform.domain_store.layout import range_keys
from news_platform.domain_store.pipeline import build_range, compact_buckets
from news_platform.domain_store.staging.rows import (
    day_input,
    matching_input,
)
from news_platform.domain_store.staging.stage import stage_input
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform.storage.units import built_inputs, wanted_inputs
from news_platform_tests.domain_store.pages import NOW, SMALL, collect, news_rows

DAYS = {
    "2025-11-01": ["uk.co.bbc", "org.a", "uk.co.bbc"],
    "2025-11-02": ["org.a", "com.c"],
}
LATER = {"2025-11-03": ["uk.co.bbc", "com.d"]}


def _open(folder: Path) -> ObjectStore:
    return open_store(str(folder))


def _collect(store: ObjectStore, days: dict[str, list[str]], *, attempt: str) -> None:
    """Collect as another run would at another time, from a crawl at another place."""
    collect(store, days)
    for info in list(store.list("news/collected")):
        marker = parse_collected(store.read(info.path), path=info.path)
        changed = replace(marker, source=f"{store.url}/crawl", attempt=attempt)
        store.put(info.path, dump_collected(changed))


def _stage_stale(store: ObjectStore) -> list[str]:
    built, wanted = built_inputs(store, DOMAIN_BUCKETS), wanted_inputs(store, DOMAIN_BUCKETS)
    stale = sorted(day for day in wanted if wanted[day] != built.get(day))
    for day in stale:
        stage_input(day_input(store, day), store=store, batch=day, options=SMALL)
    return stale


def _build(store: ObjectStore) -> None:
    for key in range_keys(SMALL.buckets):
        build_range(key, store=store, options=SMALL, now=NOW)
    write_catalog(store, inputs=wanted_inputs(store, DOMAIN_CATALOG).get(WHOLE, ""))


def _files(store: ObjectStore) -> dict[str, bytes]:
    """Return every file, with ROOT in the place of the root."""
    own = ("domain_buckets", "domain_store", "domain_catalog", "markers")
    paths = [info.path for folder in own for info in store.list(folder)]
    return {path: store.read(path).replace(store.url.encode(), b"ROOT") for path in paths}


def test_two_folders_get_the_same_files(tmp_path: Path) -> None:
    found = []
    # Of the same length: the manifest says how long the index is, which has the path in it.
    for name in ("one", "two"):
        store = _open(tmp_path / name)
        _collect(store, DAYS, attempt=name)
        _stage_stale(store)
        _build(store)
        _collect(store, LATER, attempt=name)
        assert _stage_stale(store) == ["2025-11-03"]
        _build(store)
        compact_buckets(range(SMALL.buckets), store=store, options=SMALL, now=NOW)
        found.append(_files(store))
    assert found[0].keys() == found[1].keys()
    assert found[0] == found[1]


def test_a_named_batch_has_the_same_files_in_two_folders(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        rows = tmp_path / f"rows-{name}"
        rows.mkdir()
        news_rows(["org.a", "com.c"]).write_parquet(rows / "part.parquet")
        store = _open(tmp_path / name)
        matching = matching_input(f"{rows}/*.parquet", options=StoreOptions())
        stage_input(matching, store=store, batch="CC-MAIN-2013-20", options=SMALL)
        found.append(_files(store))
    assert found[0] == found[1]
