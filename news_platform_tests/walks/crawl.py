"""Walk one WARC record from the sensor to `store get`, as the daemon and a user would."""

import sys
from pathlib import Path

import dagster as dg

from news_platform.cli.main import main
from news_platform.definitions import defs
from news_platform.storage.commit.root import claim_root, resume
from news_platform.storage.objects.store import open_store
from news_platform_tests.walks.steps import Walk

# Each sensor, and the asset that it requests.
FOLLOWING = (
    ("new_warc_paths", "raw_news"),
    ("follow_domain_buckets", "domain_buckets"),
    ("follow_domain_store", "domain_store"),
)


def walk(root: Path, domain: str) -> None:
    """Tick each sensor and run what it requests, then look the domain up."""
    store = open_store(str(root))
    claim_root(store, sample=False)
    resume(store)  # a new root starts paused
    with dg.DagsterInstance.ephemeral() as instance:
        steps = Walk(defs, instance)
        for sensor, asset in FOLLOWING:
            steps.begin(f"sensor `{sensor}`")
            requests = steps.tick(sensor)
            assert len(requests) == 1, (sensor, requests)
            steps.begin(f"asset `{asset}`")
            steps.run(asset, requests[0].partition_key)
        steps.begin("`news-platform store get`")
        main(["store", "get", domain, "--root", str(root)], standalone_mode=False)


if __name__ == "__main__":
    walk(Path(sys.argv[1]), sys.argv[2])
