"""Report failed runs, red checks and failing ticks: a log line, and a POST if a webhook is set.

An alert contains no secret: the values of secret settings, passwords in URLs and signed query
parameters are replaced. If the webhook does not answer, the sensor logs that after a few tries and
continues with the next run.
"""

import json
import os
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from logging import Logger

import dagster as dg
from dagster._core.scheduler.instigation import TickStatus

from news_platform.defs.checks import red_partitions
from news_platform.defs.rebuild_rules import Platform
from news_platform.defs.runs import (
    LOST,
    RANGE_START_TAG,
    REQUEST_TAG,
    run_assets,
    run_failure,
    run_partition,
)
from news_platform.errors import ConfigError, FetchError, redacted
from news_platform.settings import Settings, environment_secrets
from news_platform.web.webhook import PostRejected, post_json

# A sensor tick may take a minute; three tries with their pauses take less than a third of that.
TRIES = 3
TIMEOUT_SECONDS = 5.0
PAUSE_SECONDS = 1.0
_LONGEST_TEXT = 1_000
_SHOWN = 3
# Dagster sets this tag on a failed run that it will retry.
_WILL_RETRY_TAG = "dagster/will_retry"


@dataclass(frozen=True, slots=True)
class Alert:
    """The report of a failed run; `text` is the line that chat systems show."""

    text: str
    job: str = ""
    assets: str = ""
    partition: str = ""
    run_id: str = ""
    error: str = ""

    @classmethod
    def of_run(cls, run: dg.DagsterRun, error: str) -> "Alert":
        """Describe a failed run; `error` is the text of its first error."""
        assets, partition = ", ".join(sorted(run_assets(run))), run_partition(run)
        what = f"{assets or run.job_name} {partition}".strip()
        text = f"{what} failed in run {run.run_id}: {error}"
        return cls(text, run.job_name, assets, partition, run.run_id, error)


def send_alert(log: Logger, settings: Settings, alert: Alert) -> None:
    """Log an alert and post it to the webhook, if one is set; a webhook that fails is logged."""
    log.error("ALERT %s", _printable(alert).text)
    try:
        post_message(settings, alert)
    except (FetchError, ConfigError) as error:
        log.error("%s", error)


def post_message(settings: Settings, alert: Alert) -> None:
    """Post an alert to the webhook, if one is set; raise FetchError if it is not accepted."""
    if settings.alerts.webhook_url is not None:
        secret = settings.alerts.webhook_secret or ""
        post_alert(settings.alerts.webhook_url, _printable(alert), secret=secret)


def _printable(alert: Alert) -> Alert:
    """Return the alert without secrets; cut after they are gone, else a part of one could stay."""
    secrets = environment_secrets(os.environ)
    texts = {name: redacted(text, secrets) for name, text in asdict(alert).items()}
    short = Alert(**{name: text[:_LONGEST_TEXT] for name, text in texts.items()})
    return replace(short, text=f"{short.text} (see docs/runbook.md)")


def post_alert(
    url: str, alert: Alert, *, secret: str = "", pause: Callable[[float], None] = time.sleep
) -> None:
    """Post the alert as JSON; if all tries fail, raise a FetchError that does not name the URL."""
    if not url.lower().startswith(("http://", "https://")):
        raise ConfigError("invalid NEWS_PLATFORM_ALERT_WEBHOOK: expected an http(s):// URL")
    reason = ""
    for attempt in range(1, TRIES + 1):
        try:
            post_json(url, asdict(alert), secret=secret, timeout_seconds=TIMEOUT_SECONDS)
        except FetchError as error:
            reason = str(error)
            if isinstance(error, PostRejected):
                break
        else:
            return
        if attempt < TRIES:
            pause(PAUSE_SECONDS * attempt)
    raise FetchError(f"the alert webhook did not accept an alert: {reason}", reason="webhook")


@dg.run_failure_sensor(
    name="alert_on_run_failure",
    description="Reports each failed run that is not retried; sensors report what they retry.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
)
def alert_on_run_failure(context: dg.RunFailureSensorContext, platform: Platform) -> None:
    """Report one failed run, unless it will be retried."""
    run = context.dagster_run
    error = run_failure(context.instance, run.run_id)
    # A sensor reports when a kind of error begins and when it is over. A run of several partitions
    # is never final to it: it builds each of them alone.
    is_retried = REQUEST_TAG in run.tags and (RANGE_START_TAG in run.tags or not error.is_final)
    if is_retried or run.tags.get(_WILL_RETRY_TAG) == "true":
        context.log.info("run %s failed and will be retried", run.run_id)
        return
    text = context.failure_event.message if error == LOST else error.text()
    send_alert(context.log, platform.settings, Alert.of_run(run, text or error.text()))


@dg.sensor(
    name="alert_on_red_checks",
    description="Reports checks that turn red and ticks that fail, and when either is over.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=300,
)
def alert_on_red_checks(
    context: dg.SensorEvaluationContext, platform: Platform
) -> dg.SensorResult | dg.SkipReason:
    """Compare what is wrong with what was wrong at the last tick."""
    now = {**_red_checks(context.instance), **_failing_ticks(context.instance)}
    before = _known(context.cursor)
    for name, text in now.items():
        if name not in before:
            asset = name.partition(" ")[0]
            send_alert(context.log, platform.settings, Alert(f"{name} {text}", assets=asset))
    for name in before - now.keys():
        send_alert(context.log, platform.settings, Alert(f"{name} is over", assets=""))
    text = "; ".join(f"{name} {why}" for name, why in now.items())
    return dg.SensorResult(
        skip_reason=text or "nothing is red or failing", cursor=json.dumps(sorted(now))
    )


def _known(cursor: str | None) -> set[str]:
    """Return what was wrong at the last tick; an unreadable cursor counts as none."""
    try:
        return set(map(str, json.loads(cursor or "[]")))
    except (ValueError, TypeError):
        return set()


def _red_checks(instance: dg.DagsterInstance) -> dict[str, str]:
    # Imported here: the graph is made of modules like this one.
    from news_platform.defs.graph import CHECKS

    return {
        f"{key.asset_key.to_user_string()} check {key.name}": f"is red for {_shown(keys)}"
        for key, keys in red_partitions(instance, CHECKS).items()
        if keys
    }


def _failing_ticks(instance: dg.DagsterInstance) -> dict[str, str]:
    found = {}
    for state in instance.all_instigator_state():
        ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
        if ticks and ticks[0].status is TickStatus.FAILURE:
            error = ticks[0].error
            message = " ".join(error.message.split()) if error else "no error was recorded"
            found[f"{state.name} tick"] = f"failed: {message}"
    return found


def _shown(keys: Collection[str]) -> str:
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return ", ".join(sorted(keys)[:_SHOWN]) + more
