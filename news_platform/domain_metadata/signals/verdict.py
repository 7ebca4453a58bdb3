"""The statements of a site in, one verdict per crawler and purpose out, with what led to it.

Rules of precedence (their sources are in docs/usage_signals.md):

1. Access comes first: a path that robots.txt closes to the crawler is refused, whatever else is
   stated about it (RFC 9309; AIPREF attach §3.3).
2. Each system combines its own statements by its own rule: the longest path in robots.txt, the
   first rule of tdmrep.json, the page over the file in TDMRep, any refusal in AIPREF.
3. No source ranks one system over another. If one system allows what another refuses, the verdict
   is `conflicting`; whoever acts on it must treat it as a refusal.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from news_platform.datasets.domain_metadata import UseStatement
from news_platform.domain_metadata.signals.statements import (
    EVERYWHERE,
    HOME_PAGE,
    PURPOSES,
    Effect,
    Purpose,
    effect_of,
)
from news_platform.web.robots import AI_BOTS, Robots, RobotsRule

EVERYBODY = "*"
"""The name of a crawler that has no group of its own."""

Verdict = Literal["allow", "refuse", "partial", "unspecified", "conflicting"]

# The purposes that a crawler's operator states: a group of its own speaks about these.
_BOT_PURPOSES: dict[str, tuple[Purpose, ...]] = {
    "training": ("ai_train",),
    "search": ("index", "search"),
    "assistant": ("ai_input",),
    "data": ("index", "ai_train"),
}
_PURPOSES_BY_BOT = {bot.name.lower(): _BOT_PURPOSES[bot.purpose] for bot in AI_BOTS}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one statement contributed to a verdict."""

    effect: Effect | Literal["partial"]
    statement: UseStatement


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and the findings that led to it; an unspecified verdict has none."""

    verdict: Verdict
    findings: tuple[Finding, ...] = ()


def decide(
    statements: Sequence[UseStatement],
    *,
    rules: Robots,
    bot: str,
    purpose: Purpose,
    path: str = "/",
    source: str = "robots.txt",
) -> Decision:
    """Return the verdict for a crawler and a purpose on a path; `/` stands for the whole site."""
    access = _access(rules, bot=bot, purpose=purpose, path=path, source=source)
    bound = [one for one in statements if _binds(one, bot=bot, rules=rules)]
    return _combine(access, bound, own=_has_own_group(rules, bot), purpose=purpose, path=path)


def verdicts_for_everybody(
    statements: Sequence[UseStatement], *, rules: Robots, source: str
) -> dict[Purpose, Verdict]:
    """Return the verdict on every purpose for a crawler without a group of its own."""
    # The access of everybody is a statement about indexing alone, or else a refusal of everything.
    access = _access(rules, bot=EVERYBODY, purpose="index", path=EVERYWHERE, source=source)
    is_refused = access is not None and access.effect == "refuse"
    bound = [one for one in statements if _binds(one, bot=EVERYBODY, rules=rules)]
    return {
        purpose: _combine(
            access if is_refused or purpose == "index" else None,
            bound,
            own=False,
            purpose=purpose,
            path=EVERYWHERE,
        ).verdict
        for purpose in PURPOSES
    }


def _combine(
    access: Finding | None,
    bound: Sequence[UseStatement],
    *,
    own: bool,
    purpose: Purpose,
    path: str,
) -> Decision:
    """Return the verdict that follows from access and from the statements that bind the crawler."""
    if access is not None and access.effect == "refuse":
        return Decision("refuse", (access,))
    findings = list(_findings(bound, purpose=purpose, path=path))
    # Access that everybody has is the weakest statement: any other about the purpose replaces it.
    if access is not None and (not findings or own):
        findings.insert(0, access)
    return Decision(_verdict(findings), tuple(findings))


def _verdict(findings: Iterable[Finding]) -> Verdict:
    effects = {finding.effect for finding in findings}
    if {"allow", "refuse"} <= effects:
        return "conflicting"
    if "partial" in effects:
        return "refuse" if "refuse" in effects else "partial"
    return next(iter(effects), "unspecified")


def _access(rules: Robots, *, bot: str, purpose: Purpose, path: str, source: str) -> Finding | None:
    """Return what the access rules say, or None if they say nothing about the purpose."""
    own = _has_own_group(rules, bot)
    agent = bot.lower() if own else EVERYBODY
    allowed = rules.allows_crawler(bot, path)
    if not allowed:
        raw = _deciding_rule(rules, bot=bot, path=path)
        return _robots_finding("refuse", raw, agent=agent, source=source)
    # Rules for everybody grant access; about AI they say nothing.
    speaks = purpose in _PURPOSES_BY_BOT.get(bot.lower(), ()) if own else purpose == "index"
    if not speaks or not any(group.rules for group in rules.groups_of(bot)):
        return None
    is_partial = path == EVERYWHERE and rules.policy(bot) == "partial"
    effect: Literal["allow", "partial"] = "partial" if is_partial else "allow"
    raw = _deciding_rule(rules, bot=bot, path=path) or f"group of {agent}"
    return _robots_finding(effect, raw, agent=agent, source=source)


def _robots_finding(
    effect: Effect | Literal["partial"], raw: str, *, agent: str, source: str
) -> Finding:
    label = "disallow" if effect == "refuse" else "access"
    return Finding(effect, UseStatement("robots", source, raw, label, effect, (agent,)))


def _deciding_rule(rules: Robots, *, bot: str, path: str) -> str:
    """Return the line that decides about a path: the longest match, an allow before a disallow."""
    matching = [
        (rule.priority(path), rule.allow, rule)
        for group in rules.groups_of(bot)
        for rule in group.rules
        if rule.pattern and rule.priority(path) >= 0
    ]
    best = max(matching, key=lambda one: one[:2], default=None)
    if best is None:
        return ""
    return f"{'Allow' if best[2].allow else 'Disallow'}: {best[2].pattern}"


def _binds(statement: UseStatement, *, bot: str, rules: Robots) -> bool:
    """Return whether a statement speaks to a crawler.

    One inside a group of robots.txt reaches only the crawlers that select that group.
    """
    if not statement.agents:
        return True
    if bot.lower() in statement.agents:
        return True
    return EVERYBODY in statement.agents and not _has_own_group(rules, bot)


def _has_own_group(rules: Robots, bot: str) -> bool:
    return bot != EVERYBODY and rules.has_own_group(bot)


def _findings(
    statements: Sequence[UseStatement], *, purpose: Purpose, path: str
) -> Iterator[Finding]:
    for system in dict.fromkeys(one.system for one in statements):
        ours = [one for one in statements if one.system == system]
        if system == "tdmrep":
            yield from _tdmrep(ours, purpose=purpose, path=path)
        elif system == "ai_txt":
            yield from _ai_txt(ours, purpose=purpose, path=path)
        else:
            yield from _most_specific(ours, purpose=purpose, path=path)


def _most_specific(
    statements: Sequence[UseStatement], *, purpose: Purpose, path: str
) -> Iterator[Finding]:
    """Yield the strictest statements of the longest matching path, per source.

    Headers and files are separate statements, of which any refusal counts.
    """
    speaking = [one for one in statements if effect_of(one, purpose) is not None]
    found: list[Finding] = []
    for where in dict.fromkeys(_place(one) for one in speaking):
        matching = [one for one in speaking if _place(one) == where and matches(one.path, path)]
        longest = max((len(one.path) for one in matching), default=0)
        found += [
            Finding(effect, one)
            for one in matching
            if len(one.path) == longest and (effect := effect_of(one, purpose)) is not None
        ]
    refused = [one for one in found if one.effect == "refuse"]
    yield from refused or found
    if path == EVERYWHERE and not refused:
        yield from _elsewhere(speaking, purpose=purpose)


def _elsewhere(statements: Sequence[UseStatement], *, purpose: Purpose) -> Iterator[Finding]:
    """Yield refusals of parts of the site, when the question is about the whole of it."""
    for one in statements:
        if effect_of(one, purpose) == "refuse" and one.path not in (
            EVERYWHERE,
            HOME_PAGE,
            "/*",
            "*",
        ):
            yield Finding("partial", one)


def _tdmrep(
    statements: Sequence[UseStatement], *, purpose: Purpose, path: str
) -> Iterator[Finding]:
    """Yield what counts after the file, the header and the page: the last that is set."""
    reservations = [
        one for one in statements if one.label == "tdm-reservation" and one.value is not None
    ]
    chosen: UseStatement | None = None
    for place in ("file", "header", "meta"):
        first = next(
            (one for one in reservations if _place(one) == place and matches(one.path, path)), None
        )
        # A later place supersedes an earlier one; silence changes nothing.
        chosen = first or chosen
    effect = effect_of(chosen, purpose) if chosen else None
    if chosen and effect:
        yield Finding(effect, chosen)
    elif path == EVERYWHERE:
        yield from _elsewhere(reservations, purpose=purpose)


def _ai_txt(
    statements: Sequence[UseStatement], *, purpose: Purpose, path: str
) -> Iterator[Finding]:
    """Yield the longest matching rule; an Allow lifts a shorter Disallow and grants nothing."""
    matching = [one for one in statements if one.value and matches(one.path, path)]
    best = max(matching, key=lambda one: (len(one.path), one.label == "disallow"), default=None)
    effect = effect_of(best, purpose) if best else None
    if best and effect:
        yield Finding(effect, best)
    elif path == EVERYWHERE:
        yield from _elsewhere(statements, purpose=purpose)


def _place(statement: UseStatement) -> str:
    """Return whether a statement stands in a file, a header or an element of the page."""
    _, _, rest = statement.source.partition(" ")
    if not rest:
        return "file"
    return "meta" if rest.startswith("<") else "header"


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern of RFC 9309 covers a path."""
    return RobotsRule(allow=False, pattern=pattern).priority(path) >= 0
