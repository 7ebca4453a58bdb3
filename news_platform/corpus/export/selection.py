"""Which articles an export takes, which usage it needs to be allowed, and what that means."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from news_platform.corpus.rows import QUALITY_FLAGS
from news_platform.errors import InputError

Keep = Literal["earliest", "longest"]
FileFormat = Literal["parquet", "jsonl"]
TOPICS = ("other", "politics", "sports")
KEEPS: tuple[Keep, ...] = ("earliest", "longest")
FORMATS: tuple[FileFormat, ...] = ("parquet", "jsonl")

# The verdict about a domain that was never surveyed.
UNKNOWN = "unknown"
# `conflicting` means that one statement refuses. `partial` means that some paths are refused, and
# not this one: verdicts are asked for the path of the article.
_REFUSED = frozenset(("refuse", "conflicting"))
# Nothing was stated, or nothing was asked.
_SILENT = frozenset(("unspecified", UNKNOWN))


@dataclass(frozen=True, slots=True, order=True)
class UsageRule:
    """A crawler and a purpose that publishers must not refuse, such as GPTBot and ai_train."""

    bot: str
    purpose: str

    @classmethod
    def parse(cls, text: str, *, purposes: Collection[str]) -> "UsageRule":
        """Parse `BOT:PURPOSE`; the bot `*` is any crawler."""
        bot, colon, purpose = text.partition(":")
        if not bot or not colon or purpose not in purposes:
            expected = f"BOT:PURPOSE with one of {', '.join(sorted(purposes))}"
            raise InputError(f"invalid policy {text!r}: expected {expected}", thing=text)
        return cls(bot, purpose)

    def __str__(self) -> str:
        return f"{self.bot}:{self.purpose}"


@dataclass(frozen=True, slots=True)
class Stated:
    """What a publisher stated about a rule: the verdict, and when the site was surveyed."""

    verdict: str
    surveyed_at: datetime | None = None


class StatedUsage(Protocol):
    """Says what the publisher of an address had stated about a rule at a time."""

    def __call__(self, url: str, rule: UsageRule, at: datetime, /) -> Stated:
        """Return the verdict."""
        ...


def nothing_stated(_url: str, _rule: UsageRule, _at: datetime) -> Stated:
    """Return that nothing is known, where no survey exists."""
    return Stated(UNKNOWN)


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """Which articles to export; an empty collection means any.

    `days` are ISO dates, sorted. Of articles with the same text one is kept: the `earliest` or the
    `longest`. Articles whose publisher refuses one of the `rules` are left out, with `strict` also
    those about whom nothing is known. Paywalled articles are always left out.
    """

    days: Sequence[str]
    languages: Collection[str] = ()
    domains: Collection[str] = ()
    topics: Collection[str] = ()
    min_words: int = 0
    without_flags: Collection[str] = ()
    keep: Keep = "earliest"
    rules: Sequence[UsageRule] = ()
    strict: bool = False

    def __post_init__(self) -> None:
        _require("topic", self.topics, TOPICS)
        _require("quality flag", self.without_flags, QUALITY_FLAGS)
        _require("order", (self.keep,), KEEPS)

    def as_json(self) -> Mapping[str, object]:
        """Return the selection for a manifest."""
        return {
            "first_day": self.days[0] if self.days else None,
            "last_day": self.days[-1] if self.days else None,
            "days": len(self.days),
            "languages": sorted(self.languages),
            "domains": sorted(self.domains),
            "topics": sorted(self.topics),
            "min_words": self.min_words,
            "without_flags": sorted(self.without_flags),
            "keep": self.keep,
            "rules": [str(rule) for rule in self.rules],
            "strict": self.strict,
        }

    def refusal(self, verdicts: Sequence[str]) -> str | None:
        """Return why an article with these verdicts is left out, or None."""
        if _REFUSED.intersection(verdicts):
            return "refused"
        if self.strict and _SILENT.intersection(verdicts):
            return "unknown_policy"
        return None


def _require(what: str, given: Collection[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            expected = ", ".join(known)
            raise InputError(f"unknown {what} {name!r}: expected one of {expected}", thing=name)


def require_languages(selection: ExportSelection, counted: Mapping[str, int]) -> None:
    """Raise InputError for a language in which the chosen days have no article."""
    for language in selection.languages:
        if not counted.get(language):
            known = ", ".join(sorted(counted)) or "none"
            message = f"no article in language {language!r} on these days; there are: {known}"
            raise InputError(message, thing=language)


Covers = Callable[[str], bool]
