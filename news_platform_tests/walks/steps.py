"""The steps of a walk: tick a sensor, run an asset, and mark in the log where each begins."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg


@dataclass(frozen=True)
class Walk:
    """The definitions and the instance that a walk runs on."""

    defs: dg.Definitions
    instance: dg.DagsterInstance

    def begin(self, step: str) -> None:
        """Mark the beginning of a step in the log."""
        importlib.import_module("sitecustomize").begin_step(step)

    def tick(self, sensor: str) -> Sequence[dg.RunRequest]:
        """Evaluate a sensor as the daemon does; return the runs it requests."""
        context = dg.build_sensor_context(
            instance=self.instance, definitions=self.defs, resources=self.defs.resources
        )
        result = self.defs.resolve_sensor_def(sensor)(context)
        assert isinstance(result, dg.SensorResult), result
        for request in result.dynamic_partitions_requests or ():
            self.instance.add_dynamic_partitions(
                request.partitions_def_name, list(request.partition_keys)
            )
        return result.run_requests or ()

    def run(self, asset: str, partition: str | None) -> None:
        """Materialise an asset, without the checks that run as steps of their own."""
        own_checks = self.defs.resolve_assets_def(asset).check_keys
        selection = dg.AssetSelection.assets(asset).without_checks() | dg.AssetSelection.checks(
            *own_checks
        )
        job = dg.define_asset_job(f"walk_{asset}", selection=selection)
        merged = dg.Definitions.merge(self.defs, dg.Definitions(jobs=[job]))
        result = merged.resolve_job_def(job.name).execute_in_process(
            partition_key=partition, instance=self.instance
        )
        assert result.success
