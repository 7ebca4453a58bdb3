"""Our resources as Dagster resources: plain objects, so no setting enters run configuration."""

from collections.abc import Mapping

from news_platform.resources import Resources


def dagster_resources(resources: Resources) -> Mapping[str, object]:
    """Return the resources by the parameter names of assets and sensors.

    `platform` is all of them, for sensors and schedules that compute staleness.
    """
    return {
        "platform": resources,
        "data_root": resources.data_root,
        "crawl": resources.crawl,
        "web": resources.web,
        "ledger": resources.ledger,
        "clock": resources.clock,
    }
