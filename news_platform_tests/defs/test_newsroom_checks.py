"""Silent feeds as red checks and alerts, and saved queries in a sensor of their own."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from news_platform.defs.rss_checks import (
    feeds_answer,
    feeds_keep_their_rhythm,
    notify_of_matches,
    sources_keep_their_texts,
    watch_feeds,
)
from news_platform.resources import Clock, Resources
from news_platform.rss.ledger.feed_rows import upsert_feed
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.setting_sections.platform import AlertSettings
from news_platform.settings import Settings
from news_platform.storage.commit.root import pause
from news_platform_tests.defs.over import resumed
from news_platform_tests.rss.ledger_rows import NOW, add_article, add_feed
from news_platform_tests.servers.webhook import Webhook, serve_webhook

FEED = "https://outlet.example/feed"


@dataclass(frozen=True)
class SetClock(Clock):
    """A clock that tests set."""

    moments: list[datetime] = field(default_factory=lambda: [NOW])

    def now(self) -> datetime:
        return self.moments[-1]


class DeskResources(Resources):
    """The resources of a root with a clock that tests set."""

    desk_clock = SetClock()

    @property
    def clock(self) -> Clock:
        return self.desk_clock


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with serve_webhook(Webhook()) as running:
        yield running


@pytest.fixture
def resources(tmp_path: Path, webhook: Webhook) -> Resources:
    alerts = AlertSettings(webhook_url=webhook.url)
    return DeskResources(Settings(root=resumed(str(tmp_path / "root")), alerts=alerts))


def tick(sensor: dg.SensorDefinition, resources: Resources) -> str:
    context = dg.build_sensor_context(resources={"platform": resources})
    result = sensor(context)
    assert isinstance(result, dg.SkipReason) and result.skip_message
    return result.skip_message


def set_feed(engine: sa.Engine, **values: Any) -> None:
    with write_transaction(engine) as change:
        upsert_feed(change, FEED, **values)


def test_a_silent_feed_is_a_red_check_that_names_it(resources: Resources) -> None:
    add_feed(resources.ledger.engine, FEED, usual_gap_seconds=3600, last_entry_date=NOW)
    for one in (feeds_keep_their_rhythm, feeds_answer, sources_keep_their_texts):
        assert one.evaluate(resources, "all").passed
    set_feed(resources.ledger.engine, last_entry_date=NOW - timedelta(days=2))
    result = feeds_keep_their_rhythm.evaluate(resources, "all")
    assert not result.passed and "outlet.example" in str(result.metadata["first"])


def test_an_alarm_and_its_healing_are_posted_once_each(
    resources: Resources, webhook: Webhook
) -> None:
    engine = resources.ledger.engine
    add_feed(engine, FEED, failing_since=NOW - timedelta(days=2), last_status=503)
    for _ in range(3):
        assert tick(watch_feeds, resources) == "1 alarm is open"
    [begun] = webhook.bodies
    assert begun["text"].startswith(
        f"1 feed has failed for a day or is gone: {FEED} (polls fail for 4"
    )
    assert begun["assets"] == "feeds"
    set_feed(engine, failing_since=None)
    for _ in range(3):
        tick(watch_feeds, resources)
    assert [body["text"].partition(":")[0] for body in webhook.bodies[1:]] == [
        "1 failing feed answers again or was removed"
    ]


def test_many_feeds_that_fail_together_are_one_message(
    resources: Resources, webhook: Webhook
) -> None:
    for number in range(30):
        url = f"https://outlet{number:02d}.example/feed"
        add_feed(resources.ledger.engine, url, failing_since=NOW - timedelta(days=2))
    tick(watch_feeds, resources)
    [body] = webhook.bodies
    assert body["text"].startswith("30 feeds have failed") and "and 20 more" in body["text"]


def test_saved_queries_run_in_a_sensor_of_their_own(
    resources: Resources, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tick(notify_of_matches, resources) == "there are no saved queries"
    monkeypatch.setenv("ALERT_WEBHOOK_DESK", webhook.url)
    text = '[[alerts]]\nname = "floods"\nwords = ["flood"]\nwebhook_variable = "ALERT_WEBHOOK_DESK"'
    resources.data_root.store.put("alerts.toml", text.encode())
    tick(notify_of_matches, resources)
    add_article(resources.ledger.engine, title="Flood", stored_at=NOW)
    assert "1 new matches, 1 delivered" in tick(notify_of_matches, resources)
    assert webhook.bodies[0]["alert"] == "floods"


@pytest.mark.parametrize("sensor", [watch_feeds, notify_of_matches])
def test_a_paused_root_is_left_alone(sensor: dg.SensorDefinition, resources: Resources) -> None:
    resources.ledger.engine  # noqa: B018  opens the root
    pause(resources.data_root.store)
    assert "paused" in tick(sensor, resources)


def test_an_alarm_that_was_not_accepted_is_posted_again(
    resources: Resources, webhook: Webhook
) -> None:
    webhook.answers = [404]
    add_feed(resources.ledger.engine, FEED, failing_since=NOW - timedelta(days=2))
    assert "did not accept an alert: HTTP 404" in tick(watch_feeds, resources)
    tick(watch_feeds, resources)
    tick(watch_feeds, resources)
    assert len(webhook.bodies) == 2
