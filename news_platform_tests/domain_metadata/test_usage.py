"""Usage policies and histories from stored surveys."""

import asyncio
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

import news_platform
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.consumer import SurveyContext, SurveyOptions
from news_platform.domain_metadata.generated_research import catalog_file
from news_platform.domain_metadata.history import build_stale_tables, read_history
from news_platform.domain_metadata.pipeline import queue_batch, survey_batch
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.usage import usage_policy
from news_platform.domain_metadata.verdicts import read_usage_verdicts
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.fakes import SurveyedWeb, response
from news_platform_tests.takedowns.asked import ask

USAGE_SIGNALS_PAGE = Path(__file__).parents[2] / "docs" / "usage_signals.md"
SITE = "https://a.example"
OPEN = b"User-agent: *\nAllow: /\nContent-Signal: search=yes"
CLOSED = b"User-agent: *\nAllow: /\nContent-Signal: search=yes, ai-train=no\n"
BLOCKED = b"User-agent: GPTBot\nDisallow: /\n"


def survey_on(day: int, robots: bytes, *, store: ObjectStore, queue: DomainQueue) -> None:
    """Survey a.example as of a day of November."""
    batch = PartitionInfo.of("de", "media", f"2025-11-{day:02}")
    now = datetime(2025, 11, day, 12, tzinfo=UTC)
    import_file(store, batch, name="x", body=catalog_file(batch, ["a.example"]))
    queue_batch(batch, store=store, queue=queue, now=now)
    web = {f"{SITE}/robots.txt": robots, f"{SITE}/sitemap.xml": response(SITE, status=404)}
    context = SurveyContext(
        queue, store, SurveyedWeb(web), clock=lambda: now, seconds=now.timestamp, worker="w"
    )
    asyncio.run(survey_batch(batch, context=context, options=SurveyOptions()))


@pytest.fixture
def surveyed(local_store: ObjectStore, queue: DomainQueue) -> ObjectStore:
    """Return a root with three surveys of one domain, which closes more each time."""
    for day, robots in ((1, OPEN), (8, CLOSED), (15, CLOSED + BLOCKED)):
        survey_on(day, robots, store=local_store, queue=queue)
    build_stale_tables(local_store)
    return local_store


@pytest.mark.parametrize(
    ("at", "verdict", "day"),
    [
        (None, "refuse", 15),
        (date(2025, 11, 1), "unspecified", 1),
        ("2025-11-07", "unspecified", 1),
        (datetime(2025, 11, 8, 11, tzinfo=UTC), "unspecified", 1),
        (datetime(2025, 11, 8, 12, tzinfo=UTC), "refuse", 8),
        ("2025-10-01", "unspecified", 1),
        ("2026-01-01", "refuse", 15),
    ],
)
def test_the_survey_at_the_time_decides(
    surveyed: ObjectStore, at: date | str | None, verdict: str, day: int
) -> None:
    found = usage_policy("www.a.example", "ClaudeBot", "ai_train", root=surveyed, at=at)
    assert (found.verdict, found.domain) == (verdict, "a.example")
    assert found.surveyed_at == datetime(2025, 11, day, 12, tzinfo=UTC)


def test_a_verdict_gives_its_statements(surveyed: ObjectStore) -> None:
    found = usage_policy("a.example", "GPTBot", "ai_train", root=surveyed)
    (finding,) = found.statements
    assert (found.verdict, finding.statement.raw) == ("refuse", "Disallow: /")
    assert finding.statement.source == f"{SITE}/robots.txt"


def test_an_unknown_domain_is_unspecified_and_an_unknown_purpose_is_refused(
    surveyed: ObjectStore,
) -> None:
    found = usage_policy("other.example", "GPTBot", "search", root=surveyed)
    assert (found.verdict, found.surveyed_at, found.statements) == ("unspecified", None, ())
    with pytest.raises(InputError, match="unknown purpose 'train': expected one of index"):
        usage_policy("a.example", "GPTBot", "train", root=surveyed)


def test_a_history_lists_surveys_and_changes(surveyed: ObjectStore) -> None:
    found = read_history(surveyed, "a.example")
    assert [row["usage_ai_train"] for row in found.surveys] == ["unspecified", "refuse", "refuse"]
    stated = [row for row in found.changes if row["signal"] != "robots"]
    assert [(row["date"], row["label"], row["before"], row["after"]) for row in stated] == [
        ("2025-11-08", "ai-train", None, "no")
    ]
    assert (stated[0]["change"], stated[0]["raw_diff"]) == ("blocked", "+ search=yes, ai-train=no")
    robots = [row for row in found.changes if row["signal"] == "robots"]
    assert [(row["date"], row["bot"], row["change"]) for row in robots] == [
        ("2025-11-15", "GPTBot", "blocked")
    ]
    assert robots[0]["raw_diff"] == "+User-agent: GPTBot\n+Disallow: /"
    assert build_stale_tables(surveyed) == []


def test_a_standing_verdict_says_since_when_and_by_which_statement(surveyed: ObjectStore) -> None:
    rows = read_usage_verdicts(surveyed)
    found = {(row["bot"], row["purpose"]): row for row in rows.iter_rows(named=True)}
    assert {bot for bot, _ in found} == {"*", "GPTBot"} and len(found) == 8
    shown = {key: (row["verdict"], row["since"][-2:]) for key, row in found.items()}
    assert shown["*", "search"] == ("allow", "01")
    assert shown["*", "ai_train"] == ("refuse", "08") == shown["GPTBot", "ai_train"]
    assert shown["GPTBot", "index"] == ("refuse", "15")
    assert shown["*", "ai_input"] == ("unspecified", "01")
    stated = found["*", "ai_train"]
    assert (stated["statement"], stated["system"]) == (
        "search=yes, ai-train=no",
        "content_signal",
    )
    assert found["GPTBot", "index"]["source"] == f"{SITE}/robots.txt"
    assert found["GPTBot", "index"]["operator"] == "OpenAI"


def test_a_crawler_that_is_not_named_is_treated_as_all(surveyed: ObjectStore) -> None:
    every = read_usage_verdicts(surveyed, bot="ClaudeBot", purpose="ai_train")
    assert every.select("bot", "verdict").rows() == [("*", "refuse")]
    own = read_usage_verdicts(surveyed, bot="gptbot", verdict="refuse", domain="a.example")
    assert set(own["bot"]) == {"GPTBot"} and own.height == 4
    query = "select distinct since from usage_verdicts where verdict = 'refuse' order by 1"
    rows = news_platform.open(surveyed.url).sql(query).rows()
    assert [day for (day,) in rows] == ["2025-11-08", "2025-11-15"]


@pytest.mark.parametrize("bot", ["ClaudeBot", "GPTBot"])
def test_the_documented_query_finds_sites_that_refuse_a_crawler_or_everybody(
    surveyed: ObjectStore, bot: str
) -> None:
    lines = USAGE_SIGNALS_PAGE.read_text(encoding="utf-8").splitlines()
    (query,) = (line.split('"')[1] for line in lines if "'GPTBot', '*'" in line)
    data = news_platform.open(surveyed.url)
    for purpose in PURPOSES:
        asked = query.replace("GPTBot", bot).replace("ai_train", purpose)
        expected = usage_policy("a.example", bot, purpose, root=surveyed).verdict
        assert data.sql(asked).rows() == [("a.example", expected)]


def test_a_group_that_is_gone_leaves_no_verdict_and_a_hidden_domain_none(
    surveyed: ObjectStore, queue: DomainQueue
) -> None:
    survey_on(22, CLOSED, store=surveyed, queue=queue)
    build_stale_tables(surveyed)
    assert set(read_usage_verdicts(surveyed)["bot"]) == {"*"}
    ask(surveyed, "domain", "a.example")
    assert read_usage_verdicts(surveyed).is_empty()
