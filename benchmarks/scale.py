"""The scheduler's side of ten years on PostgreSQL: partitions, events, backfill, markers.

`python -m benchmarks.scale [DAYS]` submits a backfill of so many days for real (default: all); the
runs stay queued, since only the scheduler is measured.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from itertools import groupby, product
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg
import polars as pl
from dagster._core.execution.backfill import PartitionBackfill
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.backfill import execute_backfill_iteration

from benchmarks import RESULTS_FOLDER, scale_location
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.storage.commit.collected import change_table, marker_key
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import open_store
from news_platform.storage.parquet import write_table
from news_platform_tests.collected import MARKER
from news_platform_tests.emulators.postgres import new_database, postgres_server

RESULTS = RESULTS_FOLDER / "scale.json"
DEPLOY = Path(__file__).parents[1] / "deploy"
# About 60,000 WARCs in ten years of CC-NEWS, one marker each.
WARCS = 60_000
ASSET = dg.AssetKey("raw_news")
_TEN_YEARS, _WARCS_PER_DAY = 3_650, 18


def main(most: int | None = None) -> None:
    """Measure each part once, print the table and keep it as JSON; submit at most so many days."""
    days = scale_location.DAYS.get_partition_keys()
    wanted = days[:most]
    measured = {"days": float(len(days)), "backfilled days": float(len(wanted))}
    with TemporaryDirectory(prefix="scale-") as name, postgres_server() as server:
        with _instance(Path(name), new_database(server)) as instance:
            measured |= _events(instance, wanted) | _backfill(instance, wanted)
        measured |= _markers(Path(name) / "root") | reading(Path(name) / "pages")
    for what, value in measured.items():
        print(f"{what:<48}{value:>12.3f}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(measured, indent=1) + "\n")


@contextmanager
def _instance(folder: Path, database: str) -> Iterator[dg.DagsterInstance]:
    os.environ["NEWS_PLATFORM_DAGSTER_POSTGRES_URL"] = database
    os.environ["NEWS_PLATFORM_BROKER_URL"] = "redis://127.0.0.1:1/0"  # nothing is launched
    shutil.copy(DEPLOY / "dagster.yaml", folder / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield instance


def _events(instance: dg.DagsterInstance, days: Sequence[str]) -> dict[str, float]:
    started = time.perf_counter()
    for day in days:
        instance.report_runless_asset_event(dg.AssetMaterialization(ASSET, partition=day))
    written = time.perf_counter() - started
    started = time.perf_counter()
    found = instance.get_materialized_partitions(ASSET)
    assert len(found) == len(days)
    return {
        "ms per materialisation event written": written / len(days) * 1000,
        "s to ask which days are materialised": time.perf_counter() - started,
    }


def _backfill(instance: dg.DagsterInstance, days: Sequence[str]) -> dict[str, float]:
    """Submit the backfill as the daemon does, until every day has its queued run."""
    target = ModuleTarget(scale_location.__name__, attribute=None, working_directory=None,
                          location_name="scale")  # fmt: skip
    with create_test_daemon_workspace_context(target, instance) as workspace:
        instance.add_backfill(_asked(instance, days))
        started = time.perf_counter()
        iterations = 0
        while (submitted := instance.get_runs_count()) < len(days):
            list(execute_backfill_iteration(workspace, logging.getLogger(__name__)))
            iterations += 1
        seconds = time.perf_counter() - started
    started = time.perf_counter()
    instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]), limit=100)
    return {
        "ms per run submitted by a backfill": seconds / submitted * 1000,
        "daemon iterations of the backfill": float(iterations),
        "s to list 100 queued runs": time.perf_counter() - started,
    }


def _asked(instance: dg.DagsterInstance, days: Sequence[str]) -> PartitionBackfill:
    return PartitionBackfill.from_asset_partitions(
        backfill_id="ten-years",
        asset_graph=scale_location.defs.resolve_asset_graph(),
        partition_names=list(days),
        asset_selection=[ASSET],
        backfill_timestamp=time.time(),
        tags={},
        dynamic_partitions_store=instance,
        all_partitions=False,
        title=None,
        description=None,
        run_config=None,
    )


def _markers(root: Path) -> dict[str, float]:
    """Read ten years of markers as a sensor's tick does."""
    folder = root / "markers" / "raw_news"
    folder.mkdir(parents=True)
    for number in range(WARCS):
        (folder / f"warc-{number:06}@0123456789abcdef.json").touch()
    started, cpu = time.perf_counter(), time.process_time()
    assert len(read_markers(open_store(str(root)), "raw_news")) == WARCS
    return {
        f"s to read {WARCS} markers by one LIST": time.perf_counter() - started,
        f"CPU s to read {WARCS} markers": time.process_time() - cpu,
    }


def reading(root: Path) -> dict[str, float]:
    """Read one day of ten years of raw_news: markers of all days, and the files of one."""
    store, first, number = open_store(str(root)), date(2016, 9, 1), 0
    languages = [f"{one}{other}" for one in "abcdefghi" for other in "abcde"]
    rows = pl.DataFrame([pl.Series(name, [None], it) for name, it in RAW_NEWS.schema.items()])
    for month, days in groupby(_days(first), key=lambda day: day.replace(day=1)):
        markers = []
        for day, warc in product(days, range(_WARCS_PER_DAY)):
            name = f"CC-NEWS-{day:%Y%m%d}{warc:02}0000-{number:05}.warc.gz"
            found = dict.fromkeys(languages, 1)
            markers.append(replace(MARKER, warc=name, day=day, rows=len(found), languages=found))
            number += 1
        rows_by_key = {marker_key(marker): marker for marker in markers}
        change_table(store, month, lambda _, made=rows_by_key: made)  # type: ignore[misc]  # bound
        for marker in (it for it in markers if it.day == first):
            for path in marker.news_paths().values():
                write_table(store, path, rows, RAW_NEWS)
    measured = {"collected WARCs": float(number)}
    where = f"year = '{first:%Y}' and month = '{first:%m}' and day = '{first:%d}'"
    count = f"select count(*) from raw_news where {where}"
    for what, code in {
        "SQL over one day of ten years": f"news.sql({count!r})",
        "files of one language named": "len([p for m in read_collected(store) "
        "for p in m.news_paths({'aa'}).values()])",
    }.items():
        cpu, megabytes = _alone(root, code)
        measured |= {f"CPU s, {what}": cpu, f"MB, {what}": megabytes}
    return measured


def _days(first: date) -> Iterator[date]:
    yield from (first + timedelta(days=number) for number in range(_TEN_YEARS))


def _alone(root: Path, code: str) -> tuple[float, float]:
    """Run an expression in a process of its own; return its CPU time without imports, and RSS."""
    script = f"""
import resource, time, news_platform
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.objects.store import open_store
news, store = news_platform.open({str(root)!r}), open_store({str(root)!r})
began = time.process_time()
{code}
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True
    )
    cpu, megabytes = done.stdout.split()
    return float(cpu), float(megabytes)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
