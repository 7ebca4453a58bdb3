"""Metadata for the Dagster UI: column schemas, column lineage and Markdown tables."""

from collections.abc import Iterable, Mapping, Sequence

import dagster as dg

from news_platform.datasets.dataset import Dataset


def column_schema(table: Dataset) -> dg.TableSchema:
    """Return the columns of a dataset with their descriptions, including those in the path."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(column.name, str(column.dtype), description=column.description)
            for column in (*table.columns, *table.partition_columns)
        ]
    )


def table_metadata(table: Dataset) -> Mapping[str, object]:
    """Return the definition metadata of an asset that is stored as a table."""
    return {"dagster/column_schema": column_schema(table), "path": table.path}


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, longest: int = 80
) -> dg.MarkdownMetadataValue:
    """Return rows as a Markdown table; each cell is one line of at most `longest` characters."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(value, longest) for value in row) + " |" for row in rows]
    return dg.MetadataValue.md("\n".join(lines))


def _cell(value: object, longest: int) -> str:
    text = " ".join(str("" if value is None else value).split()).replace("|", "\\|")
    return text if len(text) <= longest else text[: longest - 1] + "…"


# A column, and the `asset.column`s from which its values are copied or computed.
Sources = Mapping[str, tuple[str, ...]]


def _same(asset: str, *names: str) -> Sources:
    return {name: (f"{asset}.{name}",) for name in names}


_WARC_DAY = ("raw_news.year", "raw_news.month", "raw_news.day")
_COPIED = ("article_url_canon", "feed_url", "found_at", "last_seen_rss", "row_id", "url_hash")
_SURVEYED = (
    ("domain", "registrable_domain"),
    *((name, name) for name in ("domain_id", "country", "category", "collected_at", "outcome")),
    *((name, name) for name in ("final", "final_origin", "date")),
    ("authority", "source"),
    ("raw_file_path", "source"),
    *((f"robots_{name}", "robots") for name in ("status", "exists", "bytes", "is_html")),
    ("tls_failed", "robots"),
    ("crawl_delay_seconds", "robots"),
    *((f"sitemap_{name}", "sitemap") for name in ("url", "status", "kind", "urls", "children")),
    ("sitemap_problems", "sitemap"),
    ("ai_list_version", "ai_policy"),
    ("ai_policies", "ai_policy"),
)
_SNAPSHOT_BODY = tuple(f"page_snapshots.data.{name}" for name in ("rawHtml", "html", "markdown"))
_SNAPSHOT_FACTS = ("page_snapshots.data.metadata",)

_EXTRACTED = (
    *("title", "subtitle", "authors", "published_at", "section", "tags", "topic", "article_type"),
    *("language", "language_probability", "text", "text_hash", "word_count", "quality_flags"),
    *("confidence", "image_url", "is_paywalled", "text_source"),
)

LINEAGE: Mapping[str, Sources] = {
    "captures": {
        **_same("raw_news", "uri", "year", "month", "day", "filename"),
        **{name: ("raw_news.tree",) for name in ("title", "published_at", "author")},
    },
    "feed_candidates": {
        **_same("raw_news", "host", "year", "month", "day", "filename"),
        "feed_url": ("raw_news.tree", "raw_news.uri"),
        **{name: ("raw_news.tree",) for name in ("mime_type", "title")},
        "pages": ("raw_news.uri",),
    },
    "dropped_responses": _same("raw_news", "uri", "year", "month", "day", "filename"),
    "domain_buckets": {
        "domain": ("raw_news.host",),
        "url": ("raw_news.uri",),
        "day": _WARC_DAY,
        "language": ("raw_news.main_lang",),
        "content_hash": ("raw_news.tree",),
    },
    "domain_store": {
        "domain": ("domain_buckets.domain",),
        "domain_hash_id": ("domain_buckets.domain",),
        "count": ("domain_buckets.domain",),
        "files": ("domain_buckets.run_offset", "domain_buckets.run_length"),
    },
    "domain_catalog": {
        "domain": ("domain_store.domain",),
        "bucket": ("domain_store.domain_hash_id",),
        "records": ("domain_store.count",),
        "bytes": ("domain_store.files",),
        "fragments": ("domain_store.files",),
        "languages": ("domain_buckets.language",),
        "first_seen": ("domain_buckets.day",),
        "last_seen": ("domain_buckets.day",),
    },
    "domain_queue": {
        "domain_id": ("research_datasets.domain_id", "research_datasets.source_type"),
        "domain_url": ("research_datasets.raw_url",),
        "registrable_domain": ("research_datasets.normalized_domain", "research_datasets.raw_url"),
        "authority": ("research_datasets.source_type",),
    },
    "domain_metadata": {
        **_same("domain_queue", "domain_id", "registrable_domain"),
        "source": ("domain_queue.source_file_path", "domain_queue.domain_url"),
    },
    "domain_surveys": {column: (f"domain_metadata.{field}",) for column, field in _SURVEYED},
    "usage_signals": {
        "domain": ("domain_metadata.registrable_domain",),
        **_same("domain_metadata", "country", "category", "collected_at", "date"),
        **{
            name: ("domain_metadata.usage",)
            for name in ("system", "source", "label", "value", "agents", "path", "raw", "flags")
        },
    },
    "ai_policy_changes": {
        **_same("domain_surveys", "domain", "country", "date"),
        "signal": ("usage_signals.system",),
        "label": ("usage_signals.label",),
        "raw_diff": ("usage_signals.raw", "domain_metadata.files"),
        **{name: ("domain_surveys.ai_policies",) for name in ("bot", "before", "after")},
        "change": ("domain_surveys.ai_policies",),
        "before_date": ("domain_surveys.date",),
    },
    "feeds": {"feed_url": ("feed_candidates.feed_url",)},
    "pending_articles": {"feed_url": ("feeds.feed_url",)},
    "articles": _same("pending_articles", *_COPIED),
    "crawl_articles": {
        **{name: ("raw_news.uri",) for name in ("url", "canonical_url", "url_hash", "domain")},
        **dict.fromkeys(_EXTRACTED, ("raw_news.tree",)),
        "fetched_at": ("raw_news.http_date",),
        "warc": ("raw_news.filename",),
        "day": _WARC_DAY,
    },
    "feed_articles": {
        "url": ("articles.article_url",),
        "canonical_url": ("articles.article_url_canon",),
        "domain": ("articles.source",),
        "text": ("articles.clean_text",),
        "topic": ("articles.category_guess",),
        **_same("articles", "url_hash", "text_hash", "title", "subtitle", "authors", "section"),
        **_same("articles", "published_at", "tags", "language", "word_count", "fetched_at"),
        "day": ("articles.date",),
    },
    "near_duplicates": {
        "uri": ("crawl_articles.url", "feed_articles.url"),
        "seen_at": ("crawl_articles.fetched_at", "feed_articles.fetched_at"),
        "date": ("crawl_articles.day", "feed_articles.day"),
        **{
            name: (f"crawl_articles.{name}", f"feed_articles.{name}")
            for name in ("url_hash", "source")
        },
        **{
            name: ("crawl_articles.text", "feed_articles.text")
            for name in ("cluster_id", "jaccard", "cluster_size")
        },
    },
    "training_export": {
        "id": ("crawl_articles.url_hash", "feed_articles.url_hash"),
        "url": ("crawl_articles.canonical_url", "feed_articles.canonical_url"),
        **{
            name: (f"crawl_articles.{name}", f"feed_articles.{name}")
            for name in ("domain", "title", "authors", "published_at", "language", "text")
        },
        "usage": ("domain_metadata.usage",),
    },
    "source_records": {
        **dict.fromkeys(("text", "section", "order", "kind", "hints"), _SNAPSHOT_BODY),
        **dict.fromkeys(("language", "language_source"), _SNAPSHOT_BODY + _SNAPSHOT_FACTS),
        "language_probability": _SNAPSHOT_BODY,
        "charset": _SNAPSHOT_BODY + _SNAPSHOT_FACTS,
        "url": _SNAPSHOT_FACTS,
        "fetched_at": _SNAPSHOT_FACTS,
        "id": _SNAPSHOT_BODY + _SNAPSHOT_FACTS,
    },
}


def column_lineage(asset: str) -> Mapping[str, dg.MetadataValue]:
    """Return the lineage as Dagster's own metadata and as a Markdown table.

    Dagster's open-source UI stores column lineage but does not show it.
    """
    sources = LINEAGE[asset]
    deps = {column: [_dep(source) for source in given] for column, given in sources.items()}
    rows = [(column, ", ".join(given)) for column, given in sources.items()]
    return {
        "dagster/column_lineage": dg.MetadataValue.column_lineage(
            dg.TableColumnLineage(deps_by_column=deps)
        ),
        "column_sources": markdown_table(("column", "sources"), rows),
    }


def _dep(source: str) -> dg.TableColumnDep:
    asset, _, column = source.partition(".")
    return dg.TableColumnDep(asset_key=dg.AssetKey(asset), column_name=column)
