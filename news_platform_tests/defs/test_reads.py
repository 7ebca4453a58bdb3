"""Every dataset that a build reads is a declared parent: else nothing is stale when it changes."""

from news_platform.datasets.registry import DATASETS, stored_parents
from news_platform.defs.runs import CRAWL_OUTPUTS
from news_platform_tests.servers.demo import Demo

# Every builder obeys the requests for removal; `takedowns` removes rows of every dataset.
_EVERYWHERE = {"takedowns"}
# The rows of a day whose pages have expired lie only in the store that is built from the day.
_BACKWARDS = {("domain_buckets", "domain_store")}


def test_every_dataset_that_a_build_reads_is_a_declared_parent(finished_demo: Demo) -> None:
    undeclared = {
        asset: found
        for asset, read in finished_demo.reads.items()
        if asset not in _EVERYWHERE and (found := _undeclared(asset, read))
    }
    assert undeclared == {}
    assert "domain_metadata" in finished_demo.reads["training_export"], "the record sees reads"


def _undeclared(asset: str, read: list[str]) -> set[str]:
    """Return the assets that were read, without those that this one declares or writes itself."""
    written = set(CRAWL_OUTPUTS) if asset in CRAWL_OUTPUTS else {asset}
    parents = {it.dataset for name in written for it in stored_parents(DATASETS[name])}
    found = {DATASETS[name].writer for name in read} - written - parents - _EVERYWHERE
    return {one for one in found if (asset, one) not in _BACKWARDS}
