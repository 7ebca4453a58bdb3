"""Requests to an S3 store for each asset of the sample, counted by a proxy before the emulator."""

import json
import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg

from benchmarks import RESULTS_FOLDER
from news_platform.datasets.dataset import WHOLE
from news_platform.definitions import build_definitions
from news_platform.defs.graph import BUILD_ORDER
from news_platform.defs.sensors import add_partitions
from news_platform.resources import Resources
from news_platform.sample.world import SampleResources, place_inputs
from news_platform.settings import load_settings
from news_platform_tests.emulators.fault_proxy import FaultProxy, fault_proxy
from news_platform_tests.emulators.relay import Request
from news_platform_tests.emulators.s3 import new_bucket, s3_server

RESULTS = RESULTS_FOLDER / "scale_requests.json"
KINDS = ("GET", "HEAD", "LIST", "PUT", "DELETE")


@dataclass(frozen=True, slots=True)
class Counted:
    """What building one asset of the sample asked of the store."""

    asset: str
    partitions: int
    requests: Mapping[str, int]


def main() -> None:
    """Build the sample on S3, print the table and keep it as JSON."""
    logging.disable(logging.WARNING)
    with TemporaryDirectory(prefix="requests-") as name, ExitStack() as parts:
        server = parts.enter_context(s3_server())
        proxy, url = parts.enter_context(fault_proxy(server))
        resources = SampleResources(
            load_settings(_environ(Path(name), url, server)), frozen_clock=True
        )
        place_inputs(resources.world.folder, resources.data_root.store)
        counted = list(_build(resources, proxy))
        resources.ledger.close()
    print(f"{'asset':<24}{'partitions':>11}" + "".join(f"{kind:>8}" for kind in KINDS))
    for one in counted:
        figures = "".join(f"{one.requests.get(kind, 0):>8}" for kind in KINDS)
        print(f"{one.asset:<24}{one.partitions:>11}{figures}")
    found = {one.asset: {"partitions": one.partitions, **one.requests} for one in counted}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def _environ(folder: Path, url: str, server: str) -> dict[str, str]:
    return {
        **os.environ,
        "NEWS_PLATFORM_ROOT": f"s3://{new_bucket(server)}/root",
        "NEWS_PLATFORM_SAMPLE": "1",
        "NEWS_PLATFORM_SAMPLE_WORLD": str(folder / "world"),
        "NEWS_PLATFORM_S3_ENDPOINT": url,
        "NEWS_PLATFORM_S3_ACCESS_KEY": "key",
        "NEWS_PLATFORM_S3_SECRET_KEY": "secret",
        "NEWS_PLATFORM_ALLOW_HTTP": "1",
        "NEWS_PLATFORM_LEDGER_URL": f"sqlite:///{folder / 'ledger.sqlite'}",
    }


def _build(resources: Resources, proxy: FaultProxy) -> Iterator[Counted]:
    """Build what is out of date, asset by asset; the question itself is not counted."""
    defs = build_definitions(resources)
    with dg.DagsterInstance.ephemeral() as instance:
        for step in BUILD_ORDER:
            keys = sorted(step.stale(resources))
            add_partitions(instance, defs, step.asset, keys)
            proxy.seen.clear()
            for key in keys:
                _materialise(defs, step.asset, None if key == WHOLE else key, instance)
            yield Counted(step.asset, len(keys), Counter(map(_kind, proxy.seen)))


def _materialise(
    defs: dg.Definitions, asset: str, partition: str | None, instance: dg.DagsterInstance
) -> None:
    defs.resolve_implicit_global_asset_job_def().execute_in_process(
        asset_selection=[dg.AssetKey(asset)], partition_key=partition, instance=instance
    )


def _kind(request: Request) -> str:
    is_list = request.method == "GET" and "list-type" in request.query
    return "DELETE" if "delete" in request.query else "LIST" if is_list else request.method


if __name__ == "__main__":
    main()
