"""Decide about every article of the chosen days: export it, or drop it for one reason.

Only narrow columns are read, and addresses and texts are 60-bit numbers: a month of 9 million
articles takes some 700 MB.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from news_platform.corpus.export.selection import (
    Covers,
    ExportSelection,
    Stated,
    StatedUsage,
    UsageRule,
)

NARROW = (
    "source",
    "canonical_url",
    "url_hash",
    "text_hash",
    "domain",
    "language",
    "topic",
    "word_count",
    "quality_flags",
    "is_paywalled",
    "fetched_at",
    "day",
)
# Fifteen hex digits fit into a signed 64-bit number.
_HEX_DIGITS = 15
DUPLICATE_REASONS = ("duplicate_address", "duplicate_text", "near_duplicate")


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
    """Collects the candidates frame by frame; `clusters` has url_hash and cluster_id."""

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
        self._count(left.filter(pl.col("reason").is_not_null())["reason"])
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

    def _count(self, reasons: Iterable[str]) -> None:
        self.dropped.update(reasons)

    def _usages(self, rows: pl.DataFrame) -> list[int]:
        """Return the number of the verdicts about each article, or -1 where it is dropped."""
        found = []
        for url, fetched_at in rows.select("canonical_url", "fetched_at").iter_rows():
            if self.covers(url):
                self.dropped["taken_down"] += 1
                found.append(-1)
                continue
            stated = tuple(self.stated_usage(url, rule, fetched_at) for rule in self._rules)
            reason = self.selection.refusal([one.verdict for one in stated])
            if reason is not None:
                self.dropped[reason] += 1
                found.append(-1)
                continue
            found.append(self._stated.setdefault(stated, len(self._stated)))
        return found

    @property
    def _rules(self) -> Sequence[UsageRule]:
        return self.selection.rules

    def _once_each(self, rows: pl.DataFrame) -> pl.DataFrame:
        # The same order whatever the order of the files, so that the same article is kept.
        tie = ["fetched_at", "day", "source", "address"]
        first = ["word_count", *tie] if self.selection.keep == "longest" else tie
        down = [name == "word_count" for name in first]
        rows = rows.sort(first, descending=down)
        for name, reason in (("address", DUPLICATE_REASONS[0]), ("text", DUPLICATE_REASONS[1])):
            rows = self._unique(rows, [name], reason)
        if self.clusters is not None and self.clusters.height:
            rows = self._unique(
                _with_clusters(rows, self.clusters), ["cluster"], DUPLICATE_REASONS[2]
            )
        return rows.select("day", "source", "address", "usage")

    def _unique(self, rows: pl.DataFrame, by: list[str], reason: str) -> pl.DataFrame:
        kept = rows.unique(by, keep="first", maintain_order=True)
        if kept.height < rows.height:
            self.dropped[reason] += rows.height - kept.height
        return kept

    def _verdicts(
        self, rows: pl.DataFrame, stated: Sequence[tuple[Stated, ...]]
    ) -> Mapping[str, Mapping[str, int]]:
        counts: dict[str, Counter[str]] = {str(rule): Counter() for rule in self._rules}
        usages = rows["usage"].value_counts().iter_rows() if rows.height else ()
        for number, count in usages:
            for rule, one in zip(self._rules, stated[number], strict=True):
                counts[str(rule)][one.verdict] += count
        return {rule: dict(sorted(found.items())) for rule, found in counts.items()}


def _with_clusters(rows: pl.DataFrame, clusters: pl.DataFrame) -> pl.DataFrame:
    """Add the cluster of each article; one without a cluster is its own."""
    known = clusters.select(
        short_hash("url_hash").alias("address"), short_hash("cluster_id").alias("cluster")
    )
    joined = rows.join(
        known.unique("address", keep="first"), on="address", how="left", maintain_order="left"
    )
    return joined.with_columns(cluster=pl.coalesce("cluster", -pl.col("address") - 1))


def _reason(selection: ExportSelection) -> pl.Expr:
    """Return the first reason why an article is not exported, or null."""
    chosen = {
        "other_language": ("language", selection.languages),
        "other_domain": ("domain", selection.domains),
        "other_topic": ("topic", selection.topics),
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
