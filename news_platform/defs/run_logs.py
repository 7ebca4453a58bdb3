"""Name the run, its assets and its partition in every log line of the process that executes it."""

from collections.abc import Iterator, Mapping

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG

from news_platform.defs.runs import RANGE_END_TAG, RANGE_START_TAG, run_assets
from news_platform.logs import bind_process

_SHOWN_ASSETS = 3


def naming_runs(resources: Mapping[str, object]) -> Mapping[str, dg.ResourceDefinition]:
    """Return resources that, while a run uses them, name it in the log lines of all threads.

    A process executes one run at a time: the executor runs its steps in the process of the run.
    """
    return {name: _naming(value) for name, value in resources.items()}


def _naming(value: object) -> dg.ResourceDefinition:
    def named(context: dg.InitResourceContext) -> Iterator[object]:
        run = context.run
        if run is None:  # a sensor or a schedule, of which several are evaluated at a time
            yield value
            return
        bind_process(**run_facts(run))
        try:
            yield value
        finally:
            bind_process()

    return dg.ResourceDefinition(named)


def dagster_log_format(form: str) -> str:
    """Return the name that Dagster has for a format of ours, for its own services."""
    return "json" if form == "json" else "colored"


def run_facts(run: dg.DagsterRun) -> dict[str, str]:
    """Return what the log lines of a run are about."""
    tags = run.tags
    assets = sorted(run_assets(run))
    shown = ",".join(assets[:_SHOWN_ASSETS]) + (",..." if len(assets) > _SHOWN_ASSETS else "")
    partition = tags.get(PARTITION_NAME_TAG, "")
    if RANGE_START_TAG in tags:
        partition = f"{tags[RANGE_START_TAG]}...{tags.get(RANGE_END_TAG, '')}"
    return {"run_id": run.run_id, "asset": shown or run.job_name, "partition": partition}
