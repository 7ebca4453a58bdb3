"""A small root with a ledger, a crawl and a Dagster home, and ways to make it sick."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._core.test_utils import create_run_for_test
from dagster._daemon.types import DaemonHeartbeat
from dagster_shared.error import SerializableErrorInfo

from news_platform.datasets.raw_news import listing_path
from news_platform.defs.graph import BUILD_ORDER
from news_platform.defs.runs import (
    ATTEMPT_TAG,
    FAILURE_TAG,
    INPUTS_TAG,
    PERMANENT_TAG,
    REQUEST_TAG,
    SETTINGS_TAG,
)
from news_platform.defs.sensor_state import SensorState, dump_state
from news_platform.defs.sensors import settings_digest
from news_platform.resources import Resources, open_resources
from news_platform.rss.ledger.tables import ALERT_MATCHES, FEED_POLLS, FEEDS
from news_platform.settings import load_settings
from news_platform.storage.commit.collected import write_collected
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.commit.root import RootAccess, resume
from news_platform_tests.collected import MARKER
from news_platform_tests.corpus.articles import store_articles


@dataclass
class Site:
    """A root, its Dagster home and its crawl under one folder."""

    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        """Return the settings of the site."""
        return {
            "NEWS_PLATFORM_ROOT": str(self.folder / "root"),
            "NEWS_PLATFORM_CRAWL_URL": str(self.folder / "crawl"),
            "DAGSTER_HOME": str(self.folder / "home"),
        }

    def resources(self, **environ: str) -> Resources:
        """Return the resources of one who looks, with further settings."""
        return open_resources(load_settings({**self.environ, **environ}), access=RootAccess.READ)

    def instance(self) -> dg.DagsterInstance:
        """Open the instance of the home."""
        return dg.DagsterInstance.from_config(str(self.folder / "home"))

    def beat(self, *, age_seconds: float = 0.0) -> None:
        """Send a heartbeat of every daemon."""
        now = self.resources().clock.now().timestamp()
        with self.instance() as instance:
            for name in instance.get_required_daemon_types():
                beat = DaemonHeartbeat(now - age_seconds, name, f"{name}-1", [])
                instance.add_daemon_heartbeat(beat)

    def tick(
        self,
        sensor: str,
        *,
        age_seconds: float = 0.0,
        stale: Mapping[str, float] | None = None,
        error: str = "",
    ) -> None:
        """Store a sensor's last tick, the age of each stale partition, and why the tick failed."""
        now = self.resources().clock.now().timestamp()
        since = {key: now - age for key, age in (stale or {}).items()}
        location = RegisteredCodeLocationOrigin("news_platform")
        origin = RemoteInstigatorOrigin(RemoteRepositoryOrigin(location, "repository"), sensor)
        data = SensorInstigatorData(
            last_tick_timestamp=now - age_seconds,
            min_interval=60,
            cursor=dump_state(SensorState(stale_since=since)),
        )
        kind, status = InstigatorType.SENSOR, InstigatorStatus.RUNNING
        state = InstigatorState(origin, kind, status, data)
        failure = SerializableErrorInfo(error, [], None) if error else None
        tick = TickData(
            origin.get_id(),
            sensor,
            kind,
            TickStatus.FAILURE if error else TickStatus.SKIPPED,
            now - age_seconds,
            selector_id=state.selector_id,
            error=failure,
            skip_reason=None if error else "nothing is stale",
        )
        with self.instance() as instance:
            if instance.get_instigator_state(origin.get_id(), state.selector_id):
                instance.update_instigator_state(state)
            else:
                instance.add_instigator_state(state)
            instance.create_tick(tick)

    def fail(
        self, asset: str, key: str, error: str, *, number: int = 1, is_final: bool = False
    ) -> None:
        """Store the failed run of a partition that the sensor of an asset requested."""
        resources = self.resources()
        (rule,) = [one for one in BUILD_ORDER if one.asset == asset]
        tags = {
            REQUEST_TAG: asset,
            SETTINGS_TAG: settings_digest(resources.settings),
            INPUTS_TAG: json.dumps({key: rule.stale(resources)[key]}),
            ATTEMPT_TAG: str(number),
            FAILURE_TAG: error,
        }
        with self.instance() as instance:
            create_run_for_test(
                instance,
                status=dg.DagsterRunStatus.FAILURE,
                tags=tags | ({PERMANENT_TAG: asset} if is_final else {}),
            )


@pytest.fixture(scope="session")
def built_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Return a healthy site: one collected day, one feed, this month's listing, daemons alive."""
    site = Site(tmp_path_factory.mktemp("operations") / "site")
    for name in ("crawl", "home"):
        (site.folder / name).mkdir(parents=True)
    (site.folder / "home/dagster.yaml").write_text("telemetry: {enabled: false}\n")
    resources = open_resources(load_settings(site.environ))
    now, store = resources.clock.now(), resources.data_root.store
    resume(store)
    listing = site.folder / "crawl" / listing_path(now.date().replace(day=1))
    listing.parent.mkdir(parents=True)
    listing.write_bytes(b"")
    dropped = {"not_html": 4, "extractor_timeout": 2}
    write_collected(store, replace(MARKER, rows=7, bytes=900, dropped=dropped))
    store_articles(store, "2025-11-01", [], site.folder)
    write_marker(store, "crawl_articles", "2025-11-01", inputs="i", report={"articles": 5})
    with resources.ledger.engine.begin() as connection:
        feed = {"feed_url": "https://a.example/f", "feed_url_canon": "https://a.example/f"}
        connection.execute(
            sa.insert(FEEDS).values(**feed, status="active", health_score=80, changed_seq=1)
        )
        for status in (200, 304, 503, 0):
            poll = {"feed_url": "f", "polled_at": now - timedelta(hours=1), "outcome": "x"}
            connection.execute(sa.insert(FEED_POLLS).values(**poll, status_code=status))
        match = {"alert": "a", "row_id": 1, "delivery_id": "d", "matched_at": now}
        connection.execute(sa.insert(ALERT_MATCHES).values(**match))
    resources.ledger.close()
    site.beat()
    site.tick("follow_domain_buckets")
    return site


@pytest.fixture
def site(built_site: Site, tmp_path: Path) -> Site:
    """Return a copy of the healthy site, which a test may change."""
    shutil.copytree(built_site.folder, tmp_path / "site")
    copy = Site(tmp_path / "site")
    # The session may have begun long ago.
    copy.tick("follow_domain_buckets")
    return copy
