"""The doors as Dagster resources: plain objects, so that no setting enters run configuration."""

from collections.abc import Mapping

from news_platform.resources import Doors


def resources(doors: Doors) -> Mapping[str, object]:
    """Return what assets and sensors ask for by name, as `dg.ResourceParam[DataRoot]` and so on."""
    return {
        "data_root": doors.data_root,
        "crawl": doors.crawl,
        "web": doors.web,
        "ledger": doors.ledger,
        "clock": doors.clock,
    }
