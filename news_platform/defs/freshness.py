"""How old the newest data may be before the UI says so: yellow first, then red.

Policies count the hours since an asset was last built. What moves only when somebody uploads a file
has none, and says why. A root where nothing new arrives has none at all: there red would mean
nothing.
"""

from collections.abc import Mapping
from datetime import timedelta

import dagster as dg


def _within(*, warn_hours: int, fail_hours: int) -> dg.FreshnessPolicy:
    return dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=fail_hours), warn_window=timedelta(hours=warn_hours)
    )


# The crawl uploads some eighteen WARCs a day, hours late; a day without one is worth a look.
_CRAWL = _within(warn_hours=24, fail_hours=48)
# The catalog waits for every range of the store to stand on the same days.
_AFTER_CRAWL = _within(warn_hours=30, fail_hours=60)

POLICIES: Mapping[str, dg.FreshnessPolicy] = {
    "raw_news": _CRAWL,
    "captures": _CRAWL,
    "feed_candidates": _CRAWL,
    "domain_buckets": _AFTER_CRAWL,
    "domain_store": _AFTER_CRAWL,
    "domain_catalog": _AFTER_CRAWL,
    "near_duplicates": _AFTER_CRAWL,
    # Discovery runs every morning.
    "feeds": _within(warn_hours=26, fail_hours=36),
    # Every feed is polled at least every six hours.
    "pending_articles": _within(warn_hours=7, fail_hours=12),
    # A short list of feeds may have a quiet night.
    "articles": _within(warn_hours=12, fail_hours=24),
    "article_clusters": _within(warn_hours=14, fail_hours=26),
    "article_sheets": _within(warn_hours=13, fail_hours=25),
}

WITHOUT: Mapping[str, str] = {
    "warc_paths": "written by the crawl; `raw_news` is what would be late",
    "research_datasets": "moves when somebody uploads research files",
    "domain_queue": "moves when somebody uploads research files",
    "domain_metadata": "moves when somebody uploads research files",
    "domain_metadata_table": "moves when somebody uploads research files",
    "ai_policy_changes": "moves when somebody uploads research files",
    "page_snapshots": "moves when somebody uploads snapshots",
    "source_records": "moves when somebody uploads snapshots",
}


def with_freshness(spec: dg.AssetSpec) -> dg.AssetSpec:
    """Give an asset its policy."""
    policy = POLICIES.get(spec.key.to_user_string())
    return spec if policy is None else spec.replace_attributes(freshness_policy=policy)
