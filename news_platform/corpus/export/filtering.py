"""Decide about every article of the chosen days: export it, or drop it for one reason.

Only narrow columns are read, and addresses and texts are 60-bit numbers: a month of 9 million
articles takes some 700 MB.
"""

import difflib
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Literal, Protocol

import polars as pl

from news_platform.corpus.rows import QUALITY_FLAGS
from news_platform.datasets.feeds import CATEGORIES
from news_platform.errors import InputError
from news_platform.web.urls import plain_host

Keep = Literal["earliest", "longest"]
FileFormat = Literal["parquet", "jsonl"]
KEEPS: tuple[Keep, ...] = ("earliest", "longest")
FORMATS: tuple[FileFormat, ...] = ("parquet", "jsonl")

# The verdict about a domain that was never surveyed.
UNKNOWN = "unknown"
# `conflicting` means that one statement refuses. `partial` means that some paths are refused, and
# not this one: verdicts are asked for the path of the article.
REFUSED = frozenset(("refuse", "conflicting"))
# Nothing was stated, or nothing was asked.
_SILENT = frozenset(("unspecified", UNKNOWN))


@dataclass(frozen=True, slots=True, order=True)
class UsageRule:
    """A crawler and a purpose that publishers must not refuse, such as GPTBot and ai_train.

    The crawler may be one of PRESETS: then no crawler of that function may be refused, nor `*`.
    """

    bot: str
    purpose: str

    @classmethod
    def parse(cls, text: str, *, purposes: Collection[str], bots: Collection[str]) -> "UsageRule":
        """Parse `BOT:PURPOSE`, or a preset; the bot `*` is any crawler without rules of its own."""
        if text in PRESETS:
            return cls(text, PRESETS[text][1])
        bot, colon, purpose = text.partition(":")
        if not bot or not colon or purpose not in purposes:
            expected = f"BOT:PURPOSE with one of {', '.join(sorted(purposes))}"
            choices = f"{expected}, or one of {', '.join(PRESETS)}"
            raise InputError(f"invalid policy {text!r}: expected {choices}", thing=text)
        known = {"*": "*", **{name.lower(): name for name in bots}}
        if bot.lower() not in known:
            near = difflib.get_close_matches(bot.lower(), known, 1, 0.5)
            hint = f": did you mean {known[near[0]]!r}?" if near else " in the list of AI crawlers"
            raise InputError(f"unknown crawler {bot!r}{hint}", thing=bot)
        return cls(known[bot.lower()], purpose)

    def __str__(self) -> str:
        return f"{self.bot}:{self.purpose}"


PRESETS: Mapping[str, tuple[str, str]] = {
    "training": ("training", "ai_train"),
    "search": ("search", "search"),
    "archive": ("data", "index"),
}
"""What an export is for: the function of the crawlers, and the purpose, that nobody may refuse."""


@dataclass(frozen=True, slots=True)
class QuotedStatement:
    """A statement of a publisher as it was read: the file, its line, the text, its digest."""

    source: str
    file: str
    line: int | None
    text: str
    read_at: datetime | None
    sha256: str | None

    @property
    def id(self) -> str:
        """Return the name by which rows refer to it."""
        return hashlib.sha256(json.dumps(self.as_json()).encode()).hexdigest()[:16]

    def as_json(self) -> Mapping[str, object]:
        """Return it as a JSON object."""
        read_at = self.read_at.isoformat() if self.read_at else None
        return {**asdict(self), "read_at": read_at}


@dataclass(frozen=True, slots=True)
class Stated:
    """What a publisher stated about a rule: the verdict, and when the site was surveyed.

    `bot` is the crawler that the deciding statements speak to.
    """

    verdict: str
    surveyed_at: datetime | None = None
    bot: str = ""
    statements: tuple[QuotedStatement, ...] = ()


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
    categories: Collection[str] = ()
    min_words: int = 0
    without_flags: Collection[str] = ()
    keep: Keep = "earliest"
    rules: Sequence[UsageRule] = ()
    strict: bool = False

    def __post_init__(self) -> None:
        for name in ("languages", "domains"):
            object.__setattr__(self, name, tuple(map(plain_host, getattr(self, name))))
        _require("category", self.categories, CATEGORIES)
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
            "categories": sorted(self.categories),
            "min_words": self.min_words,
            "without_flags": sorted(self.without_flags),
            "keep": self.keep,
            "rules": [str(rule) for rule in self.rules],
            "strict": self.strict,
        }

    def refusal(self, verdicts: Sequence[str]) -> str | None:
        """Return why an article with these verdicts is left out, or None."""
        if REFUSED.intersection(verdicts):
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


NARROW = (
    "source",
    "canonical_url",
    "url_hash",
    "text_hash",
    "domain",
    "language",
    "category_guess",
    "word_count",
    "quality_flags",
    "is_paywalled",
    "fetched_at",
    "day",
)
# Fifteen hex digits fit into a signed 64-bit number.
_HEX_DIGITS = 15


def short_hash(column: str) -> pl.Expr:
    """Return the beginning of a hex digest as a number."""
    return pl.col(column).str.slice(0, _HEX_DIGITS).str.to_integer(base=16, dtype=pl.Int64)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The articles to export and why the others are not.

    `rows` has the columns day, source, address (see `short_hash`) and usage (numbers of verdicts
    in `stated`). `verdicts` counts the exported articles by rule and verdict.
    """

    rows: pl.DataFrame
    stated: Sequence[tuple[Stated, ...]]
    dropped: Mapping[str, int]
    verdicts: Mapping[str, Mapping[str, int]]


@dataclass(slots=True)
class ArticleChoice:
    """Collects the candidates frame by frame.

    `clusters` has the date, source, url_hash and cluster_id of articles.
    """

    selection: ExportSelection
    stated_usage: StatedUsage
    covers: Covers
    clusters: pl.DataFrame | None = None
    dropped: Counter[str] = field(default_factory=Counter)
    _candidates: list[pl.DataFrame] = field(default_factory=list)
    _stated: dict[tuple[Stated, ...], int] = field(default_factory=dict)

    def add(self, rows: pl.DataFrame) -> None:
        """Judge the articles of a frame that has the columns `NARROW`."""
        left = rows.with_columns(_reason(self.selection).alias("reason"))
        self.dropped.update(left.filter(pl.col("reason").is_not_null())["reason"])
        left = left.filter(pl.col("reason").is_null())
        judged = left.with_columns(pl.Series("usage", self._usages(left), dtype=pl.Int64))
        self._candidates.append(
            judged.filter(pl.col("usage") >= 0).select(
                "day",
                "source",
                short_hash("url_hash").alias("address"),
                short_hash("text_hash").alias("text"),
                "fetched_at",
                pl.col("word_count").cast(pl.Int32),
                "usage",
            )
        )

    def chosen(self) -> Chosen:
        """Return the articles to export, each text once."""
        rows = pl.concat(self._candidates) if self._candidates else pl.DataFrame()
        if rows.height:
            rows = self._once_each(rows)
        stated = list(self._stated)
        return Chosen(
            rows, stated, dict(sorted(self.dropped.items())), self._verdicts(rows, stated)
        )

    def _usages(self, rows: pl.DataFrame) -> list[int]:
        """Return the number of the verdicts about each article, or -1 where it is dropped."""
        found = []
        for url, fetched_at in rows.select("canonical_url", "fetched_at").iter_rows():
            if self.covers(url):
                self.dropped["taken_down"] += 1
                found.append(-1)
                continue
            stated = tuple(
                self.stated_usage(url, rule, fetched_at) for rule in self.selection.rules
            )
            reason = self.selection.refusal([one.verdict for one in stated])
            if reason is not None:
                self.dropped[reason] += 1
                found.append(-1)
                continue
            found.append(self._stated.setdefault(stated, len(self._stated)))
        return found

    def _once_each(self, rows: pl.DataFrame) -> pl.DataFrame:
        # The same order whatever the order of the files, so that the same article is kept.
        tie = ["fetched_at", "day", "source", "address"]
        first = ["word_count", *tie] if self.selection.keep == "longest" else tie
        down = [name == "word_count" for name in first]
        rows = rows.sort(first, descending=down)
        rows = _with_clusters(rows, self.clusters)
        cluster, is_text = pl.col("cluster"), pl.col("text").is_first_distinct()
        # An address may have another text on every day: only where no cluster tells them apart.
        is_address = cluster.is_not_null() | pl.struct("cluster", "address").is_first_distinct()
        rows = self._only(rows, is_address, "duplicate_address")
        rows = self._only(rows, is_text, "duplicate_text")
        rows = self._only(rows, cluster.is_null() | cluster.is_first_distinct(), "near_duplicate")
        return rows.select("day", "source", "address", "usage")

    def _only(self, rows: pl.DataFrame, keep: pl.Expr, reason: str) -> pl.DataFrame:
        kept = rows.filter(keep)
        if kept.height < rows.height:
            self.dropped[reason] += rows.height - kept.height
        return kept

    def _verdicts(
        self, rows: pl.DataFrame, stated: Sequence[tuple[Stated, ...]]
    ) -> Mapping[str, Mapping[str, int]]:
        counts: dict[str, Counter[str]] = {str(rule): Counter() for rule in self.selection.rules}
        usages = rows["usage"].value_counts().iter_rows() if rows.height else ()
        for number, count in usages:
            for rule, one in zip(self.selection.rules, stated[number], strict=True):
                counts[str(rule)][one.verdict] += count
        return {rule: dict(sorted(found.items())) for rule, found in counts.items()}


def _with_clusters(rows: pl.DataFrame, clusters: pl.DataFrame | None) -> pl.DataFrame:
    """Add the cluster of each article; null if it was not compared with others yet."""
    if clusters is None:
        return rows.with_columns(cluster=pl.lit(None, pl.Int64))
    known = clusters.select(
        pl.col("date").alias("day"),
        "source",
        short_hash("url_hash").alias("address"),
        short_hash("cluster_id").alias("cluster"),
    )
    return rows.join(known, on=["day", "source", "address"], how="left", maintain_order="left")


def _reason(selection: ExportSelection) -> pl.Expr:
    """Return the first reason why an article is not exported, or null."""
    chosen = {
        "other_language": ("language", selection.languages),
        "other_domain": ("domain", selection.domains),
        "other_category": ("category_guess", selection.categories),
    }
    rules = {
        name: ~pl.col(column).fill_null("").is_in(sorted(wanted))
        for name, (column, wanted) in chosen.items()
        if wanted
    }
    if selection.min_words:
        rules["few_words"] = pl.col("word_count").fill_null(0) < selection.min_words
    for flag in sorted(selection.without_flags):
        rules[f"quality_{flag}"] = pl.col("quality_flags").list.contains(flag)
    rules["paywalled"] = pl.col("is_paywalled").fill_null(False)
    return pl.coalesce(pl.when(rule).then(pl.lit(name)) for name, rule in rules.items())
