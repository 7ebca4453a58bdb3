"""Tell a person of a failed run: one line in the log, and a POST where a webhook is set.

What is told holds no secret: the values of secret settings, passwords in URLs and signed queries
are blotted out first. A webhook that does not answer costs a few tries and a line in the log; the
sensor goes on to the next run.
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

# A tick of Dagster may take a minute; three tries and their pauses stay below a third of it.
TRIES = 3
TIMEOUT_SECONDS = 5.0
PAUSE_SECONDS = 1.0
_LONGEST_ERROR = 1_000
_BLOT = "***"
# Dagster sets it on a failed run that it starts again by itself.
_WILL_RETRY_TAG = "dagster/will_retry"
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")
_MODULE = re.compile(r"^(?:\w+\.)+(?=\w+: )")
_QUERY = re.compile(r"(?i)\b([a-z_-]*(?:key|token|secret|signature|password|sig)=)[^&\s'\"]+")


@dataclass(frozen=True, slots=True)
class Alert:
    """What is told of a failed run; `text` is the line that chat systems show."""

    text: str
    job: str
    assets: str
    partition: str
    run_id: str
    error: str


def redacted(text: str, secrets: Collection[str]) -> str:
    """Return the text without secrets, longest first so that no part of one stays."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _BLOT)
    return _QUERY.sub(rf"\1{_BLOT}", _CREDENTIALS.sub(_BLOT, text))


def alert_of(context: dg.RunFailureSensorContext, *, secrets: Collection[str]) -> Alert:
    """Describe the failed run of a sensor's context."""
    run = context.dagster_run
    assets = ", ".join(sorted(key.to_user_string() for key in run.asset_selection or ()))
    partition = run.tags.get("dagster/partition", "")
    error = redacted(_first_error(context), secrets)[:_LONGEST_ERROR]
    what = " ".join(part for part in (assets or run.job_name, partition) if part)
    text = f"{what} failed in run {run.run_id}: {error.strip().splitlines()[0]}"
    return Alert(
        f"{text} (docs/runbook.md says what to do)",
        job=run.job_name,
        assets=assets,
        partition=partition,
        run_id=run.run_id,
        error=error,
    )


def _first_error(context: dg.RunFailureSensorContext) -> str:
    """Return what the first failed step says, else what the run says."""
    for event in context.get_step_failure_events():
        error = event.step_failure_data.error
        if error is not None:
            return _MODULE.sub("", (error.cause or error).message)
    return context.failure_event.message or "no reason given"


def post_alert(
    url: str, alert: Alert, *, pause: Callable[[float], None] = time.sleep, tries: int = TRIES
) -> None:
    """Send the alert as JSON; raise FetchError, which never names the URL, when all tries fail."""
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
    raise FetchError(f"the alert webhook did not take an alert: {reason}", reason="webhook")


def _request(url: str, alert: Alert) -> urllib.request.Request:
    if not url.lower().startswith(("http://", "https://")):
        raise ConfigError("NEWS_PLATFORM_ALERT_WEBHOOK is not an http:// or https:// URL")
    headers = {"Content-Type": "application/json", "User-Agent": "news-platform"}
    return urllib.request.Request(url, json.dumps(asdict(alert)).encode(), headers, method="POST")


def _send(request: urllib.request.Request) -> tuple[str, bool]:
    """Return why a try failed ("" when it did not), and whether another would fail the same way."""
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
            return "", True
    except urllib.error.HTTPError as error:
        error.close()
        return f"HTTP {error.code}", error.code < 500 and error.code not in (408, 429)
    except (OSError, ValueError) as error:  # the text of these may hold the URL: tell the type only
        return type(getattr(error, "reason", error)).__name__, isinstance(error, ValueError)


@dg.run_failure_sensor(
    name="tell_of_failed_runs",
    description="Writes an alert for each run that failed for good, and posts it to the webhook.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
)
def tell_of_failed_runs(
    context: dg.RunFailureSensorContext, data_root: dg.ResourceParam[DataRoot]
) -> None:
    """Tell of one failed run, unless Dagster starts it again by itself."""
    if context.dagster_run.tags.get(_WILL_RETRY_TAG) == "true":
        context.log.info("run %s failed and is tried again", context.dagster_run.run_id)
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
