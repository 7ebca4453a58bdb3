"""What an answer, or the lack of one, means for a domain: finished, try again, give up for now."""

from dataclasses import dataclass
from typing import Literal

from news_platform.datasets.domain_metadata import RobotsFacts, SitemapFacts

Verdict = Literal["final", "retry", "give_up"]

# Asking again within minutes would only repeat these; the next run may find another internet.
_STUBBORN = frozenset({"blocked_address", "blocked_port", "bad_url", "too_many_redirects"})
# Come back later, says the server; every 5xx says so too, and a 1xx is no answer yet.
_LATER = frozenset({408, 425, 429})
# A name that is missing once may be a name server's hiccup.
_TRIES_TO_CONFIRM_NXDOMAIN = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """One word to count by, and what follows from it; only `final` earns the success marker."""

    word: str
    verdict: Verdict


OK = Outcome("ok", "final")
NO_ROBOTS = Outcome("no_robots", "final")


def outcome_of(robots: list[RobotsFacts], sitemap: SitemapFacts, *, tries: int) -> Outcome:
    """Sum up a domain: its best robots.txt decides, then its sitemap must not be in doubt."""
    best = min((robots_outcome(facts, tries=tries) for facts in robots), key=_rank)
    if best.verdict != "final" or best.word == "nxdomain":
        return best
    doubt = sitemap_doubt(sitemap)
    return Outcome(f"sitemap_{doubt}", "retry") if doubt else best


def robots_outcome(facts: RobotsFacts, *, tries: int) -> Outcome:
    """Judge the answer of one host."""
    if facts.status_code is not None:
        return _status_outcome(facts.status_code)
    reason = facts.error or "network"
    if reason == "nxdomain":
        confirmed = tries >= _TRIES_TO_CONFIRM_NXDOMAIN
        return Outcome("nxdomain", "final" if confirmed else "retry")
    return Outcome(reason, "give_up" if reason in _STUBBORN else "retry")


def sitemap_doubt(facts: SitemapFacts) -> str | None:
    """Return why a sitemap may still turn up, None when its absence or presence is certain."""
    if facts.status_code is not None:
        outcome = _status_outcome(facts.status_code)
        return outcome.word if outcome.verdict == "retry" else None
    if facts.error is None or facts.error == "nxdomain" or facts.error in _STUBBORN:
        return None
    return facts.error


def _status_outcome(status: int) -> Outcome:
    if 200 <= status < 300:
        return OK
    if status >= 500 or status < 200 or status in _LATER:
        return Outcome(f"http_{status}", "retry")
    return NO_ROBOTS


def _rank(outcome: Outcome) -> int:
    """Order outcomes from the one that tells most; equal ones keep the first host's."""
    if outcome == OK:
        return 0
    if outcome == NO_ROBOTS:
        return 1
    return 3 if outcome.word == "nxdomain" else 2
