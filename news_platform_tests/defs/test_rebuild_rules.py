"""A rebuild rule finds stale partitions by fingerprint, or while something is due."""

from news_platform.datasets.dataset import WHOLE
from news_platform.defs.graph import BUILD_ORDER
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.defs.runs import CRAWL_OUTPUTS
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.defs.over import over


def test_an_asset_that_follows_the_clock_is_stale_while_it_is_due(local_store: ObjectStore) -> None:
    seen: list[str] = []

    def is_due(resources: object) -> bool:
        seen.append("asked")
        return len(seen) == 1

    rule = RebuildRule.when("toy", is_due)
    assert rule.stale(over(local_store)).keys() == {WHOLE}
    assert rule.stale(over(local_store)) == {}


def test_every_built_asset_comes_once_and_after_its_parents() -> None:
    from news_platform.definitions import defs

    order = [rule.asset for rule in BUILD_ORDER]
    assert len(set(order)) == len(order)
    graph = defs.resolve_asset_graph()
    built = {key.to_user_string() for key in graph.materializable_asset_keys}
    built -= set(CRAWL_OUTPUTS) - {"raw_news"}  # its run writes the others, too
    assert set(order) == built
    for at, name in enumerate(order):
        parents = {
            key.to_user_string()
            for node in graph.asset_nodes
            if node.key.to_user_string() == name
            for key in node.parent_keys
        }
        assert parents & built <= set(order[:at]), name
