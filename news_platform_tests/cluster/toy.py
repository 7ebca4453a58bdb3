"""A code location with one slow asset, so that a test can kill its worker."""

import logging
import os
import time
from pathlib import Path

import dagster as dg

from news_platform.defs.runs import run_naming_resources
from news_platform.storage.objects.store import open_store

FOLDER = Path(os.environ.get("TOY_FOLDER", "."))
SECONDS = float(os.environ.get("TOY_SECONDS", "2"))
KEYS = [f"p{number:02}" for number in range(20)]


_log = logging.getLogger("news_platform.toy")


@dg.asset(partitions_def=dg.StaticPartitionsDefinition(KEYS), required_resource_keys={"platform"})
def toy(context: dg.AssetExecutionContext) -> None:
    """Write one file per partition slowly, after another file that marks the start."""
    key = context.partition_key
    (FOLDER / f"{key}.began").touch()
    _log.warning("the toy begins")
    time.sleep(SECONDS)
    open_store(str(FOLDER)).put(f"{key}.txt", f"{key}\n".encode() * 3)


defs = dg.Definitions([toy], resources=run_naming_resources(None), executor=dg.in_process_executor)
