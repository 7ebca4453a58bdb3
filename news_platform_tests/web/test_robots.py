"""The robots.txt matcher: our own cases, Google's vectors, real files, the reference itself."""

import json
import random
import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from news_platform.web.robots import AI_BOTS, MAX_BYTES, Robots

FOO = "user-agent: FooBot\n"
SITE = "https://news.example"


def allows(text: str | bytes, path: str, agent: str = "FooBot") -> bool:
    body = text if isinstance(text, bytes) else text.encode()
    return Robots.parse(body).allows(agent, SITE + path)


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("disallow: /", "/x", False),
        ("disallow:", "/x", True),
        ("disallow: /x\nallow: /x/y", "/x/y", True),
        ("disallow: /x/y\nallow: /x", "/x/y/z", False),
        ("disallow: /x\nallow: /x", "/x", True),
        ("disallow: /*.php$", "/a.php", False),
        ("disallow: /*.php$", "/a.php?b", True),
        ("disallow: /a*b*c", "/a-b-b-c", False),
        ("disallow: /a*b*c", "/a-c-b", True),
        ("disallow: /a$b", "/a$b", False),
        ("disallow: /%aa", "/%AA", False),
        ("disallow: /ü", "/%C3%BC", False),
        ("disallow: /ü", "/ü", True),
        ("disallow: /\nallow: /a/index.html", "/a/", True),
        ("dissalow: /", "/", False),
        ("disallow /", "/", False),
        ("disallow: /a\rdisallow: /b\r\ndisallow: /c", "/b", False),
        ("disallow: /a\0b", "/a", False),
    ],
)
def test_rules_match_like_the_reference(rules: str, path: str, expected: bool) -> None:
    assert allows(FOO + rules, path) is expected


@pytest.mark.parametrize(
    ("text", "agent", "expected"),
    [
        ("user-agent: *\ndisallow: /", "FooBot", False),
        ("user-agent: *x\ndisallow: /", "FooBot", True),
        ("user-agent: FOOBOT\ndisallow: /", "foobot", False),
        ("user-agent: FooBot/2.1\ndisallow: /", "FooBot", False),
        ("user-agent: FooBot\ndisallow: /", "FooBot/2.1 (+https://foo.example)", False),
        ("user-agent: FooBot\ndisallow: /", "FooBotNews", True),
        ("user-agent: Foo\nuser-agent: FooBot\ndisallow: /", "FooBot", False),
        ("user-agent: FooBot\ndisallow: /a\nuser-agent: Bar\ndisallow: /", "FooBot", True),
        ("user-agent: *\ndisallow: /\nuser-agent: FooBot\n", "FooBot", True),
        ("disallow: /", "FooBot", True),
        ("\ufeffuser-agent: FooBot\ndisallow: /", "FooBot", False),
        ("<html>user-agent: FooBot\ndisallow: /", "FooBot", True),
    ],
)
def test_groups_are_found_like_the_reference(text: str, agent: str, expected: bool) -> None:
    assert allows(text, "/x", agent) is expected


def test_groups_of_one_agent_are_one() -> None:
    text = FOO + "disallow: /a\n\nuser-agent: Bar\ndisallow: /\n\n" + FOO + "disallow: /b"
    assert [allows(text, path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_a_long_file_is_read_to_the_cap_and_no_line_is_cut_in_half() -> None:
    filler = b"# twelve byte\n" * (MAX_BYTES // 14)
    head = FOO.encode() + filler[: MAX_BYTES - len(FOO) - 12]
    assert allows(head + b"\ndisallow: /folder/secret\n", "/folder")
    assert not allows(FOO.encode() + b"disallow: /a\n" + filler + filler, "/a")
    # The fetcher stops at the cap, so what it hands over never is longer.
    for mark in (b"", b"\xef\xbb\xbf"):
        body = mark + head[: MAX_BYTES - 12 - len(mark)] + b"\ndisallow: /folder/secret\n"
        assert allows(body[:MAX_BYTES], "/folder")


ODD_AGENTS = ("", "*", "FooBot", "\ud800", "a" * 10_000)
ODD_URLS = ("", "//", "x", "http://", "\ud800", "?a;b#c", "a" * 10_000)


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe\x00", b":", b"\0" * 99, b"user-agent:\nallow:" * 9]
)
def test_nothing_raises(body: bytes) -> None:
    robots = Robots.parse(body)
    for agent, url in product(ODD_AGENTS, ODD_URLS):
        assert robots.allows(agent, url) is True
        assert robots.crawl_delay(agent) is None
    assert len(robots.ai_policies()) == len(AI_BOTS)


def test_a_pattern_of_stars_costs_next_to_nothing() -> None:
    body = (FOO + ("disallow: " + "*a" * 7000 + "b\n") * 30).encode()
    assert Robots.parse(body).allows("FooBot", SITE + "/" + "a" * 8000) is True


@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, False), (404, True), (403, True), (429, False), (503, False)],
)
def test_the_status_decides_when_there_is_no_file(status: int, expected: bool) -> None:
    body = b"user-agent: *\ndisallow: /"
    assert Robots.of_answer(status, body).allows("FooBot", SITE) is expected


def test_no_answer_disallows_all() -> None:
    assert Robots.of_answer(None, b"").allows("FooBot", SITE) is False


def test_sitemaps_are_told_in_order_and_once_wherever_they_stand() -> None:
    text = f"Sitemap: {SITE}/b.xml\n{FOO}Sitemap:{SITE}/ä.xml # x\nSite-map: {SITE}/b.xml\nsitemap:"
    assert Robots.parse(text.encode()).sitemaps == (f"{SITE}/b.xml", f"{SITE}/ä.xml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FOO + "crawl-delay: 2.5", 2.5),
        ("user-agent: *\ncrawl-delay: 7", 7.0),
        ("user-agent: *\ncrawl-delay: 7\ndisallow: /a\n" + FOO + "disallow: /x", None),
        (FOO + "crawl-delay: 1\n" + FOO + "crawl-delay: 9", 1.0),
        (FOO + "user-agent: Bar\ncrawl-delay: 3", 3.0),
        (FOO + "crawl-delay: -1", None),
        (FOO + "crawl-delay: 1e999", None),
    ],
)
def test_the_crawl_delay_is_a_group_s_own(text: str, expected: float | None) -> None:
    assert Robots.parse(text.encode()).crawl_delay("FooBot/1.0") == expected


@pytest.mark.parametrize(
    ("text", "policy", "source"),
    [
        ("user-agent: *\ndisallow: /", "disallow_all", "everyone"),
        ("user-agent: *\ndisallow: /\nuser-agent: gptbot\nallow: /", "allow", "own"),
        ("user-agent: GPTBot\ndisallow: /", "disallow_all", "own"),
        ("user-agent: GPTBot\ndisallow: /private", "partial", "own"),
        ("user-agent: GPTBot\ndisallow: /\nallow: /public", "partial", "own"),
        ("user-agent: GPTBot\ndisallow: /\nallow: /", "allow", "own"),
        ("user-agent: Other\ndisallow: /", "unspecified", "none"),
        ("user-agent: *\nuser-agent: GPTBot\ndisallow: /", "disallow_all", "own"),
    ],
)
def test_the_policy_towards_a_bot_is_summed_up(text: str, policy: str, source: str) -> None:
    found = Robots.parse(text.encode()).ai_policies()["GPTBot"]
    assert (found.bot, found.policy, found.source) == ("GPTBot", policy, source)


def test_a_bot_with_digits_in_its_name_has_its_own_policy() -> None:
    found = Robots.parse(b"user-agent: AI2Bot\ndisallow: /").ai_policies()
    assert found["AI2Bot"].policy == "disallow_all"
    assert found["Ai2Bot-Dolma"].policy == "unspecified"


def test_all_vectors_of_google_s_own_suite_pass(bench_data: Path) -> None:
    vectors = json.loads((bench_data / "robots/google_vectors.json").read_text())
    wrong = [
        vector
        for vector in vectors
        if Robots.parse(vector["robots"].encode()).allows(vector["ua"], vector["url"])
        is not vector["allow"]
    ]
    assert len(vectors) == 145 and wrong == []


def reference_allows(body: bytes, agent: str, url: str) -> bool:
    googlebot = pytest.importorskip("jwm.robotstxt.googlebot", reason="no wheel of the reference")
    verdict: bool = googlebot.RobotsMatcher().OneAgentAllowedByRobots(body, agent, url)
    return verdict


def test_real_files_get_the_reference_s_verdict(bench_data: Path) -> None:
    """A slice of what benchmarks/robots.py does in full; every twelfth file, five pairs each."""
    dice = random.Random(5)
    for path in sorted((bench_data / "robots/real").iterdir())[::12]:
        body = path.read_bytes()
        for agent, url in real_pairs(Robots.parse(body), dice, 5):
            assert Robots.parse(body).allows(agent, url) is reference_allows(body, agent, url), path


def real_pairs(robots: Robots, dice: random.Random, count: int) -> list[tuple[str, str]]:
    """Make agents and URLs that the file has something to say about."""
    agents = {a for group in robots.groups for a in group.agents if re.fullmatch("[a-z_-]+", a)}
    names = ["FooBot", "Googlebot", "GPTBot", *sorted(agents)]
    patterns = [rule.pattern for group in robots.groups for rule in group.rules] or ["/"]
    tails = ("", "/", "x", "?q=1", "index.html", "#f", ";p")
    return [
        (dice.choice(names), f"{SITE}/{_filled(dice.choice(patterns), dice)}{dice.choice(tails)}")
        for _ in range(count)
    ]


def _filled(pattern: str, dice: random.Random) -> str:
    filling = dice.choice(("", "x", "/a/b", ".php"))
    return pattern.replace("*", filling).replace("$", "").removeprefix("/")


WORDS = st.sampled_from(
    ["user-agent:", "FooBot", "*", "disallow:", "allow:", "/", "/a", "/a*b$", "index.html", "%aa",
     "ü", "$", "\0", "#", ":", "\ufeff", "Disalow", "sitemap:", "\n", "\r\n", " ", "\t"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    words=st.lists(WORDS, max_size=40),
    path=st.text(alphabet="/ab*$?;#:%A.index html", max_size=20),
)
def test_made_up_files_get_the_reference_s_verdict(words: list[str], path: str) -> None:
    body = "".join(words).encode()
    for url in (SITE + path, path):
        assert Robots.parse(body).allows("FooBot", url) is reference_allows(body, "FooBot", url)
