"""Our sitemap reader: every stored case, every attack, and its speed beside a peer."""

import json
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from usp.tree import sitemap_from_str

from news_platform.domain_metadata.sitemaps import parse_sitemap

ROUNDS = 5
_URL = "https://ex.com/sitemap.xml"


def urlset(count: int) -> bytes:
    """Return a plain sitemap of `count` pages."""
    entry = b"<url><loc>https://ex.com/p%d</loc><lastmod>2024-01-02</lastmod></url>"
    entries = b"\n".join(entry % number for number in range(count))
    head = b'<?xml version="1.0" encoding="UTF-8"?>\n'
    return (
        head + b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">%s</urlset>' % entries
    )


def cases_passed(data: Path) -> tuple[int, int]:
    """Return how many stored cases have the expected count and kind, and how many there are."""
    cases = sorted((data / "sitemaps/cases").glob("*.json"))
    return sum(_passes(path) for path in cases), len(cases)


def _passes(path: Path) -> bool:
    count, kind = json.loads(path.read_text())
    file = path.with_suffix(".bin")
    # The two large cases are described, not stored.
    body = file.read_bytes() if file.exists() else urlset(60_000 if "over" in path.name else count)
    found = parse_sitemap(body, _URL)
    kinds = {"attack": found.kind, "urlset_ge": "urlset"}
    links = len(found.urls) + len(found.children)
    return bool(links == count and found.kind == kinds.get(kind, kind))


def attacks() -> dict[str, list[float]]:
    """Return CPU seconds, growth in MiB and URLs of each attack, from a process of its own."""
    program = [sys.executable, "-m", "news_platform_tests.domain_metadata.attacks"]
    done = subprocess.run(program, check=True, capture_output=True, timeout=120)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def beside_peer() -> tuple[float, float]:
    """Return the median CPU seconds for 50,000 URLs of ours and of ultimate-sitemap-parser."""
    logging.disable(logging.WARNING)
    body = urlset(50_000)
    text = body.decode()
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(_cpu(lambda: len(parse_sitemap(body, _URL).urls)))
        theirs.append(_cpu(lambda: sum(1 for _ in sitemap_from_str(text).all_pages())))
    return statistics.median(ours), statistics.median(theirs)


def _cpu(work: Callable[[], int]) -> float:
    started = time.process_time()
    assert work() == 50_000
    return time.process_time() - started


def measure(data: Path) -> dict[str, object]:
    """Return every figure about sitemaps."""
    passed, cases = cases_passed(data)
    costs = attacks()
    ours, theirs = beside_peer()
    return {
        "cases": cases,
        "cases_passed": passed,
        "attacks": len(costs),
        "slowest_attack_cpu_seconds": round(max(cost[0] for cost in costs.values()), 3),
        "all_attacks_growth_mib": round(sum(cost[1] for cost in costs.values()), 1),
        "urls_50k_cpu_seconds": round(ours, 3),
        "urls_50k_cpu_seconds_usp": round(theirs, 3),
        "times_faster_than_usp": round(theirs / ours, 2),
    }
