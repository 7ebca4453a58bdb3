"""What an export is for: refusals to any crawler of that function, at the fetch or since."""

from datetime import UTC, datetime

import pytest

from news_platform.composition.corpus_options import stated_usage, usage_rules
from news_platform.corpus.export.filtering import PRESETS
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_metadata.test_usage import survey_on

URL = "https://www.a.example/news/1"
ONE_CRAWLER = b"User-agent: *\nAllow: /\n\nUser-agent: ClaudeBot\nDisallow: /news/\n"
ALLOWED = b"User-agent: GPTBot\nAllow: /\n"
BEFORE = datetime(2025, 11, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("robots", "preset", "verdict", "bot", "line"),
    [
        (ONE_CRAWLER, "training", "refuse", "ClaudeBot", 5),
        (ONE_CRAWLER, "search", "unspecified", "*", None),
        (ONE_CRAWLER, "archive", "allow", "*", 2),
        (ALLOWED, "training", "allow", "GPTBot", 2),
        (b"User-agent: *\nDisallow: /\n", "training", "refuse", "*", 2),
        (b"User-agent: *\nDisallow: /news/\n", "archive", "refuse", "*", 2),
        (b"User-agent: ClaudeBot\nDisallow: /private/\n", "training", "allow", "ClaudeBot", None),
    ],
)
def test_a_preset_asks_for_every_crawler_of_its_function(
    local_store: ObjectStore,
    queue: DomainQueue,
    robots: bytes,
    preset: str,
    verdict: str,
    bot: str,
    line: int | None,
) -> None:
    survey_on(1, robots, store=local_store, queue=queue)
    (rule,) = usage_rules((preset,))
    found = stated_usage(local_store)(URL, rule, BEFORE)
    assert (found.verdict, found.bot) == (verdict, bot)
    lines = [one.line for one in found.statements]
    assert lines == ([line] if line else lines)
    assert all(one.sha256 and one.read_at and one.text for one in found.statements)


def test_a_refusal_since_the_fetch_counts(local_store: ObjectStore, queue: DomainQueue) -> None:
    survey_on(1, ALLOWED, store=local_store, queue=queue)
    survey_on(8, ONE_CRAWLER, store=local_store, queue=queue)
    (rule,) = usage_rules(("training",))
    found = stated_usage(local_store)(URL, rule, BEFORE)
    assert (found.verdict, found.bot, found.surveyed_at and found.surveyed_at.day) == (
        "refuse",
        "ClaudeBot",
        8,
    )
    assert stated_usage(local_store)("https://b.example/x", rule, BEFORE).verdict == "unknown"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GTPBot:ai_train", "did you mean 'GPTBot'"),
        ("Zzz:ai_train", "unknown crawler 'Zzz' in the list"),
        ("trainig", "or one of training, search, archive"),
    ],
)
def test_an_unknown_crawler_is_an_error_with_a_suggestion(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        usage_rules((text,))
    assert [rule.bot for rule in usage_rules(("gptbot:ai_train", *PRESETS))] == ["GPTBot", *PRESETS]
