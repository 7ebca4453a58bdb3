"""The jobs for backfills and builds that should not wait: their purposes and assets."""

from collections.abc import Mapping
from dataclasses import dataclass

from news_platform.defs.ccnews_tables import OUTPUTS


@dataclass(frozen=True, slots=True)
class Task:
    """The purpose of a job and the assets that it builds."""

    purpose: str
    assets: tuple[str, ...]


TASKS: Mapping[str, Task] = {
    "backfill_crawl_days": Task(
        "Collect days of the crawl; the sensors then build what depends on them.",
        OUTPUTS,
    ),
    "regroup_crawl_days": Task("Stage collected days by domain again.", ("domain_buckets",)),
    "merge_days_into_store": Task(
        "Merge new batches into ranges of the domain store.", ("domain_store",)
    ),
    "list_known_domains": Task("Write the catalog of all domains again.", ("domain_catalog",)),
    "survey_research_batches": Task(
        "Queue the domains of research batches and fetch their robots.txt and sitemaps.",
        ("domain_queue", "domain_metadata"),
    ),
    "tabulate_surveys": Task(
        "Write the survey of a day as tables, and the changes of AI policies.",
        ("domain_surveys", "usage_signals", "ai_policy_changes"),
    ),
    "read_feeds_now": Task(
        "Discover and poll feeds, fetch articles and update the sheet now.",
        ("feeds", "pending_articles", "articles", "article_sheets"),
    ),
    "extract_crawl_articles": Task(
        "Extract the articles of collected days again.", ("crawl_articles",)
    ),
    "cluster_corpus_days": Task(
        "Refresh the feeds' articles in the corpus, and cluster both sources with their window.",
        ("feed_articles", "near_duplicates"),
    ),
    "export_months": Task("Export months of the corpus again.", ("training_export",)),
    "index_days": Task("Build the search index of days again.", ("search_index",)),
    "remove_taken_down_data": Task(
        "Remove what is stored of all takedowns, and finish what was interrupted.", ("takedowns",)
    ),
    "cut_institutions": Task(
        "Segment the page snapshots of institutions into records.", ("source_records",)
    ),
}
