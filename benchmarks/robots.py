"""Our robots.txt matcher against Google's own suite and against Google's own code."""

import json
import random
import re
import time
from pathlib import Path

from jwm.robotstxt import googlebot

from news_platform.domain_metadata.signals.robots_signals import parse_robots_signals
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.signals.verdict import EVERYBODY, decide
from news_platform.web.robots import Robots

PAIRS = 10_000
_SITE = "https://news.example"
_AGENTS = ("FooBot", "Googlebot", "GPTBot", "CCBot", "bingbot", "AhrefsBot", "NewsPlatformBot")
_TAILS = ("", "/", "x", "?q=1", "index.html", "#f", ";p")


def vectors_passed(data: Path) -> tuple[int, int]:
    """Return how many vectors of Google's suite pass, and how many there are."""
    vectors = json.loads((data / "robots/google_vectors.json").read_text())
    passed = sum(
        Robots.parse(one["robots"].encode()).allows(one["ua"], one["url"]) is one["allow"]
        for one in vectors
    )
    return passed, len(vectors)


def agreement(data: Path) -> tuple[int, int, int]:
    """Compare verdicts on real files; return pairs, those denied, and those judged otherwise."""
    dice = random.Random(9309)
    files = sorted((data / "robots/real").iterdir())
    pairs = denied = different = 0
    for number, path in enumerate(files):
        body = path.read_bytes()
        ours = Robots.parse(body)
        for agent, url in _pairs(ours, dice, _share(number, len(files))):
            verdict = googlebot.RobotsMatcher().OneAgentAllowedByRobots(body, agent, url)
            pairs += 1
            denied += not verdict
            different += ours.allows(agent, url) is not verdict
    return pairs, denied, different


def parse_speed(data: Path) -> float:
    """Return how many real files a second of CPU parses, AI policies included."""
    bodies = [path.read_bytes() for path in sorted((data / "robots/real").iterdir())]
    started = time.process_time()
    for body in bodies:
        Robots.parse(body).ai_policies()
    return len(bodies) / (time.process_time() - started)


def signal_speed(data: Path) -> float:
    """Return how many real files a second of CPU parses with all their statements and verdicts."""
    bodies = [path.read_bytes() for path in sorted((data / "robots/real").iterdir())]
    started = time.process_time()
    for body in bodies:
        rules = Robots.parse(body)
        found = parse_robots_signals(body, source=_SITE, rules=rules)
        for purpose in PURPOSES:
            decide(found.statements, rules=rules, bot=EVERYBODY, purpose=purpose)
    return len(bodies) / (time.process_time() - started)


def _share(number: int, files: int) -> int:
    """Spread the pairs evenly over the files, none left over."""
    return PAIRS * (number + 1) // files - PAIRS * number // files


def _pairs(robots: Robots, dice: random.Random, count: int) -> list[tuple[str, str]]:
    named = {a for group in robots.groups for a in group.agents if re.fullmatch("[a-z_-]+", a)}
    agents = [*_AGENTS, *sorted(named)]
    patterns = [rule.pattern for group in robots.groups for rule in group.rules] or ["/"]
    return [(dice.choice(agents), _url(dice.choice(patterns), dice)) for _ in range(count)]


def _url(pattern: str, dice: random.Random) -> str:
    """Return a URL that the pattern nearly or really matches."""
    filling = dice.choice(("", "x", "/a/b", ".php"))
    path = pattern.replace("*", filling).replace("$", "").removeprefix("/")
    return f"{_SITE}/{path}{dice.choice(_TAILS)}"


def measure(data: Path) -> dict[str, object]:
    """Return every figure about robots.txt."""
    passed, vectors = vectors_passed(data)
    pairs, denied, different = agreement(data)
    return {
        "google_vectors": vectors,
        "google_vectors_passed": passed,
        "pairs": pairs,
        "pairs_denied": denied,
        "pairs_judged_otherwise": different,
        "files_per_cpu_second": round(parse_speed(data)),
        "files_with_signals_per_cpu_second": round(signal_speed(data)),
    }
