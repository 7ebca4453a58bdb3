"""Our resources as Dagster resources: plain objects, so no setting enters run configuration."""

from collections.abc import Mapping

from news_platform.resources import Resources


def dagster_resources(resources: Resources) -> Mapping[str, object]:
    """Return what assets and sensors ask for by name, as `dg.ResourceParam[DataRoot]` and so on."""
    return {
        "data_root": resources.data_root,
        "crawl": resources.crawl,
        "web": resources.web,
        "ledger": resources.ledger,
        "clock": resources.clock,
    }
