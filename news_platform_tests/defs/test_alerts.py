"""What a person is told of a failed run, against a real webhook on loopback."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest

from news_platform.defs.alerts import (
    TRIES,
    Alert,
    alert_on_red_checks,
    alert_on_run_failure,
    post_alert,
)
from news_platform.defs.ccnews_checks import rows_equal_markers
from news_platform.defs.checks import Reporter
from news_platform.defs.runs import RANGE_END_TAG, RANGE_START_TAG, REQUEST_TAG
from news_platform.errors import ConfigError, FetchError, InputError, redacted
from news_platform.resources import Resources
from news_platform.setting_sections.platform import AlertSettings
from news_platform.settings import Settings
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.servers.dagster_ui import free_port
from news_platform_tests.servers.webhook import SECRET, Webhook, serve_webhook

ALERT = Alert(
    "raw_news 2025-11-01 failed", "job", "raw_news", "2025-11-01", "run-1", "no such WARC"
)


@pytest.fixture(autouse=True)
def _secret_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWS_PLATFORM_S3_SECRET_KEY", f"{SECRET}-key")


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with serve_webhook(Webhook()) as running:
        yield running


def test_a_webhook_that_stumbles_is_tried_again_with_growing_pauses(webhook: Webhook) -> None:
    webhook.answers = [503, 429, *[503] * (TRIES - 3)]
    pauses: list[float] = []
    post_alert(webhook.url, ALERT, pause=pauses.append)
    assert len(webhook.bodies) == TRIES
    assert pauses == sorted(pauses) and len(pauses) == TRIES - 1


@pytest.mark.parametrize(("status", "tries"), [(500, TRIES), (404, 1)], ids=["away", "refused"])
def test_an_alert_is_sent_a_bounded_number_of_times(
    webhook: Webhook, status: int, tries: int
) -> None:
    webhook.answers = [status] * 99
    with pytest.raises(FetchError, match=f"HTTP {status}") as raised:
        post_alert(webhook.url, ALERT, pause=lambda seconds: None)
    assert len(webhook.bodies) == tries
    assert SECRET not in str(raised.value)


def test_a_webhook_that_nobody_serves_is_named_by_its_error_and_not_its_url() -> None:
    url = f"http://127.0.0.1:{free_port()}/{SECRET}"
    with pytest.raises(FetchError, match="ConnectionRefusedError") as raised:
        post_alert(url, ALERT, pause=lambda seconds: None)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("url", [f"file:///{SECRET}", ""])
def test_a_webhook_that_is_no_web_address_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(ConfigError, match="NEWS_PLATFORM_ALERT_WEBHOOK") as raised:
        post_alert(url, ALERT)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key abcdef and abc", "key *** and ***"),
        ("postgresql+psycopg2://user:hidden@db/x", "postgresql+psycopg2://***@db/x"),
        ("GET https://s3/x?X-Amz-Signature=af12&v=1", "GET https://s3/x?X-Amz-Signature=***&v=1"),
        ("token=hidden", "token=***"),
        ("a 'key=1' is fine", "a 'key=***' is fine"),
        ("nothing to hide: 12:30 a@b", "nothing to hide: 12:30 a@b"),
    ],
    ids=["settings", "password in a URL", "signed query", "token", "quoted", "plain"],
)
def test_a_text_keeps_its_sense_and_loses_its_secrets(text: str, shown: str) -> None:
    assert redacted(text, {"abc", "abcdef"}) == shown


DAYS = dg.StaticPartitionsDefinition(["2025-11-01", "2025-11-02"])
ALL_SECRETS = f"cannot read s3 with {SECRET}-key at https://u:{SECRET}-p@host/x?sig={SECRET}"


@dg.asset(partitions_def=DAYS)
def doomed() -> None:
    """An asset whose error carries all it should not."""
    raise dg.Failure(ALL_SECRETS)


@dg.asset(partitions_def=DAYS, backfill_policy=dg.BackfillPolicy.multi_run(2))
def poisoned() -> None:
    """An asset that a retry does not help."""
    raise InputError("not a WARC")


def _tick(
    instance: dg.DagsterInstance,
    settings: Settings,
    tags: Mapping[str, str] | None = None,
    asset: dg.AssetsDefinition = doomed,
) -> None:
    """Let a run of an asset fail, and evaluate the sensor for it."""
    job = dg.Definitions(assets=[asset]).resolve_implicit_global_asset_job_def()
    done = job.execute_in_process(
        instance=instance,
        partition_key=None if RANGE_START_TAG in (tags or {}) else "2025-11-01",
        asset_selection=[asset.key],
        tags=dict(tags or {}),
        raise_on_error=False,
    )
    context = dg.build_run_status_sensor_context(
        sensor_name=alert_on_run_failure.name,
        dagster_instance=instance,
        dagster_run=done.dagster_run,
        dagster_event=done.get_run_failure_event(),
    ).for_run_failure()
    alert_on_run_failure(context, platform=Resources(settings))


def _settings(root: Path, url: str | None) -> Settings:
    return Settings(root=str(root), alerts=AlertSettings(webhook_url=url))


def test_a_failed_run_is_told_with_its_asset_partition_and_reason_and_no_secret(
    webhook: Webhook, tmp_path: Path
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        _tick(instance, _settings(tmp_path, webhook.url))
    (body,) = webhook.bodies
    assert body["text"].startswith("doomed 2025-11-01 failed in run ")
    assert ": Failure: cannot read s3 with ***" in body["text"]
    assert "docs/runbook.md" in body["text"]
    assert SECRET not in json.dumps(body)


def test_without_a_webhook_the_alert_is_a_line_in_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        _tick(instance, _settings(tmp_path, None))
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "ALERT" in line]
    assert "doomed 2025-11-01 failed" in line
    assert "Failure: cannot read s3 with ***" in line
    assert SECRET not in line


@pytest.mark.parametrize("tag", ["dagster/will_retry", REQUEST_TAG], ids=["dagster", "its sensor"])
def test_a_run_that_is_tried_again_is_not_told_yet(
    webhook: Webhook, tmp_path: Path, tag: str
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        _tick(instance, _settings(tmp_path, webhook.url), {tag: "true"})
    assert webhook.bodies == []


def test_a_permanent_failure_of_one_partition_is_reported_at_once(
    webhook: Webhook, tmp_path: Path
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        given, tags = _settings(tmp_path, webhook.url), {REQUEST_TAG: "poisoned"}
        _tick(instance, given, tags, poisoned)
        ends = {RANGE_START_TAG: "2025-11-01", RANGE_END_TAG: "2025-11-02"}
        _tick(instance, given, tags | ends, poisoned)
    (body,) = webhook.bodies
    assert body["text"].startswith("poisoned 2025-11-01 failed in run ")
    assert ": InputError: not a WARC (see docs/runbook.md)" in body["text"]


def test_a_dead_webhook_does_not_stop_the_sensor(webhook: Webhook, tmp_path: Path) -> None:
    webhook.answers = [403]
    with dg.DagsterInstance.ephemeral() as instance:
        _tick(instance, _settings(tmp_path, webhook.url))
        _tick(instance, _settings(tmp_path, webhook.url))
    assert len(webhook.bodies) == 2


def test_a_red_check_is_reported_by_name_when_it_begins_and_when_it_is_over(
    local_store: ObjectStore,
) -> None:
    cursor = None
    with serve_webhook(Webhook()) as webhook, dg.instance_for_test() as instance:
        settings = Settings(root=local_store.url, alerts=AlertSettings(webhook_url=webhook.url))
        for passed in (False, False, True):
            result = dg.AssetCheckResult(passed=passed)
            Reporter(instance, str(uuid4())).report(rows_equal_markers, "2025-11-01", result)
            context = dg.build_sensor_context(
                instance=instance, cursor=cursor, resources={"platform": Resources(settings)}
            )
            tick = alert_on_red_checks(context)
            assert isinstance(tick, dg.SensorResult)
            cursor = tick.cursor
    texts = [body["text"].removesuffix(" (see docs/runbook.md)") for body in webhook.bodies]
    assert texts == [
        "raw_news check rows_equal_markers is red for 2025-11-01",
        "raw_news check rows_equal_markers is over",
    ]
