"""Observing the partitions of external assets."""

from collections.abc import Mapping

import dagster as dg

from news_platform.defs.sensors import observe_changes
from news_platform.storage.objects.store import ObjectStore


def test_changed_files_of_an_external_asset_are_observed_once_and_new_keys_become_partitions(
    local_store: ObjectStore,
) -> None:
    keys = dg.DynamicPartitionsDefinition(name="keys")
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("keys", ["a"])

        def tick(cursor: str | None, found: Mapping[str, str]) -> dg.SensorResult:
            context = dg.build_sensor_context(instance=instance, cursor=cursor)
            return observe_changes(context, local_store, "files", found, keys)

        first = tick(None, {"b": "1", "a": "1"})
        second = tick(first.cursor, {"b": "1", "a": "2"})
        assert _seen(tick(second.cursor, {"b": "1", "a": "2"})) == []
    assert [(event.partition, event.metadata["fingerprint"].value) for event in _seen(first)] == [
        ("a", "1"),
        ("b", "1"),
    ]
    assert [event.partition for event in _seen(second)] == ["a"]
    (request,) = first.dynamic_partitions_requests or ()
    assert list(request.partition_keys) == ["b"]


def _seen(result: dg.SensorResult) -> list[dg.AssetObservation]:
    return [event for event in result.asset_events if isinstance(event, dg.AssetObservation)]
