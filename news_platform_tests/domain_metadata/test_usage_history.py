"""Usage at the times of many articles: the same answers as one by one, from fewer reads."""

from datetime import UTC, datetime
from itertools import product

import pytest

from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.usage import NEVER_SURVEYED, UsageHistory, usage_policy
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_metadata.test_usage import BLOCKED, CLOSED, OPEN, survey_on

PATHS = b"User-agent: GPTBot\nDisallow: /premium/\n"


@pytest.fixture
def surveyed(local_store: ObjectStore, queue: DomainQueue) -> ObjectStore:
    for day, robots in ((1, OPEN), (8, CLOSED), (15, CLOSED + BLOCKED), (22, PATHS)):
        survey_on(day, robots, store=local_store, queue=queue)
    return local_store


def test_the_answers_are_those_of_usage_policy(surveyed: ObjectStore) -> None:
    usage = UsageHistory(surveyed)
    days = [datetime(2025, 11, day, 13, tzinfo=UTC) for day in (1, 7, 8, 14, 15, 21, 22, 29)]
    # Before the first survey, the first one counts.
    times = [datetime(2020, 1, 1, tzinfo=UTC), *days]
    for at, path, bot in product(times, ("/", "/news/1", "/premium/2"), ("GPTBot", "*")):
        found = usage.verdict(
            f"https://www.a.example{path}", bots=(bot,), purpose="ai_train", at=at
        )
        alone = usage_policy("a.example", bot, "ai_train", root=surveyed, at=at, path=path)
        assert (found.verdict, found.surveyed_at) == (alone.verdict, alone.surveyed_at)


def test_a_domain_that_was_never_surveyed_is_unknown(surveyed: ObjectStore) -> None:
    usage, now = UsageHistory(surveyed), datetime(2025, 11, 9, tzinfo=UTC)
    found = usage.verdict("https://b.example/x", bots=("GPTBot",), purpose="ai_train", at=now)
    assert (found.verdict, found.surveyed_at) == (NEVER_SURVEYED, None)
    with pytest.raises(InputError, match="unknown purpose 'all'"):
        usage.verdict("https://a.example/x", bots=("GPTBot",), purpose="all", at=now)
