"""Report a failed run: one line in the log, and a POST if a webhook is set.

An alert contains no secret: the values of secret settings, passwords in URLs and signed query
parameters are replaced. If the webhook does not answer, the sensor logs that after a few tries and
continues with the next run.
"""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass

import dagster as dg

from news_platform.errors import ConfigError, FetchError
from news_platform.resources import DataRoot
from news_platform.settings import secret_values

# A sensor tick may take a minute; three tries with their pauses take less than a third of that.
TRIES = 3
TIMEOUT_SECONDS = 5.0
PAUSE_SECONDS = 1.0
_LONGEST_ERROR = 1_000
_BLOT = "***"
# Dagster sets this tag on a failed run that it will retry.
_WILL_RETRY_TAG = "dagster/will_retry"
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")
_MODULE = re.compile(r"^(?:\w+\.)+(?=\w+: )")
_QUERY = re.compile(r"(?i)\b([a-z_-]*(?:key|token|secret|signature|password|sig)=)[^&\s'\"]+")


@dataclass(frozen=True, slots=True)
class Alert:
    """The report of a failed run; `text` is the line that chat systems show."""

    text: str
    job: str
    assets: str
    partition: str
    run_id: str
    error: str


def redacted(text: str, secrets: Collection[str]) -> str:
    """Replace all secrets in a text, the longest first so that no part of one remains."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _BLOT)
    return _QUERY.sub(rf"\1{_BLOT}", _CREDENTIALS.sub(_BLOT, text))


def alert_of(context: dg.RunFailureSensorContext, *, secrets: Collection[str]) -> Alert:
    """Describe the failed run of a sensor context."""
    run = context.dagster_run
    assets = ", ".join(sorted(key.to_user_string() for key in run.asset_selection or ()))
    partition = run.tags.get("dagster/partition", "")
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
    request = _request(url, alert)
    reason = ""
    for attempt in range(1, tries + 1):
        reason, is_final = _send(request)
        if not reason:
            return
        if is_final:
            break
        if attempt < tries:
            pause(PAUSE_SECONDS * attempt)
    raise FetchError(f"the alert webhook did not accept an alert: {reason}", reason="webhook")


def _request(url: str, alert: Alert) -> urllib.request.Request:
    if not url.lower().startswith(("http://", "https://")):
        raise ConfigError("invalid NEWS_PLATFORM_ALERT_WEBHOOK: expected an http(s):// URL")
    headers = {"Content-Type": "application/json", "User-Agent": "news-platform"}
    return urllib.request.Request(url, json.dumps(asdict(alert)).encode(), headers, method="POST")


def _send(request: urllib.request.Request) -> tuple[str, bool]:
    """Return why the request failed ("" if it did not), and whether a retry is useless."""
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
            return "", True
    except urllib.error.HTTPError as error:
        error.close()
        return f"HTTP {error.code}", error.code < 500 and error.code not in (408, 429)
    except (OSError, ValueError) as error:  # their messages may contain the URL
        return type(getattr(error, "reason", error)).__name__, isinstance(error, ValueError)


@dg.run_failure_sensor(
    name="tell_of_failed_runs",
    description="Logs each run that failed for good and posts it to the alert webhook.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
)
def tell_of_failed_runs(
    context: dg.RunFailureSensorContext, data_root: dg.ResourceParam[DataRoot]
) -> None:
    """Report one failed run, unless Dagster will retry it."""
    if context.dagster_run.tags.get(_WILL_RETRY_TAG) == "true":
        context.log.info("run %s failed and will be retried", context.dagster_run.run_id)
        return
    settings = data_root.settings
    alert = alert_of(context, secrets=secret_values(settings))
    context.log.error("ALERT %s", alert.text)
    if settings.alerts.webhook_url is None:
        return
    try:
        post_alert(settings.alerts.webhook_url, alert)
    except (FetchError, ConfigError) as error:
        context.log.error("%s", error)


defs = dg.Definitions(sensors=[tell_of_failed_runs])
