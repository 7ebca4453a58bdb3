"""Explain what the corpus has of a page: its row, why it has none, and its training export."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from news_platform.corpus.export.choice import NARROW, ArticleChoice
from news_platform.corpus.export.publish import current_version, version_files
from news_platform.corpus.export.selection import ExportSelection, StatedUsage
from news_platform.corpus.options import CorpusOptions
from news_platform.corpus.worker_types import NO_TEXT, NOT_AN_ARTICLE, CrawlPage, JudgedPage
from news_platform.datasets.corpus import (
    CRAWL_ARTICLES,
    DELTA_TABLES,
    FEED_ARTICLES,
    STATISTICS_COLUMNS,
)
from news_platform.datasets.evidence import Evidence
from news_platform.datasets.training_export import TRAINING_EXPORT
from news_platform.isolation.pool import Done, Pool
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table
from news_platform.takedowns.spellings import PageAddress

ROOM = "corpus"
EXPORT_ROOM = "export"
_COLUMNS = (
    *NARROW,
    *("url", "title", "text_source", "confidence", "warc", "record_offset", "record_length"),
    "extractor_version",
)
_REASONS = {
    NOT_AN_ARTICLE: "the model takes it for another kind of page than an article",
    NO_TEXT: "no text could be extracted from it",
}

Judge = Callable[[str], JudgedPage | None]
"""From the day of a capture to what the corpus makes of the page now; None: not known."""


@dataclass(frozen=True, slots=True)
class CorpusAnswer:
    """The evidence of the corpus, and the rows of the page, narrow, newest day first."""

    evidence: tuple[Evidence, ...]
    rows: pl.DataFrame

    @property
    def days(self) -> tuple[str, ...]:
        """Return the days on which the page has a row, newest first."""
        return tuple(dict.fromkeys(self.rows["day"]))

    @property
    def hashes(self) -> tuple[str, ...]:
        """Return the hashes of the addresses that the rows have."""
        return tuple(dict.fromkeys(self.rows["url_hash"]))


def explain_page(
    store: ObjectStore, page: PageAddress, *, crawled: Collection[str], judge: Judge
) -> CorpusAnswer:
    """Return the rows of a page; `crawled` are the days on which the crawl kept it."""
    # The domain prunes files and row groups; hashes have no statistics.
    mine = (pl.col("domain") == page.domain) & pl.col("url_hash").is_in(page.hashes)
    rows = pl.concat(
        DeltaDataset(store, table, STATISTICS_COLUMNS).scan().filter(mine).select(_COLUMNS)
        for table in DELTA_TABLES
    ).collect()
    rows = rows.sort("day", "source", descending=True)
    evidence = [stored_row(row) for row in rows.iter_rows(named=True)]
    has_row = set(rows.filter(pl.col("source") == "crawl")["day"])
    built = read_markers(store, CRAWL_ARTICLES.name)
    missing = sorted(set(crawled) - has_row, reverse=True)
    # Judging takes a second: the newest page stands for all.
    judged = judge(missing[0]) if missing and missing[0] in built else None
    for day in missing:
        evidence.append(_missing(day, is_built=day in built, judged=judged))
    if not evidence:
        evidence.append(Evidence(ROOM, "absent", "The corpus has no article of this address."))
    return CorpusAnswer(tuple(evidence), rows)


def judge_again(url: str, html: str, options: CorpusOptions) -> JudgedPage | None:
    """Judge a page in a killable worker; None if it cannot be judged in time."""
    with Pool(
        options.target,
        workers=1,
        deadline_seconds=options.page_seconds,
        memory_bytes=options.memory_bytes,
    ) as pool:
        for outcome in pool.map([CrawlPage(url, html)]):
            if isinstance(outcome, Done):
                judged: JudgedPage = outcome.value
                return judged
            return JudgedPage(None, outcome.reason)
    return None


def explain_domain(store: ObjectStore, domain: str) -> Iterator[Evidence]:
    """Yield how many articles the corpus has of a domain."""
    for table in DELTA_TABLES:
        rows = DeltaDataset(store, table, STATISTICS_COLUMNS).scan()
        facts = rows.filter(pl.col("domain") == domain).select(
            pl.len(), pl.col("day").min().alias("first"), pl.col("day").max().alias("last")
        )
        count, first, last = facts.collect().row(0)
        state = "stored" if count else "absent"
        span = f" from {first} to {last}" if count else ""
        text = f"{table.name} has {count} articles of {domain}{span}."
        yield Evidence(ROOM, state, text, source=table.name)


def explain_export(
    store: ObjectStore,
    found: CorpusAnswer,
    *,
    selection: ExportSelection,
    stated_usage: StatedUsage,
    covers: Callable[[str], bool],
) -> Iterator[Evidence]:
    """Yield whether the monthly exports have the article, and why not."""
    exported = read_markers(store, TRAINING_EXPORT.name)
    for month in sorted({day[:7] for day in found.days}, reverse=True):
        if month not in exported:
            yield Evidence(EXPORT_ROOM, "absent", f"{month} is not exported yet.")
            continue
        place = _exported_in(store, month, found.hashes)
        if place:
            text = f"The training export of {month} has the article."
            yield Evidence(EXPORT_ROOM, "exported", text, source=place, details={"month": month})
            continue
        choice = ArticleChoice(selection, stated_usage, covers)
        choice.add(found.rows.filter(pl.col("day").str.starts_with(month)).select(NARROW))
        yield _left_out(month, list(choice.dropped))


def stored_row(row: Mapping[str, Any]) -> Evidence:
    """Return what a row of the corpus says about its page."""
    table = CRAWL_ARTICLES if row["source"] == "crawl" else FEED_ARTICLES
    place = ""
    if row["warc"]:
        place = f" from {row['warc']}@{row['record_offset']}+{row['record_length']}"
    sure = f", confidence {row['confidence']:.2f}" if row["confidence"] is not None else ""
    version = row["extractor_version"] or "before 0.2, not recorded"
    return Evidence(
        ROOM,
        "stored",
        f"{table.name} has it as an article of {row['word_count']} words, language "
        f"{row['language'] or 'unknown'}, by extractor {version} "
        f"({row['text_source'] or 'page'}){sure}{place}.",
        at=row["fetched_at"],
        source=f"{table.name} day={row['day']}",
        details={
            "url": row["url"],
            "title": row["title"] or "",
            "quality_flags": ", ".join(row["quality_flags"] or ()),
            "extractor_version": str(version),
        },
    )


def _missing(day: str, *, is_built: bool, judged: JudgedPage | None) -> Evidence:
    if not is_built:
        text = f"The corpus of {day} is not built yet: run `news-platform corpus build`."
        return Evidence(ROOM, "pending", text, details={"day": day})
    source = f"{CRAWL_ARTICLES.name} day={day}"
    if judged is None or judged.row is not None:
        text = f"The page of {day} is not among the articles; the reason was not recorded."
        return Evidence(ROOM, "skipped", text, source=source, details={"day": day})
    reason = _REASONS.get(judged.reason, judged.reason)
    text = f"The page of {day} is not among the articles: {reason}."
    return Evidence(
        ROOM, "skipped", text, source=source, details={"day": day, "reason": judged.reason}
    )


def _exported_in(store: ObjectStore, month: str, hashes: Sequence[str]) -> str:
    """Return the file of the current export that has the article; '' if none has."""
    if current_version(store, month) is None:
        return ""
    for path in version_files(store, month):
        rows = scan_table(store, [path], TRAINING_EXPORT).filter(pl.col("id").is_in(hashes))
        if rows.select("id").head(1).collect().height:
            return path
    return ""


def _left_out(month: str, reasons: Sequence[str]) -> Evidence:
    if reasons:
        why = ", ".join(one.replace("_", " ") for one in reasons)
        details = {"month": month, "reason": ", ".join(reasons)}
    else:
        why = "its text, or a near-identical one, is exported from another address"
        details = {"month": month}
    text = f"The training export of {month} leaves it out: {why}."
    return Evidence(EXPORT_ROOM, "dropped", text, source=TRAINING_EXPORT.name, details=details)
