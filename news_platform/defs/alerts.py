"""Report a failed run: one line in the log, and a POST if a webhook is set.

An alert contains no secret: the values of secret settings, passwords in URLs and signed query
parameters are replaced. If the webhook does not answer, the sensor logs that after a few tries and
continues with the next run.
"""

import re
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from logging import Logger

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG

from news_platform.defs.runs import (
    ATTEMPT_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    REQUEST_TAG,
    run_assets,
    run_failure,
)
from news_platform.errors import ConfigError, FetchError, redacted
from news_platform.resources import DataRoot
from news_platform.settings import Settings, secret_values
from news_platform.web.webhook import PostRejected, post_json

# A sensor tick may take a minute; three tries with their pauses take less than a third of that.
TRIES = 3
TIMEOUT_SECONDS = 5.0
PAUSE_SECONDS = 1.0
_LONGEST_ERROR = 1_000
# Dagster sets this tag on a failed run that it will retry.
_WILL_RETRY_TAG = "dagster/will_retry"
_SENSOR_TAG = "dagster/sensor_name"
# Runs of one sensor that may end between two looks at failed runs.
_LATEST_RUNS = 50
_MODULE = re.compile(r"^(?:\w+\.)+(?=\w+: )")


@dataclass(frozen=True, slots=True)
class Alert:
    """The report of a failed run; `text` is the line that chat systems show."""

    text: str
    job: str
    assets: str
    partition: str
    run_id: str
    error: str

    @classmethod
    def about(cls, asset: str, text: str, *, error: str = "") -> "Alert":
        """Return an alert about an asset as a whole."""
        shown = f"{text} (see docs/runbook.md)"
        return cls(shown, job="", assets=asset, partition="", run_id="", error=error)


def alert_of(context: dg.RunFailureSensorContext, *, secrets: Collection[str]) -> Alert:
    """Describe the failed run of a sensor context."""
    run = context.dagster_run
    assets = ", ".join(sorted(run_assets(run)))
    partition = _partition(run)
    error = redacted(_first_error(context), secrets)[:_LONGEST_ERROR]
    what = " ".join(part for part in (assets or run.job_name, partition) if part)
    text = f"{what} failed in run {run.run_id}: {error.strip().splitlines()[0]}"
    return Alert(
        f"{text} (see docs/runbook.md)",
        job=run.job_name,
        assets=assets,
        partition=partition,
        run_id=run.run_id,
        error=error,
    )


def _partition(run: dg.DagsterRun) -> str:
    """Return the partition of a run, or the first and last of several."""
    if RANGE_START_TAG in run.tags:
        return f"{run.tags[RANGE_START_TAG]}...{run.tags[RANGE_END_TAG]}"
    return run.tags.get(PARTITION_NAME_TAG, "")


def _first_error(context: dg.RunFailureSensorContext) -> str:
    """Return the error of the first failed step, or else that of the run."""
    for event in context.get_step_failure_events():
        error = event.step_failure_data.error
        if error is not None:
            return _MODULE.sub("", (error.cause or error).message)
    return context.failure_event.message or "no error message"


def post_alert(
    url: str, alert: Alert, *, pause: Callable[[float], None] = time.sleep, tries: int = TRIES
) -> None:
    """Post the alert as JSON; if all tries fail, raise a FetchError that does not name the URL."""
    if not url.lower().startswith(("http://", "https://")):
        raise ConfigError("invalid NEWS_PLATFORM_ALERT_WEBHOOK: expected an http(s):// URL")
    reason = ""
    for attempt in range(1, tries + 1):
        try:
            post_json(url, asdict(alert), timeout_seconds=TIMEOUT_SECONDS)
        except FetchError as error:
            reason = str(error)
            if isinstance(error, PostRejected):
                break
        else:
            return
        if attempt < tries:
            pause(PAUSE_SECONDS * attempt)
    raise FetchError(f"the alert webhook did not accept an alert: {reason}", reason="webhook")


def send_alert(log: Logger, settings: Settings, alert: Alert) -> None:
    """Log an alert and post it to the webhook, if one is set; a webhook that fails is logged."""
    log.error("ALERT %s", _redacted(alert, settings).text)
    try:
        post_message(settings, alert)
    except (FetchError, ConfigError) as error:
        log.error("%s", error)


def post_message(settings: Settings, alert: Alert) -> None:
    """Post an alert to the webhook, if one is set; raise FetchError if it is not accepted."""
    if settings.alerts.webhook_url is not None:
        post_alert(settings.alerts.webhook_url, _redacted(alert, settings))


def _redacted(alert: Alert, settings: Settings) -> Alert:
    secrets = secret_values(settings)
    return Alert(**{name: redacted(text, secrets) for name, text in asdict(alert).items()})


def has_begun(context: dg.RunFailureSensorContext) -> bool:
    """Return whether a failure is new: its sensor tries what fails again and again, for ever.

    A partition's first failure is new, unless the run before it, of any partition of the asset,
    failed in the same way: then it is the same outage.
    """
    run, instance = context.dagster_run, context.instance
    if REQUEST_TAG not in run.tags:
        return True
    outcome = run_failure(instance, run.run_id)
    if outcome.is_final:
        return True
    if run.tags.get(ATTEMPT_TAG, "1") != "1":
        return False
    before = _run_before(instance, run)
    if before is None or before.status != dg.DagsterRunStatus.FAILURE:
        return True
    return run_failure(instance, before.run_id).kind != outcome.kind


def _run_before(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRun | None:
    """Return the run of the same sensor that ended last before this one was reported."""
    ended = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
    sensor = {_SENSOR_TAG: run.tags.get(_SENSOR_TAG, "")}
    records = instance.get_run_records(
        filters=dg.RunsFilter(tags=sensor, statuses=ended), limit=_LATEST_RUNS
    )
    mine = next((one.end_time or 0 for one in records if one.dagster_run.run_id == run.run_id), 0)
    older = [one for one in records if (one.end_time or 0) < mine]
    return max(older, key=lambda one: one.end_time or 0).dagster_run if older else None


@dg.run_failure_sensor(
    name="tell_of_failed_runs",
    description="Logs each run that begins to fail and posts it to the alert webhook.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
)
def tell_of_failed_runs(
    context: dg.RunFailureSensorContext, data_root: dg.ResourceParam[DataRoot]
) -> None:
    """Report one failed run, unless it will be retried or is known to fail."""
    run_id = context.dagster_run.run_id
    if context.dagster_run.tags.get(_WILL_RETRY_TAG) == "true":
        context.log.info("run %s failed and will be retried", run_id)
        return
    if not has_begun(context):
        context.log.info("run %s failed again; its sensor goes on trying", run_id)
        return
    settings = data_root.settings
    send_alert(context.log, settings, alert_of(context, secrets=secret_values(settings)))


defs = dg.Definitions(sensors=[tell_of_failed_runs])
