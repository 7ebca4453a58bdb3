"""Parse robots.txt and decide what it allows: RFC 9309, in the details like Google's parser.

Those details: a known key may have a suffix or a frequent typo, a missing colon is accepted, the
longest matching pattern wins and allow wins a tie, `index.htm` stands for its folder in an allow
rule, and lines other than rules neither open nor close a group. No input raises an exception.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple, Self

from news_platform.datasets import versions

AI_BOTS_VERSION = versions.AI_BOTS


@dataclass(frozen=True, slots=True)
class AiBot:
    """One crawler, by its name in robots.txt; `source` is a page of its operator, or `list`.

    `training` collects data for models, `search` builds an index for model answers, `assistant`
    fetches on a user's request, `data` sells or shares what it collects.
    """

    name: str
    operator: str
    purpose: str
    source: str = "list"


def _read() -> Iterator[AiBot]:
    text = (files("news_platform.web") / "ai_bots.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            yield AiBot(*line.split("\t"))


AI_BOTS = tuple(_read())


MAX_BYTES = 500 * 1024
"""RFC 9309 requires parsers to read at least this much of a file."""

Policy = Literal["disallow_all", "partial", "allow", "unspecified"]

# Google's parser cuts lines at eight times the longest URL that browsers accept.
_MAX_LINE_BYTES = 2083 * 8 - 1
_BOM = b"\xef\xbb\xbf"
_BLANK = " \t\n\v\f\r"
_TOKEN = re.compile(r"[A-Za-z_-]+")
_PRODUCT = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)(?:/| \(|$)")
# Many crawlers pose as a browser and give their own name in the comment.
_COMPATIBLE = re.compile(r"Mozilla/[0-9.]+ \(compatible; *([A-Za-z][A-Za-z0-9_-]*)")
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
    # Statements about use; the plural is a frequent typo of sites that mean the same.
    ("content-signal", ("content-signal",)),
    ("content-usage", ("content-usage",)),
    ("license", ("license",)),
)
USE_KEYS = frozenset({"content-signal", "content-usage", "license"})
"""Keys of lines that state how content may be used; they never open or close a group."""
_AI_BOT_NAMES = {bot.name.lower(): bot.name for bot in AI_BOTS}
_EVERYTHING = frozenset({"/", "*", "/*"})


@dataclass(frozen=True, slots=True)
class RobotsRule:
    """One allow or disallow line; the pattern is percent-encoded like a URL.

    `line` is its number in the file, from 1; 0 for a rule that is in no file.
    """

    allow: bool
    pattern: str
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        """Return the line as robots.txt has it."""
        return f"{'Allow' if self.allow else 'Disallow'}: {self.pattern}"

    def priority(self, path: str) -> int:
        """Return the length of the pattern if it matches the path, else -1."""
        pattern = self.pattern
        if _matches(path, pattern):
            return len(pattern)
        # Only the few rules with this text need to be taken apart.
        if self.allow and "/index.htm" in pattern:
            folder, _, page = pattern.rpartition("/")
            if page.startswith("index.htm"):
                return RobotsRule(True, f"{folder}/$").priority(path)
        return -1


class UseLine(NamedTuple):
    """One line that states how content may be used: its key in lower case, value and number."""

    key: str
    value: str
    line: int = 0


@dataclass(slots=True)
class RobotsGroup:
    """User agents in lower case and the rules they share; `*` means all agents."""

    agents: set[str] = field(default_factory=set)
    rules: list[RobotsRule] = field(default_factory=list)
    crawl_delay: float | None = None
    uses: list[UseLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AiPolicy:
    """The policy for one AI crawler, from its own group or from the group of all agents (`*`)."""

    bot: str
    policy: Policy
    source: Literal["own", "everyone", "none"]


# A survey asks with one agent, a verdict about few crawlers.
@lru_cache(maxsize=1024)
def product_token(user_agent: str) -> str:
    """Return the lower-case name of an agent in robots.txt, foobot for `FooBot/2.1`; '' if none."""
    found = _COMPATIBLE.match(user_agent) or _PRODUCT.match(user_agent)
    return found.group(1).lower() if found else ""


class Robots:
    """A parsed robots.txt."""

    __slots__ = ("_everyone", "_named", "_policies", "groups", "sitemaps", "uses")

    def __init__(
        self,
        groups: Iterable[RobotsGroup],
        sitemaps: Iterable[str] = (),
        uses: Iterable[UseLine] = (),
    ) -> None:
        self.groups = tuple(groups)
        self.sitemaps = tuple(dict.fromkeys(sitemaps))
        self.uses = tuple(uses)
        self._named: dict[str, list[RobotsGroup]] = {}
        for group in self.groups:
            for agent in group.agents:
                self._named.setdefault(agent, []).append(group)
        self._everyone = self._named.get("*", [])
        self._policies: dict[str, Policy] = {}

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Parse a robots.txt; unknown lines and everything past MAX_BYTES are ignored."""
        groups: list[RobotsGroup] = []
        sitemaps: list[str] = []
        uses: list[UseLine] = []  # before the first group
        open_group = False  # True while further agents join the last group
        for number, key, value in _lines(body):
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
                groups[-1].rules.append(RobotsRule(key == "allow", _escaped(value), number))
                open_group = False
            elif key in USE_KEYS:
                line = UseLine(key, value.encode("latin-1").decode("utf-8", "replace"), number)
                (groups[-1].uses if groups else uses).append(line)
        return cls(groups, filter(None, sitemaps), uses)

    @classmethod
    def of_answer(cls, status: int | None, body: bytes) -> Self:
        """Return the rules that follow from an HTTP response; status None means no response.

        2xx: the body is parsed. 3xx and 4xx: everything is allowed. 429, 5xx and no response:
        everything is disallowed.
        """
        if status is not None and 200 <= status < 300:
            return cls.parse(body)
        if status is not None and 300 <= status < 500 and status != 429:
            return cls(())
        return cls([RobotsGroup({"*"}, [RobotsRule(False, "/")])])

    def allows(self, user_agent: str, url: str) -> bool:
        """Return True if an agent may fetch a percent-encoded URL; without a matching group it may.

        Only the product token of a User-Agent is compared: `FooBot/2.1` is FooBot.
        """
        return _allow(self._groups_of_agent(user_agent), url)

    def deciding_rule(self, user_agent: str, url: str) -> RobotsRule | None:
        """Return the line that decides about a URL, as `allows` does; None if none applies."""
        path = _path(url.encode("utf-8", "surrogatepass").decode("latin-1"))
        rules = [rule for group in self.groups_of(user_agent) for rule in group.rules]
        # The longest pattern decides; of two equally long ones, the one that allows.
        best = max(rules, key=lambda rule: (rule.priority(path), rule.allow), default=None)
        return best if best is not None and best.priority(path) > 0 else None

    def allows_crawler(self, name: str, url: str) -> bool:
        """Return True if the crawler of this name may fetch a URL; see `groups_of`."""
        return _allow(self.groups_of(name), url)

    def crawl_delay(self, user_agent: str) -> float | None:
        """Return the requested seconds between two requests of an agent, or None."""
        delays = (group.crawl_delay for group in self._groups_of_agent(user_agent))
        return next((delay for delay in delays if delay is not None), None)

    def ai_policies(self) -> dict[str, AiPolicy]:
        """Return the policy for each crawler of AI_BOTS, by name."""
        everyone, own = self.ai_stance()
        source: Literal["everyone", "none"] = "none" if everyone == "unspecified" else "everyone"
        return {
            bot.name: AiPolicy(bot.name, own[bot.name], "own")
            if bot.name in own
            else AiPolicy(bot.name, everyone, source)
            for bot in AI_BOTS
        }

    def ai_stance(self) -> tuple[Policy, dict[str, Policy]]:
        """Return the policy for all agents, and those of AI crawlers with a group of their own."""
        named = sorted(self._named.keys() & _AI_BOT_NAMES.keys())
        own = {_AI_BOT_NAMES[agent]: _policy(self._named[agent]) for agent in named}
        return self.policy("*"), own

    def has_own_group(self, name: str) -> bool:
        """Return whether a group names this crawler."""
        return self.groups_of(name) is not self._everyone

    def groups_of(self, name: str) -> list[RobotsGroup]:
        """Return the groups that a crawler must obey: those that name it, or else those of `*`.

        A name as robots.txt has it is compared as a whole, a User-Agent by its product token.
        """
        named = self._named.get(name.lower()) or self._named.get(product_token(name))
        return named or self._everyone

    def policy(self, name: str) -> Policy:
        """Return whether a crawler may fetch everything, nothing, or something in between."""
        if name not in self._policies:
            self._policies[name] = _policy(self.groups_of(name))
        return self._policies[name]

    def _groups_of_agent(self, user_agent: str) -> list[RobotsGroup]:
        return self._named.get(product_token(user_agent)) or self._everyone


def _allow(groups: Iterable[RobotsGroup], url: str) -> bool:
    path = _path(url.encode("utf-8", "surrogatepass").decode("latin-1"))
    allowed = refused = 0
    for group in groups:
        for rule in group.rules:
            priority = rule.priority(path)
            if priority > refused and not rule.allow:
                refused = priority
            elif priority > allowed and rule.allow:
                allowed = priority
    return refused <= allowed


def _lines(body: bytes) -> Iterable[tuple[int, str, str]]:
    """Yield the numbers of lines with known keys and values; a byte becomes one character."""
    # A line cut in half could mean something else, and a body of just this length was cut by us.
    if len(body) >= MAX_BYTES:
        body = body[: max(body.rfind(b"\n", 0, MAX_BYTES), body.rfind(b"\r", 0, MAX_BYTES), 0)]
    for size in (3, 2, 1):
        if body.startswith(_BOM[:size]):
            body = body[size:]
            break
    text = body.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")
    for number, line in enumerate(text.split("\n"), 1):
        found = _key_and_value(line[:_MAX_LINE_BYTES]) if line else None
        if found is not None:
            yield number, *found


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
    """Return the agent's token, and the name as written for crawlers with digits in their name."""
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
    """Return the path and query of a URL, split like Google's parser splits it."""
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
    if "*" not in pattern and "$" not in pattern:
        return path.startswith(pattern)
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
    """Return whether groups allow everything, nothing, or something in between."""
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
