"""`news-platform rss alerts`: list, try and run saved queries."""

from pathlib import Path

import pytest

from news_platform.resources import open_resources
from news_platform.settings import Settings
from news_platform_tests.cli.runner import Commands
from news_platform_tests.rss.ledger_rows import NOW, add_article
from news_platform_tests.servers.webhook import Webhook, serve_webhook

ALERTS = Commands("rss alerts")
FILE = (
    '[[alerts]]\nname = "floods"\nwords = ["flood"]\nwebhook_variable = "ALERT_WEBHOOK_DESK"\n'
    '[[alerts]]\nname = "quiet"\nsources = ["post.example"]\n'
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root with two saved queries and an article that matches the first."""
    folder = tmp_path / "root"
    resources = open_resources(Settings(root=str(folder)))
    add_article(resources.ledger.engine, title="Flood", stored_at=NOW)
    resources.data_root.store.put("alerts.toml", FILE.encode())
    resources.ledger.close()
    return folder


def add(root: Path, title: str) -> None:
    resources = open_resources(Settings(root=str(root)))
    add_article(resources.ledger.engine, title=title, stored_at=resources.clock.now())
    resources.ledger.close()


def test_a_query_can_be_tried_before_it_notifies(root: Path) -> None:
    [match] = ALERTS.json(root, "try", "floods")
    assert (match["title"], match["row_id"]) == ("Flood", 1)
    assert ALERTS.run(root, "try", "quiet").stdout == "no match\n"
    assert ALERTS.run(root, "try", "none").exit_code == 2


def test_a_run_delivers_and_the_list_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_webhook(Webhook()) as webhook:
        monkeypatch.setenv("ALERT_WEBHOOK_DESK", webhook.url)
        ALERTS.run(root, "run")
        add(root, "Second flood")
        report = ALERTS.json(root, "run")
    assert report["found"]["matches"] == {"floods": 1}
    assert report["delivery"]["delivered"] == len(webhook.bodies) == 1
    rows = ALERTS.json(root, "list")
    assert [(row["name"], row["matches"], row["waiting"]) for row in rows] == [
        ("floods", 1, 0),
        ("quiet", 0, 0),
    ]


def test_a_test_message_is_sent_and_not_recorded(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "has no webhook" in ALERTS.error(root, "test", "quiet")
    with serve_webhook(Webhook()) as webhook:
        monkeypatch.setenv("ALERT_WEBHOOK_DESK", webhook.url)
        assert "accepted" in ALERTS.text(root, "test", "floods")
    assert [body["article"]["title"] for body in webhook.bodies] == ["Flood"]
    assert ALERTS.json(root, "list")[0]["matches"] == 0
    assert "the webhook of 'floods' failed" in ALERTS.error(root, "test", "floods")
