"""Run `news-platform demo`, and record which datasets the build of each asset reads.

Run as a program with the path of the record and the arguments of the demo. Reads of worker
processes and of the ledger are not seen.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from news_platform.cli.main import run_command
from news_platform.datasets.registry import DATASETS
from news_platform.defs.services import demo
from news_platform.storage.objects.store import ObjectStore

# Everything that reads an object, or gives its address to Polars or Delta, passes one of these.
_READERS = ("read_with_info", "read_ranges", "stream", "uri")


def record(target: Path) -> None:
    """Record the datasets that each asset reads from now on."""
    found: dict[str, set[str]] = defaultdict(set)
    current = [""]
    for name in _READERS:
        setattr(ObjectStore, name, _recorded(getattr(ObjectStore, name), current, found))
    build = demo._build

    def named(asset: str, partition: str, run: demo.DemoRun) -> int | None:
        current[0] = asset
        try:
            return build(asset, partition, run)
        finally:
            current[0] = ""
            target.write_text(json.dumps({key: sorted(one) for key, one in found.items()}))

    demo._build = named


def _recorded(
    read: Callable[..., Any], current: list[str], found: dict[str, set[str]]
) -> Callable[..., Any]:
    @wraps(read)
    def recorded(store: ObjectStore, path: str, *args: Any, **given: Any) -> Any:
        if current[0]:
            key = store._key(path)
            found[current[0]] |= {
                name
                for name, dataset in DATASETS.items()
                if dataset.holds(key) or dataset.place.folder == key
            }
        return read(store, path, *args, **given)

    return recorded


if __name__ == "__main__":
    record(Path(sys.argv[1]))
    sys.argv = ["news-platform", *sys.argv[2:]]
    sys.exit(run_command())
