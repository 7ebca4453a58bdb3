"""What the Dagster UI shows of the corpus: counts, plots and tables of a day or an export."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from news_platform.corpus.export.publish import MonthReport
from news_platform.corpus.pipeline import CorpusDay, outdated_crawl_days
from news_platform.datasets.dataset import Dataset
from news_platform.defs.metadata import markdown_table, run_metadata
from news_platform.defs.plots import languages_plot
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.delta import Maintenance
from news_platform.storage.objects.store import ObjectStore

# Days in the plot of a day's page, the newest last.
_PLOTTED_DAYS = 14


def corpus_metadata(store: ObjectStore, dataset: Dataset, report: CorpusDay) -> dict[str, Any]:
    """Return the metadata of a day of a table."""
    values = {
        "dagster/partition_row_count": report.articles,
        "dagster/uri": store.uri(dataset.name),
        "pages": report.pages,
        "articles": report.articles,
        "article_share": round(report.article_share, 4),
        "words": report.words,
        "bytes": report.bytes,
        "bytes_share": round(report.bytes / max(report.source_bytes, 1), 4),
        "files": report.files,
        "dropped": markdown_table(("reason", "pages"), report.dropped.items()),
        "languages": markdown_table(("language", "articles"), report.languages.items()),
        "top_domains": markdown_table(("domain", "articles"), report.top_domains.items()),
        "languages_per_day": languages_plot(_languages(store, dataset.name, report.day)),
    }
    return run_metadata(dataset, values)


def _languages(store: ObjectStore, asset: str, until: str) -> Mapping[date, Mapping[str, int]]:
    """Return the articles by language of the days up to this one that are built."""
    markers = read_markers(store, asset)
    shown = sorted(day for day in markers if day <= until)[-_PLOTTED_DAYS:]
    found: dict[date, Mapping[str, int]] = {}
    for day in shown:
        languages = read_report(store, markers[day]).get("languages")
        found[date.fromisoformat(day)] = languages if isinstance(languages, dict) else {}
    return found


def export_metadata(report: MonthReport) -> dict[str, Any]:
    """Return the metadata of a monthly export; one without articles has only their number."""
    manifest = report.manifest
    if manifest is None:
        return {"dagster/partition_row_count": 0}
    tokens = {} if manifest.tokens is None else {"tokens": manifest.tokens}
    policies = (
        (rule, verdict, count)
        for rule, found in manifest.verdicts.items()
        for verdict, count in found.items()
    )
    languages = ((name, count, words) for name, (count, words) in manifest.languages.items())
    return {
        "dagster/partition_row_count": manifest.rows,
        "version": report.version or "",
        "articles": manifest.rows,
        "considered": manifest.considered,
        "exported_share": round(manifest.rows / max(manifest.considered, 1), 4),
        "domains": manifest.domains,
        "words": sum(shard.words for shard in manifest.shards),
        **tokens,
        "shards": len(manifest.shards),
        "bytes": sum(shard.bytes for shard in manifest.shards),
        "dropped": markdown_table(("reason", "articles"), manifest.dropped.items()),
        "policies": markdown_table(("crawler and purpose", "stated", "articles"), policies),
        "languages": markdown_table(("language", "articles", "words"), languages),
    }


def outdated_metadata(store: ObjectStore) -> dict[str, int]:
    """Return how many days of crawl_articles another version made, of the whole dataset."""
    return {"days_outdated": len(outdated_crawl_days(store))}


def maintained_metadata(done: Mapping[str, Maintenance]) -> dict[str, Any]:
    """Return what the maintenance of each table did."""
    return {
        f"{name}_{what}": count
        for name, one in done.items()
        for what, count in (
            ("files_added", one.files_added),
            ("files_removed", one.files_removed),
            ("files_deleted", one.files_deleted),
        )
    }
