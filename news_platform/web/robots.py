"""The bytes of a robots.txt in, verdicts out: RFC 9309, in the details like Google's own parser.

Those details: a known key may carry a tail or a frequent typo, a missing colon is forgiven, the
longest matching pattern wins and allow wins a tie, `index.htm` stands for its folder in an allow
rule, lines other than rules neither open nor close a group. Nothing raises, whatever the bytes.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple, Self

from news_platform.web.ai_bots import AI_BOTS

MAX_BYTES = 500 * 1024
"""As much of a file as RFC 9309 asks us to read."""

Policy = Literal["disallow_all", "partial", "allow", "unspecified"]

# Google's parser cuts lines at eight times the longest URL a browser takes.
_MAX_LINE_BYTES = 2083 * 8 - 1
_BOM = b"\xef\xbb\xbf"
_BLANK = " \t\n\v\f\r"
_TOKEN = re.compile(r"[A-Za-z_-]+")
_PRODUCT = re.compile(r"([A-Za-z_-]+)(?:/| \(|$)")
_WORD_GAP = re.compile(r"[ \t]+")
_PATH_START = re.compile(r"[/?;]")
_PLAIN = re.compile(r"[!-$&-~]*")
_ESCAPABLE = re.compile(r"%[0-9A-Fa-f]{2}|[\x80-\xff]")
_KEYS = (
    ("user-agent", ("user-agent", "useragent", "user agent")),
    ("allow", ("allow",)),
    (
        "disallow",
        ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"),
    ),
    ("sitemap", ("sitemap", "site-map")),
    ("crawl-delay", ("crawl-delay", "crawldelay", "crawl delay")),
)
_AI_BOT_NAMES = {bot.name.lower(): bot.name for bot in AI_BOTS}
_EVERYTHING = frozenset({"/", "*", "/*"})


@dataclass(frozen=True, slots=True)
class RobotsRule:
    """One allow or disallow line; the pattern is percent-encoded as URLs are."""

    allow: bool
    pattern: str

    def priority(self, path: str) -> int:
        """Return how well the rule matches: the length of its pattern, or -1."""
        if _matches(path, self.pattern):
            return len(self.pattern)
        folder, slash, page = self.pattern.rpartition("/")
        if self.allow and slash and page.startswith("index.htm"):
            return RobotsRule(True, f"{folder}/$").priority(path)
        return -1


@dataclass(slots=True)
class RobotsGroup:
    """The agents named together (lower case) and the rules they share; `*` is everyone."""

    agents: set[str] = field(default_factory=set)
    rules: list[RobotsRule] = field(default_factory=list)
    crawl_delay: float | None = None


@dataclass(frozen=True, slots=True)
class AiPolicy:
    """What a file says to one AI crawler, in its own group or in everyone's (`*`)."""

    bot: str
    policy: Policy
    source: Literal["own", "everyone", "none"]


class AiStance(NamedTuple):
    """The policy towards everyone, and those towards AI crawlers with a group of their own."""

    everyone: Policy
    own: tuple[tuple[str, Policy], ...]


@lru_cache(maxsize=4096)
def policies_of(stance: AiStance) -> Mapping[str, AiPolicy]:
    """Return the policy towards each crawler of AI_BOTS; it is shared, so it cannot be changed."""
    source: Literal["everyone", "none"] = "none" if stance.everyone == "unspecified" else "everyone"
    found = {bot.name: AiPolicy(bot.name, stance.everyone, source) for bot in AI_BOTS}
    return MappingProxyType(
        found | {name: AiPolicy(name, policy, "own") for name, policy in stance.own}
    )


class Robots:
    """A parsed robots.txt."""

    __slots__ = ("_everyone", "_named", "groups", "sitemaps")

    def __init__(self, groups: Iterable[RobotsGroup], sitemaps: Iterable[str] = ()) -> None:
        self.groups = tuple(groups)
        self.sitemaps = tuple(dict.fromkeys(sitemaps))
        self._named: dict[str, list[RobotsGroup]] = {}
        for group in self.groups:
            for agent in group.agents:
                self._named.setdefault(agent, []).append(group)
        self._everyone = self._named.get("*", [])

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Read a robots.txt; what is no rule is passed over, what lies past the cap is not read."""
        groups: list[RobotsGroup] = []
        sitemaps: list[str] = []
        open_group = False  # whether agents still join the last group
        for key, value in _lines(body):
            if key == "user-agent":
                if not open_group:
                    groups.append(RobotsGroup())
                    open_group = True
                groups[-1].agents |= _agents(value)
            elif key == "sitemap":
                sitemaps.append(value.encode("latin-1").decode("utf-8", "replace"))
            elif groups and key == "crawl-delay":
                groups[-1].crawl_delay = _seconds(value, groups[-1].crawl_delay)
            elif groups and key in ("allow", "disallow"):
                groups[-1].rules.append(RobotsRule(key == "allow", _escaped(value)))
                open_group = False
        return cls(groups, filter(None, sitemaps))

    @classmethod
    def of_answer(cls, status: int | None, body: bytes) -> Self:
        """Judge by the answer, None being no answer.

        2xx is read, 4xx allow all, 429, 5xx and no answer disallow all.
        """
        if status is not None and 200 <= status < 300:
            return cls.parse(body)
        if status is not None and 300 <= status < 500 and status != 429:
            return cls(())
        return cls([RobotsGroup({"*"}, [RobotsRule(False, "/")])])

    def allows(self, user_agent: str, url: str) -> bool:
        """Say whether an agent may fetch a URL (percent-encoded); no matching group means yes.

        Of a full User-Agent only the product token in front is compared: `FooBot/2.1` is FooBot.
        """
        path = _path(url.encode("utf-8", "surrogatepass").decode("latin-1"))
        best = {True: 0, False: 0}
        for group in self._groups_of(user_agent):
            for rule in group.rules:
                best[rule.allow] = max(best[rule.allow], rule.priority(path))
        return best[False] <= best[True]

    def crawl_delay(self, user_agent: str) -> float | None:
        """Return the seconds an agent is asked to leave between requests, or None."""
        delays = (group.crawl_delay for group in self._groups_of(user_agent))
        return next((delay for delay in delays if delay is not None), None)

    def ai_policies(self) -> Mapping[str, AiPolicy]:
        """Return what the file says to each crawler of AI_BOTS, by name."""
        return policies_of(self.ai_stance())

    def ai_stance(self) -> AiStance:
        """Return what sets the file apart from others in its policies; few files are alone."""
        own = sorted(
            (_AI_BOT_NAMES[agent], _policy(self._named[agent]))
            for agent in self._named.keys() & _AI_BOT_NAMES.keys()
        )
        return AiStance(_policy(self._everyone), tuple(own))

    def _groups_of(self, user_agent: str) -> list[RobotsGroup]:
        product = _PRODUCT.match(user_agent)
        own = self._named.get(product.group(1).lower()) if product else None
        return own or self._everyone


def _lines(body: bytes) -> Iterable[tuple[str, str]]:
    """Yield known keys with their values; bytes become characters one to one."""
    # A line cut in half would say something else, and a body of just this length was cut by us.
    if len(body) >= MAX_BYTES:
        body = body[: max(body.rfind(b"\n", 0, MAX_BYTES), body.rfind(b"\r", 0, MAX_BYTES), 0)]
    for size in (3, 2, 1):
        if body.startswith(_BOM[:size]):
            body = body[size:]
            break
    for line in body.decode("latin-1").replace("\r", "\n").split("\n"):
        found = _key_and_value(line[:_MAX_LINE_BYTES]) if line else None
        if found is not None:
            yield found


def _key_and_value(line: str) -> tuple[str, str] | None:
    if "\0" in line:
        line = line.partition("\0")[0]
    key, colon, value = line.partition("#")[0].strip(_BLANK).partition(":")
    if not key:
        return None
    if not colon:
        words = _WORD_GAP.split(key)
        if len(words) != 2:
            return None
        key, value = words
    name = _known(key.strip(_BLANK).lower())
    return (name, value.strip(_BLANK)) if name else None


@lru_cache(maxsize=512)
def _known(key: str) -> str | None:
    for name, spellings in _KEYS:
        if key.startswith(spellings):
            return name
    return None


def _agents(value: str) -> set[str]:
    """Name a group's agent: its token, and as written for crawlers with digits in their name."""
    if value[:1] == "*" and (len(value) == 1 or value[1] in _BLANK):
        return {"*"}
    token = _TOKEN.match(value)
    return ({token.group().lower()} if token else set()) | ({value.lower()} - {"", "*"})


def _escaped(pattern: str) -> str:
    return pattern if _PLAIN.fullmatch(pattern) else _ESCAPABLE.sub(_escape, pattern)


def _escape(found: re.Match[str]) -> str:
    text = found.group()
    return text.upper() if len(text) == 3 else f"%{ord(text):02X}"


def _seconds(value: str, known: float | None) -> float | None:
    try:
        seconds = float(value.replace(",", "."))
    except ValueError:
        return known
    return seconds if known is None and math.isfinite(seconds) and seconds >= 0 else known


def _path(url: str) -> str:
    """Return the path and query of a URL, the way the reference cuts it."""
    start = 2 if url.startswith("//") else 0
    scheme_end = url.find("://", start)
    early = _first_of(url, start)
    if scheme_end >= 0 and not 0 <= early < scheme_end:
        start = scheme_end + 3
    path_start = _first_of(url, start)
    hash_at = url.find("#", 2 if url.startswith("//") else 0)
    if path_start < 0 or 0 <= hash_at < path_start:
        return "/"
    path = url[path_start : hash_at if hash_at >= 0 else len(url)]
    return path if path.startswith("/") else f"/{path}"


def _first_of(url: str, start: int) -> int:
    found = _PATH_START.search(url, start)
    return found.start() if found else -1


def _matches(path: str, pattern: str) -> bool:
    """Match from the start; `*` is any run of characters, a final `$` is the end of the path."""
    anchored = pattern.endswith("$")
    first, *rest = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    if not rest:
        return not anchored or at == len(path)
    for part in rest[:-1]:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if anchored:
        return path.endswith(rest[-1]) and len(path) - len(rest[-1]) >= at
    return path.find(rest[-1], at) >= 0


def _policy(groups: list[RobotsGroup]) -> Policy:
    """Sum up what groups allow: everything, nothing, or something in between."""
    if not groups:
        return "unspecified"
    rules = [rule for group in groups for rule in group.rules if rule.pattern]
    closed = [rule.pattern for rule in rules if not rule.allow]
    opened = [rule.pattern for rule in rules if rule.allow]
    if not closed:
        return "allow"
    reopened = max((len(p) for p in opened if p in _EVERYTHING), default=0)
    if all(len(pattern) <= reopened for pattern in closed):
        return "allow"
    return "partial" if opened or not _EVERYTHING.intersection(closed) else "disallow_all"
