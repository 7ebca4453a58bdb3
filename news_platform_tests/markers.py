"""Give a marker another name, as another version of its builder would have."""

from news_platform.storage.commit.markers import Marker, read_report, write_marker
from news_platform.storage.objects.store import ObjectStore


def rename_marker(
    store: ObjectStore, dataset: str, marker: Marker, *, inputs: str, scope: str = ""
) -> None:
    """Replace a marker by one with the same report and another fingerprint or scope."""
    report = read_report(store, marker)
    write_marker(store, dataset, marker.partition, inputs=inputs, report=report, scope=scope)
