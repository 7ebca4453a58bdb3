"""Explain why a captured page is not an article, and why an export leaves an article out."""

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from news_platform.corpus.crawl_pages import CorpusOptions
from news_platform.corpus.export.filtering import (
    NARROW,
    ArticleChoice,
    ExportSelection,
    StatedUsage,
)
from news_platform.corpus.export.publish import current_version, version_files
from news_platform.corpus.pipeline import classify_pages
from news_platform.corpus.rows import ERROR_STATUS, NO_TEXT, NOT_AN_ARTICLE, CrawlPage
from news_platform.datasets.corpus import (
    CRAWL_ARTICLES,
    DELTA_TABLES,
    STATISTICS_COLUMNS,
    TRAINING_EXPORT,
)
from news_platform.datasets.evidence import Evidence
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table
from news_platform.takedowns.match import PageAddress

_REASONS = {
    NOT_AN_ARTICLE: "the model takes it for another kind of page than an article",
    ERROR_STATUS: "its site answered with an error",
    NO_TEXT: "no text could be extracted from it",
}


def article_rows(store: ObjectStore, page: PageAddress) -> pl.DataFrame:
    """Return the rows of a page without their texts, newest day first."""
    # The domain prunes files and row groups; hashes have no statistics.
    mine = (pl.col("domain") == page.domain) & pl.col("url_hash").is_in(page.hashes)
    tables = (DeltaDataset(store, table, STATISTICS_COLUMNS).scan() for table in DELTA_TABLES)
    rows = pl.concat(table.filter(mine).select(NARROW) for table in tables)
    return rows.collect().sort("day", "source", descending=True)


def explain_missing(
    store: ObjectStore,
    days: Sequence[str],
    *,
    page_of: Callable[[str], CrawlPage | None],
    options: CorpusOptions,
) -> Iterator[Evidence]:
    """Yield why the pages of these days, newest first, are not articles.

    The reason was not recorded, so the newest page is classified again and stands for all.
    `page_of` returns the page of a day, or None once it is expired.
    """
    built = read_markers(store, CRAWL_ARTICLES.name)
    asked = page_of(days[0]) if days and days[0] in built else None
    # In a killable worker.
    page = next(iter(classify_pages([asked] if asked else [], options)), None)
    for day in days:
        if day not in built:
            text = f"The corpus of {day} is not built yet: run `news-platform corpus build`."
            yield Evidence(CRAWL_ARTICLES.name, "pending", text, details={"day": day})
            continue
        reason = page.reason if page is not None and page.row is None else "not recorded"
        yield Evidence(
            CRAWL_ARTICLES.name,
            "skipped",
            f"The page of {day} is not among the articles: {_REASONS.get(reason, reason)}.",
            source=f"{CRAWL_ARTICLES.name} day={day}",
            details={"day": day, "reason": reason},
        )


def explain_export(
    store: ObjectStore,
    articles: pl.DataFrame,
    *,
    selection: ExportSelection,
    stated_usage: StatedUsage,
    covers: Callable[[str], bool],
) -> Iterator[Evidence]:
    """Yield whether the monthly exports have these rows of one article, and why not."""
    exported = read_markers(store, TRAINING_EXPORT.name)
    for month in sorted({day[:7] for day in articles["day"]}, reverse=True):
        if month not in exported:
            yield Evidence(TRAINING_EXPORT.name, "absent", f"{month} is not exported yet.")
            continue
        mine = articles.filter(pl.col("day").str.starts_with(month))
        if place := _exported_in(store, month, list(mine["url_hash"])):
            text = f"The training export of {month} has the article."
            yield Evidence(TRAINING_EXPORT.name, "exported", text, source=place)
            continue
        choice = ArticleChoice(selection, stated_usage, covers)
        choice.add(mine)
        reasons = ", ".join(choice.dropped).replace("_", " ")
        why = reasons or "its text, or a near-identical one, is exported from another address"
        text = f"The training export of {month} leaves it out: {why}."
        details = {"month": month, "reason": reasons}
        yield Evidence(TRAINING_EXPORT.name, "dropped", text, details=details)


def _exported_in(store: ObjectStore, month: str, hashes: Sequence[str]) -> str:
    """Return the file of the current export that has the article; '' if none has."""
    if current_version(store, month) is None:
        return ""
    for path in version_files(store, month):
        rows = scan_table(store, [path], TRAINING_EXPORT).filter(pl.col("id").is_in(hashes))
        if rows.select("id").head(1).collect().height:
            return path
    return ""
