"""The statements of a site in, one verdict per crawler and purpose out, with what led to it.

Rules of precedence (their sources are in docs/usage_signals.md):

1. Access comes first: a path that robots.txt closes to the crawler is refused, whatever else is
   stated about it (RFC 9309; AIPREF attach §3.3).
2. Each system combines its own statements by its own rule: the longest path in robots.txt, the
   first rule of tdmrep.json, the page over the file in TDMRep, any refusal in AIPREF.
3. No source ranks one system over another. If one system allows what another refuses, the verdict
   is `conflicting`; whoever acts on it must treat it as a refusal.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import quote

from news_platform.datasets.domain_metadata import ROBOTS_FILE, RobotsFacts, UseStatement
from news_platform.domain_metadata.signals.robots_signals import license_urls
from news_platform.domain_metadata.signals.statements import (
    EVERYWHERE,
    PURPOSES,
    Effect,
    Purpose,
    effect_of,
)
from news_platform.web.robots import AI_BOTS, Robots, RobotsRule, product_token

EVERYBODY = "*"
"""The name of a crawler that has no group of its own."""

Verdict = Literal["allow", "refuse", "partial", "unspecified", "conflicting"]

MAX_AGE = timedelta(days=90)
"""A statement that was last read longer ago than this does not count for a verdict."""
NO_RULES = Robots(())
_WHOLE_SITE = frozenset({EVERYWHERE, "*", "/*"})
_ANY_PAGE = "/~"
_MOST_COMPARISONS = 10_000
_ASCII = "".join(map(chr, range(33, 127)))

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
    """A verdict and the findings that led to it; an unspecified verdict has none.

    `is_stale` means that statements were left out because they were last read too long ago.
    """

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class SiteStatements:
    """All that a site has stated as of a time: the rules of its robots.txt, and statements.

    `robots` tells where the rules were read, and when.
    """

    rules: Robots
    statements: Sequence[UseStatement]
    robots: RobotsFacts
    at: datetime

    def decide(self, bot: str, purpose: Purpose, path: str | None = None) -> Decision:
        """Return the verdict; what was last read over 90 days before does not count for it."""
        fresh = self._fresh()
        found = fresh._decide(bot, purpose, path)
        if fresh is self:
            return found
        return replace(found, is_stale=self._decide(bot, purpose, path) != found)

    def verdicts(self) -> dict[Purpose, tuple[Verdict, bool]]:
        """Return the verdict for everybody on every purpose, and whether it is stale."""
        decisions = {purpose: self.decide(EVERYBODY, purpose) for purpose in PURPOSES}
        return {name: (found.verdict, found.is_stale) for name, found in decisions.items()}

    def _fresh(self) -> "SiteStatements":
        oldest = self.at - MAX_AGE
        statements = [one for one in self.statements if not _is_before(one.read_at, oldest)]
        rules = NO_RULES if _is_before(self.robots.read_at, oldest) else self.rules
        if rules is self.rules and len(statements) == len(self.statements):
            return self
        return replace(self, rules=rules, statements=statements)

    def _decide(self, bot: str, purpose: Purpose, path: str | None) -> Decision:
        found = decide(self.statements, rules=self.rules, bot=bot, purpose=purpose, path=path)
        robots, (first, *_) = self.robots, (*found.findings, None)
        if first is None or first.statement.system != "robots":
            return found
        source = robots.final_url or robots.url
        rule = replace(first.statement, source=source, sha256=robots.sha256, read_at=robots.read_at)
        return replace(found, findings=(replace(first, statement=rule), *found.findings[1:]))


def _is_before(read_at: datetime | None, oldest: datetime) -> bool:
    return read_at is not None and read_at < oldest


def decide(
    statements: Sequence[UseStatement],
    *,
    rules: Robots,
    bot: str,
    purpose: Purpose,
    path: str | None = None,
) -> Decision:
    """Return the verdict for a crawler and a purpose on a page, or on the site if `path` is None.

    A refusal of a part of the site, its home page included, makes the verdict on it `partial`,
    unless the other statements refuse the rest of it.
    """
    own = bot != EVERYBODY and rules.has_own_group(bot)
    path = None if path is None else _encoded(path)
    access = _access(rules, bot=bot, own=own, purpose=purpose, path=path)
    if access is not None and access.effect == "refuse":
        return Decision("refuse", (access,))
    bound = _bound(statements, bot=bot, own=own)
    findings = list(_findings(bound, purpose=purpose, path=path))
    # Access that everybody has is the weakest statement: any other about the purpose replaces it.
    if access is not None and (not findings or own or access.effect == "partial"):
        findings.insert(0, access)
    verdict = _verdict(findings)
    if path is None and verdict == "partial" and _is_closed(statements, rules, bot, purpose):
        verdict = "refuse"
    return Decision(verdict, tuple(findings))


def _is_closed(
    statements: Sequence[UseStatement], rules: Robots, bot: str, purpose: Purpose
) -> bool:
    """Return whether every page is refused, also those that some statement leaves open."""
    access = [rule for group in rules.groups_of(bot) for rule in group.rules]
    opened = [rule.pattern for rule in access if rule.allow]
    patterns = dict.fromkeys([_ANY_PAGE, *opened, *(one.path for one in statements)])
    # Each is compared with all rules; a site with so many exceptions counts as one that has some.
    return len(patterns) * len(access) <= _MOST_COMPARISONS and all(
        decide(statements, rules=rules, bot=bot, purpose=purpose, path=path).verdict == "refuse"
        for path in map(_example, patterns)
    )


def _verdict(findings: Iterable[Finding]) -> Verdict:
    effects = {finding.effect for finding in findings}
    if {"allow", "refuse"} <= effects:
        return "conflicting"
    if "partial" in effects:
        return "refuse" if "refuse" in effects else "partial"
    return next(iter(effects), "unspecified")


def _access(
    rules: Robots, *, bot: str, own: bool, purpose: Purpose, path: str | None
) -> Finding | None:
    """Return what the access rules say, or None if they say nothing about the purpose."""
    if path is None:
        policy = rules.policy(bot)
        if policy in ("disallow_all", "partial"):
            closed = [rule for group in rules.groups_of(bot) for rule in group.rules]
            first = next(rule for rule in closed if rule.pattern and not rule.allow)
            return _robots_finding(
                "refuse" if policy == "disallow_all" else "partial", first, bot=bot, own=own
            )
    elif not rules.allows_crawler(bot, path):
        return _robots_finding("refuse", rules.deciding_rule(bot, path), bot=bot, own=own)
    # Rules for everybody grant access; about AI they say nothing.
    speaks = purpose in _PURPOSES_BY_BOT.get(bot.lower(), ()) if own else purpose == "index"
    if not speaks or not any(group.rules for group in rules.groups_of(bot)):
        return None
    return _robots_finding("allow", rules.deciding_rule(bot, path or "/"), bot=bot, own=own)


def _robots_finding(
    effect: Effect | Literal["partial"], rule: RobotsRule | None, *, bot: str, own: bool
) -> Finding:
    label = "disallow" if effect == "refuse" else "access"
    agent = bot.lower() if own else EVERYBODY
    raw, line = (str(rule), rule.line) if rule else (f"group of {agent}", None)
    stated = UseStatement(
        "robots", ROBOTS_FILE, raw, label, effect, (agent,), file=ROBOTS_FILE, line=line
    )
    return Finding(effect, stated)


def _bound(statements: Sequence[UseStatement], *, bot: str, own: bool) -> list[UseStatement]:
    """Return the statements that speak to a crawler.

    One inside a group of robots.txt reaches only the crawlers that select that group. A licence
    document speaks to those to whom a line, a header or an element names it.
    """
    names = {bot.lower(), product_token(bot)} if own else {bot.lower(), EVERYBODY}
    bound = [one for one in statements if not one.agents or names.intersection(one.agents)]
    if not any(one.system == "rsl" for one in bound):
        return bound
    named = license_urls(bound, bot)
    # A source with a blank is a page that has the terms in itself.
    return [
        one
        for one in bound
        if one.system != "rsl" or one.label == "license" or " " in one.source or one.source in named
    ]


def _findings(
    statements: Sequence[UseStatement], *, purpose: Purpose, path: str | None
) -> Iterator[Finding]:
    for system in dict.fromkeys(one.system for one in statements):
        ours = [one for one in statements if one.system == system]
        by_path = _BY_SYSTEM.get(system, _most_specific)
        if path is not None:
            yield from by_path(ours, purpose=purpose, path=path)
        else:
            yield from _of_site(ours, by_path, purpose=purpose)


def _of_site(
    statements: Sequence[UseStatement], by_path: "_ByPath", *, purpose: Purpose
) -> Iterator[Finding]:
    """Yield what a system states about a page that no statement singles out, and about parts.

    A grant of a part says nothing about the site.
    """
    whole = list(by_path(statements, purpose=purpose, path=_ANY_PAGE))
    is_refused, is_lifted = any(one.effect == "refuse" for one in whole), False
    for pattern in dict.fromkeys(one.path for one in statements if one.path not in _WHOLE_SITE):
        part = by_path(statements, purpose=purpose, path=_example(pattern))
        refusal = next((one for one in part if one.effect == "refuse"), None)
        is_lifted |= refusal is None
        if refusal is not None and not is_refused:
            whole.append(replace(refusal, effect="partial"))
    for one in whole:
        yield replace(one, effect="partial") if one.effect == "refuse" and is_lifted else one


def _example(pattern: str) -> str:
    """Return a path that a pattern covers."""
    path = pattern.removesuffix("$").replace("*", "x")
    return path if path.startswith("/") else f"/{path}"


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


def _ai_txt(
    statements: Sequence[UseStatement], *, purpose: Purpose, path: str
) -> Iterator[Finding]:
    """Yield the longest matching rule; an Allow lifts a shorter Disallow and grants nothing."""
    matching = [one for one in statements if one.value and matches(one.path, path)]
    best = max(matching, key=lambda one: (len(one.path), one.label == "disallow"), default=None)
    effect = effect_of(best, purpose) if best else None
    if best and effect:
        yield Finding(effect, best)


_ByPath = Callable[..., Iterator[Finding]]
_BY_SYSTEM: Mapping[str, _ByPath] = {"tdmrep": _tdmrep, "ai_txt": _ai_txt}


def _place(statement: UseStatement) -> str:
    """Return whether a statement stands in a file, a header or an element of the page."""
    _, _, rest = statement.source.partition(" ")
    if not rest:
        return "file"
    return "meta" if rest.startswith("<") else "header"


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern of RFC 9309 covers a percent-encoded path."""
    return RobotsRule(allow=False, pattern=_encoded(pattern)).priority(path) >= 0


def _encoded(text: str) -> str:
    """Return a path or pattern with its letters outside ASCII as they are sent."""
    return text if text.isascii() else quote(text, safe=_ASCII, errors="replace")
