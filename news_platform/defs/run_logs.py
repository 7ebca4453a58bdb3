"""Name the run, its assets and its partition in every log line of the process that executes it."""

from collections.abc import Mapping

import dagster as dg

from news_platform.defs.runs import run_partition
from news_platform.logs import bind_process

_SHOWN_ASSETS = 3


def naming_runs(resources: Mapping[str, object]) -> Mapping[str, dg.ResourceDefinition]:
    """Return resources that name the run which opens them in the log lines of all threads.

    A process executes one run at a time: the executor runs its steps in the process of the run. A
    run is named until the next one opens its resources.
    """
    return {name: _naming(value) for name, value in resources.items()}


def _naming(value: object) -> dg.ResourceDefinition:
    # Not a generator: whoever calls a sensor directly would have to open a context for it.
    def named(context: dg.InitResourceContext) -> object:
        # A sensor or schedule has no run: several are evaluated at a time, in threads.
        if context.run is not None:
            bind_process(**run_facts(context.run))
        return value

    return dg.ResourceDefinition(named)


def dagster_log_format(form: str) -> str:
    """Return the name that Dagster has for a format of ours, for its own services."""
    return "json" if form == "json" else "colored"


def run_facts(run: dg.DagsterRun) -> dict[str, str]:
    """Return what the log lines of a run are about."""
    assets = sorted(key.to_user_string() for key in run.asset_selection or ())
    shown = ",".join(assets[:_SHOWN_ASSETS]) + (",..." if len(assets) > _SHOWN_ASSETS else "")
    return {
        "run_id": run.run_id,
        "asset": shown or run.job_name,
        "partition": run_partition(run),
    }
