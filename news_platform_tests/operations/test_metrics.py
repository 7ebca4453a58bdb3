"""The metrics of a site, and the dashboard and alert rules that use them."""

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from news_platform.operations.metrics import (
    FAMILIES,
    PREFIX,
    PlatformCollector,
    metrics_app,
)
from news_platform.storage.commit.collected import write_collected
from news_platform.storage.objects.store import open_store
from news_platform_tests.collected import MARKER
from news_platform_tests.emulators.redis import free_port
from news_platform_tests.operations.conftest import Site
from news_platform_tests.servers.demo import Demo

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana/dashboard.json").read_text(encoding="utf-8"))
ALERTS = DEPLOY / "prometheus/alerts.yml"
Values = dict[tuple[str, ...], float]


def _scrape(site: Site) -> dict[str, Values]:
    return _parsed(generate_latest(PlatformCollector(site.resources())).decode())


def _parsed(text: str) -> dict[str, Values]:
    """Return the samples of each metric by the values of their labels."""
    return {
        family.name.removeprefix(PREFIX): {
            tuple(value for _, value in sorted(sample.labels.items())): sample.value
            for sample in family.samples
        }
        for family in text_string_to_metric_families(text)
    }


def test_every_part_of_the_state_is_counted(site: Site) -> None:
    for day in (2, 3):
        warc = f"CC-NEWS-202511{day:02}000000-00001.warc.gz"
        empty = replace(MARKER, day=date(2025, 11, day), warc=warc, rows=0, bytes=0, dropped={})
        write_collected(open_store(str(site.folder / "root")), empty)
    site.fail("domain_buckets", "2025-11-02", "FetchError: 503", number=4)
    site.fail("domain_buckets", "2025-11-03", "InputError: no", is_final=True)
    stale = {"2025-11-01": 7_200.0, "2025-11-02": 60.0, "2025-11-03": 60.0}
    site.tick("follow_domain_buckets", age_seconds=30, stale=stale)
    found = _scrape(site)
    assert found["source_up"] == {("root",): 1, ("ledger",): 1, ("dagster",): 1}
    assert found["dataset_rows"] == {("raw_news",): 7, ("crawl_articles",): 5}
    assert found["dataset_bytes"] == {("raw_news",): 900}
    assert found["dropped_pages"] == {("not_html",): 4, ("extractor_timeout",): 2}
    assert found["pool_restarts"]["ccnews", "timeout"] == 2
    states = {key: n for key, n in found["stale_partitions"].items() if key[0] == "domain_buckets"}
    assert {key[1]: n for key, n in states.items()} == {
        "behind": 1, "retrying": 1, "stopped": 1, "running": 0, "waiting": 0,
    }  # fmt: skip
    assert 7_200 <= found["lag_seconds"]["domain_buckets",] < 7_300
    assert found["attempts"]["domain_buckets",] == 4
    assert found["daemon_up"] and set(found["daemon_up"].values()) == {1}
    assert 30 <= found["sensor_tick_age_seconds"]["follow_domain_buckets",] < 130
    assert (found["feeds"]["active",], found["feed_health"][()]) == (1, 80)
    answers = {key[0]: n for key, n in found["http_answers_last_day"].items() if key[1] == "feeds"}
    assert answers == {"1xx": 0, "2xx": 1, "3xx": 1, "4xx": 0, "5xx": 1, "none": 1}
    assert found["outbox"] == {("sheet",): 0, ("webhook",): 1}
    assert found["runs"]["queued",] == 0


def test_every_family_is_shown_and_no_label_can_grow_without_bound(site: Site) -> None:
    text = generate_latest(PlatformCollector(site.resources())).decode()
    assert set(_parsed(text)) == {family.name for family in FAMILIES}
    labels = {label for family in FAMILIES for label in family.labels}
    assert labels.isdisjoint({"partition", "feed", "host", "url", "run_id", "warc"})
    assert "a.example" not in text and "2025-11-01" not in text


def test_a_broken_ledger_does_not_hide_the_rest(site: Site) -> None:
    (site.folder / "root/ledger.sqlite").write_bytes(b"not a database" * 100)
    found = _scrape(site)
    assert found["source_up"] == {("root",): 1, ("ledger",): 0, ("dagster",): 1}
    assert found["dataset_rows"]["raw_news",] == 7
    assert found["feeds"] == {}


def test_scrapes_within_the_cache_time_share_one_look(site: Site) -> None:
    now = [0.0]
    collector = PlatformCollector(site.resources(), clock=lambda: now[0])
    first = collector.collect()
    assert collector.collect() is first
    now[0] = 15.0
    assert collector.collect() is not first


def test_only_allowed_hosts_are_answered(site: Site) -> None:
    app: Any = metrics_app(site.resources(NEWS_PLATFORM_ALLOWED_HOSTS="metrics.example"))
    client = TestClient(app, base_url="http://rebound.example")
    assert client.get("/metrics").status_code in (400, 403, 421)
    assert TestClient(app, base_url="http://metrics.example").get("/metrics").status_code == 200


@contextmanager
def _served(environ: dict[str, str]) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "news_platform.cli", "metrics", "--port", str(port)]
    with subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{port}/metrics"
        finally:
            process.terminate()


def _get(url: str, *, within_seconds: float = 90.0) -> str:
    deadline = time.monotonic() + within_seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_the_demo_is_served_with_values_in_every_panel(finished_demo: Demo) -> None:
    with _served(dict(finished_demo.environ)) as url:
        found = _parsed(_get(url))
    # Without a daemon there are no ticks, and nothing of the demo fails or waits.
    empty = {name for name, samples in found.items() if not samples}
    assert empty <= {"sensor_tick_age_seconds", "sensor_failing", "feed_alarms", "red_checks"}
    assert found["dataset_rows"]["raw_news",] > 400
    assert found["articles"]["stored",] > 50


def _dashboard_queries() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def _alert_queries() -> Iterator[str]:
    for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


def _selectors(node: Any) -> Iterator[Any]:
    """Yield the vector selectors of a parsed query."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for name in ("lhs", "rhs", "expr", "param", "vector_selector", "vs"):
        if (child := getattr(node, name, None)) is not None:
            yield from _selectors(child)
    for child in getattr(node, "args", None) or ():
        yield from _selectors(child)


@pytest.mark.parametrize("queries", [_dashboard_queries, _alert_queries])
def test_queries_name_only_metrics_and_labels_that_exist(
    queries: Callable[[], Iterator[str]],
) -> None:
    known = {f"{PREFIX}{family.name}": set(family.labels) for family in FAMILIES}
    for query in queries():
        selectors = list(_selectors(promql_parser.parse(query)))
        assert {one.name for one in selectors} == set(re.findall(rf"{PREFIX}\w+", query))
        for selector in selectors:
            assert selector.name in known, query
            assert {one.name for one in selector.matchers.matchers} <= known[selector.name], query
        grouped = [re.split(r",\s*", names) for names in re.findall(r"by \(([\w, ]+)\)", query)]
        for names in grouped:
            assert any(set(names) <= known[one.name] for one in selectors), query


def test_the_dashboard_shows_every_metric() -> None:
    shown = set(re.findall(rf"{PREFIX}\w+", " ".join(_dashboard_queries())))
    assert shown == {f"{PREFIX}{family.name}" for family in FAMILIES}


def test_every_alert_says_what_to_do() -> None:
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names) > 10
    known = {f"{PREFIX}{family.name}": set(family.labels) for family in FAMILIES}
    for rule in group["rules"]:
        assert {"summary", "action"} == set(rule["annotations"])
        assert rule["labels"]["severity"] in ("page", "ticket")
        text = json.dumps(rule["annotations"])
        for label in re.findall(r"\$labels\.(\w+)", text):
            metrics = re.findall(rf"{PREFIX}\w+", rule["expr"])
            assert any(label in known[metric] for metric in metrics), (rule["alert"], label)


@pytest.mark.soak
def test_promtool_accepts_the_rules() -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("needs promtool, of Debian's package prometheus")
    done = subprocess.run([tool, "check", "rules", str(ALERTS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
