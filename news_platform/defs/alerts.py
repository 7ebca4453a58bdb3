"""Report a failed run: one line in the log, and a POST if a webhook is set.

An alert contains no secret: the values of secret settings, passwords in URLs and signed query
parameters are replaced. If the webhook does not answer, the sensor logs that after a few tries and
continues with the next run.
"""

import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from logging import Logger

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG

from news_platform.defs.runs import (
    RANGE_END_TAG,
    RANGE_START_TAG,
    REQUEST_TAG,
    run_assets,
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


def failed_run(run: dg.DagsterRun, error: str, settings: Settings) -> Alert:
    """Describe a failed run; `error` is the text of its first error."""
    # Cut after the secrets are gone, else a part of one could stay.
    error = redacted(error, secret_values(settings))[:_LONGEST_ERROR]
    assets = ", ".join(sorted(run_assets(run)))
    partition = _partition(run)
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


@dg.run_failure_sensor(
    name="alert_on_run_failure",
    description="Reports each failed run that no sensor requested: sensors report their own.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
)
def alert_on_run_failure(
    context: dg.RunFailureSensorContext, data_root: dg.ResourceParam[DataRoot]
) -> None:
    """Report one failed run, unless it will be retried or a sensor requested it."""
    run = context.dagster_run
    if run.tags.get(_WILL_RETRY_TAG) == "true":
        context.log.info("run %s failed and will be retried", run.run_id)
        return
    if REQUEST_TAG in run.tags:
        # It knows whether this has just begun, and later when it is over: it reports both.
        context.log.info("run %s failed; the sensor that requested it reports that", run.run_id)
        return
    settings = data_root.settings
    send_alert(context.log, settings, failed_run(run, _first_error(context), settings))


defs = dg.Definitions(sensors=[alert_on_run_failure])
