"""All datasets with a schema of columns, in the order of the asset graph."""

from news_platform.datasets.articles import ARTICLES
from news_platform.datasets.captures import CAPTURES, FEED_CANDIDATES
from news_platform.datasets.corpus import ALL_ARTICLES, CRAWL_ARTICLES, FEED_ARTICLES
from news_platform.datasets.domain_buckets import DOMAIN_BUCKETS
from news_platform.datasets.domain_store import (
    DOMAIN_CATALOG,
    DOMAIN_STORE,
    ENTRIES,
    RANGES,
    RECORDS,
)
from news_platform.datasets.domain_surveys import (
    AI_POLICY_CHANGES,
    DOMAIN_SURVEYS,
    USAGE_SIGNALS,
)
from news_platform.datasets.dropped_responses import DROPPED_RESPONSES
from news_platform.datasets.feeds import FEED_POLLS, FEEDS, PENDING_ARTICLES
from news_platform.datasets.near_duplicates import (
    ARTICLE_CLUSTERS,
    CLUSTER_BANDS,
    CLUSTER_SKETCHES,
    NEAR_DUPLICATES,
    TEXT_CLUSTERS,
)
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.datasets.search_index import SEARCH_INDEX
from news_platform.datasets.source_records import SOURCE_RECORDS, SOURCE_RECORDS_QUARANTINE
from news_platform.datasets.table import Table
from news_platform.datasets.training_export import TRAINING_EXPORT
from news_platform.datasets.warc_paths import WARC_PATHS

TABLES: tuple[Table, ...] = (
    WARC_PATHS,
    RAW_NEWS,
    CAPTURES,
    FEED_CANDIDATES,
    DROPPED_RESPONSES,
    DOMAIN_BUCKETS,
    DOMAIN_STORE,
    ENTRIES,
    RANGES,
    RECORDS,
    DOMAIN_CATALOG,
    DOMAIN_SURVEYS,
    USAGE_SIGNALS,
    AI_POLICY_CHANGES,
    FEEDS,
    FEED_POLLS,
    PENDING_ARTICLES,
    ARTICLES,
    CRAWL_ARTICLES,
    FEED_ARTICLES,
    ALL_ARTICLES,
    NEAR_DUPLICATES,
    ARTICLE_CLUSTERS,
    TEXT_CLUSTERS,
    CLUSTER_SKETCHES,
    CLUSTER_BANDS,
    SEARCH_INDEX,
    TRAINING_EXPORT,
    SOURCE_RECORDS,
    SOURCE_RECORDS_QUARANTINE,
)
