"""The robots.txt rules of the domain survey, as the article worker reads them."""

from datetime import UTC, date, datetime, timedelta

import pytest

from news_platform.datasets.domain_metadata import (
    DomainMetadata,
    RobotsFacts,
    SitemapFacts,
    SourceFacts,
)
from news_platform.rss.robots_gate import SurveyedRobots
from news_platform.storage.objects.store import ObjectStore

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
CLOSED = b"User-agent: *\nDisallow: /"
BATCH = "prod/country=gb/category=news/date={day}/post.example"


def put_survey(
    store: ObjectStore,
    *,
    day: str = "2025-11-01",
    status: int | None = 200,
    robots: bytes | None = CLOSED,
    finished: bool = True,
    collected_at: datetime = NOW,
) -> None:
    folder = BATCH.format(day=day)
    metadata = DomainMetadata(
        domain_id="media:gb:post.example",
        registrable_domain="post.example",
        country="gb",
        category="news",
        date=date.fromisoformat(day),
        collected_at=collected_at,
        outcome="ok",
        final=finished,
        robots=_facts("post.example", status=status, exists=robots is not None),
        other_hosts=[_facts("www.post.example", status=404, exists=False)],
        sitemap=SitemapFacts(fetched_at=NOW),
        source=SourceFacts(domain_url="https://post.example", authority="media"),
    )
    store.put(f"{folder}/domain_metadata.json", metadata.model_dump_json().encode())
    if robots is not None:
        store.put(f"{folder}/robots.txt", robots)
    if finished:
        store.put(f"{folder}/domain_metadata.json.success", b"")


def _facts(host: str, *, status: int | None, exists: bool) -> RobotsFacts:
    return RobotsFacts(
        host=host,
        url=f"https://{host}/robots.txt",
        status_code=status,
        exists=exists,
        fetched_at=NOW,
    )


def allows(store: ObjectStore, host: str = "post.example") -> bool | None:
    rules = SurveyedRobots(store, now=NOW)(host)
    return None if rules is None else rules.rules.allows("NewsPlatformBot/0.1", f"https://{host}/a")


def test_another_host_of_the_domain_has_its_own_rules(local_store: ObjectStore) -> None:
    assert allows(local_store) is None
    put_survey(local_store)
    assert allows(local_store) is False
    assert allows(local_store, "www.post.example") is True
    assert allows(local_store, "shop.post.example") is None


def test_the_newest_batch_is_used(local_store: ObjectStore) -> None:
    put_survey(local_store, day="2025-10-30")
    put_survey(local_store, day="2025-11-02", robots=b"User-agent: *\nAllow: /")
    assert allows(local_store) is True


@pytest.mark.parametrize(
    "survey",
    [
        pytest.param({"finished": False}, id="unfinished"),
        pytest.param({"status": 503, "robots": None}, id="server error"),
        pytest.param({"collected_at": NOW - timedelta(hours=24)}, id="a day old"),
    ],
)
def test_rules_that_the_survey_could_not_read_are_unknown(
    local_store: ObjectStore, survey: dict[str, object]
) -> None:
    put_survey(local_store, **survey)  # type: ignore[arg-type]  # a table of cases
    assert allows(local_store) is None
