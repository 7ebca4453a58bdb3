"""What the UI shows about each asset beyond its feature's own description.

A card states what one row is, where the data is stored, how sensitive it is, how much it costs to
build, the version of the code that produces it, and its page in the docs. Freshness policies count
the hours since an asset was last built: yellow first, then red. An asset that changes only when
someone uploads a file has no policy, and its page states why. A root where nothing new arrives has
no policies at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import dagster as dg
from pydantic import BaseModel

from news_platform.articles.article import EXTRACTOR_VERSION as ARTICLES_VERSION
from news_platform.ccnews.options import EXTRACTOR_VERSION
from news_platform.corpus.page_version import PAGE_MODEL_VERSION
from news_platform.datasets.domain_metadata import DomainMetadata
from news_platform.datasets.domain_queue import DomainQueueMessage
from news_platform.datasets.research_datasets import ResearchRecord
from news_platform.domain_store.staging.stage import FORMAT as STORE_FORMAT
from news_platform.near_duplicates.sketch import SketchOptions
from news_platform.rss.pipeline import LEDGER_VERSION
from news_platform.rss.sheets.tabs import TABS
from news_platform.search.index import INDEX_VERSION
from news_platform.source_records.pipeline import SEGMENTER_VERSION
from news_platform.web.ai_bots import AI_BOTS_VERSION


def _within(*, warn_hours: int, fail_hours: int) -> dg.FreshnessPolicy:
    return dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=fail_hours), warn_window=timedelta(hours=warn_hours)
    )


# The crawl uploads about eighteen WARCs per day, hours late; a day without one is a warning.
_CRAWL = _within(warn_hours=24, fail_hours=48)
# The catalog is built only when every range of the store contains the same days.
_AFTER_CRAWL = _within(warn_hours=30, fail_hours=60)

POLICIES: Mapping[str, dg.FreshnessPolicy] = {
    "raw_news": _CRAWL,
    "captures": _CRAWL,
    "feed_candidates": _CRAWL,
    "dropped_responses": _CRAWL,
    "domain_buckets": _AFTER_CRAWL,
    "domain_store": _AFTER_CRAWL,
    "domain_catalog": _AFTER_CRAWL,
    "near_duplicates": _AFTER_CRAWL,
    "crawl_articles": _AFTER_CRAWL,
    "search_index": _AFTER_CRAWL,
    # Discovery runs every morning.
    "feeds": _within(warn_hours=26, fail_hours=36),
    # Every feed is polled at least every six hours.
    "pending_articles": _within(warn_hours=7, fail_hours=12),
    # With few feeds, a night may pass without an article.
    "articles": _within(warn_hours=12, fail_hours=24),
    "article_sheets": _within(warn_hours=13, fail_hours=25),
    "feed_articles": _within(warn_hours=14, fail_hours=26),
}

WITHOUT: Mapping[str, str] = {
    "warc_paths": "written by the crawl; if it is late, `raw_news` shows it",
    "training_export": "written once a month, after its last days have settled",
    "research_datasets": "changes only when research files are uploaded",
    "domain_queue": "changes only when research files are uploaded",
    "domain_metadata": "changes only when research files are uploaded",
    "domain_surveys": "changes only when research files are uploaded",
    "usage_signals": "changes only when research files are uploaded",
    "ai_policy_changes": "changes only when research files are uploaded",
    "page_snapshots": "changes only when snapshots are uploaded",
    "source_records": "changes only when snapshots are uploaded",
    "takedowns": "changes only when somebody asks for a removal",
}


def with_freshness(spec: dg.AssetSpec) -> dg.AssetSpec:
    """Add the asset's freshness policy, if it has one."""
    policy = POLICIES.get(spec.key.to_user_string())
    return spec if policy is None else spec.replace_attributes(freshness_policy=policy)


def model_schema(model: type[BaseModel]) -> dg.TableSchema:
    """Return the fields of a JSON object with their descriptions."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(name, _type(field.annotation), description=field.description)
            for name, field in model.model_fields.items()
        ]
    )


def _type(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _tabs() -> dg.TableSchema:
    return dg.TableSchema(
        columns=[
            dg.TableColumn(tab.name, "tab", description=", ".join(tab.columns)) for tab in TABS
        ]
    )


_TAKEDOWN = {
    "id": "day and hash of the request",
    "kind": "url, prefix or domain",
    "values": "canonical URLs, prefixes or domains",
    "reason": "why it was asked for",
    "requested_at": "when, UTC",
    "requested_by": "who asked, as free text",
    "scope": "stored data, future collection, or both",
    "expires_at": "when it ends by itself; null for good",
}

_SNAPSHOT = {
    "success": ("bool", "whether the crawler fetched the page; if not, `error` states why"),
    "error": ("str", "why there is no page"),
    "data.rawHtml": ("str", "the page as fetched: read first"),
    "data.html": ("str", "the page, possibly stripped: read if rawHtml is missing"),
    "data.markdown": ("str", "the page as markdown: read if there is no HTML"),
    "data.metadata": ("object", "title, language, sourceURL, url, statusCode, contentType, error"),
}

SCHEMAS: Mapping[str, dg.TableSchema] = {
    "research_datasets": model_schema(ResearchRecord),
    "domain_queue": model_schema(DomainQueueMessage),
    "domain_metadata": model_schema(DomainMetadata),
    "article_sheets": _tabs(),
    "takedowns": dg.TableSchema(
        columns=[dg.TableColumn(name, description=text) for name, text in _TAKEDOWN.items()]
    ),
    "page_snapshots": dg.TableSchema(
        columns=[
            dg.TableColumn(name, kind, description=text) for name, (kind, text) in _SNAPSHOT.items()
        ]
    ),
}


# Pages and articles under other people's copyright, with names of persons.
TEXTS = "third-party-text"
# Counts, addresses and rules that are public on the web.
FACTS = "public-facts"
# Data that only operators and editors use.
WORK = "working-data"


@dataclass(frozen=True, slots=True)
class Card:
    """What the UI shows about one asset.

    `version` is None if an outside system writes the data. `place` is None if the table of the
    asset states the path.
    """

    row: str
    page: str
    sensitivity: str
    cost: str
    version: str | None = None
    place: str | None = None


_CORPUS_VERSION = f"{ARTICLES_VERSION}-{PAGE_MODEL_VERSION}"
_SKETCH = SketchOptions().fingerprint

CARDS: dict[str, Card] = {
    "warc_paths": Card(
        "one line of a monthly list, which names a WARC file", "ccnews.md", FACTS, "low"
    ),
    "raw_news": Card(
        "one HTML response of the crawl", "ccnews.md", TEXTS, "high", EXTRACTOR_VERSION
    ),
    "captures": Card(
        "the position of one page of raw_news in its WARC",
        "ccnews.md",
        FACTS,
        "low",
        EXTRACTOR_VERSION,
    ),
    "feed_candidates": Card(
        "one feed that pages of a host link to", "ccnews.md", FACTS, "low", EXTRACTOR_VERSION
    ),
    "dropped_responses": Card(
        "one record of the crawl that gave no page", "ccnews.md", FACTS, "low", EXTRACTOR_VERSION
    ),
    "domain_buckets": Card(
        "one page, in the bucket of its domain", "domain_store.md", TEXTS, "medium", STORE_FORMAT
    ),
    "domain_store": Card(
        "one domain and the byte ranges of its pages",
        "domain_store.md",
        TEXTS,
        "high",
        STORE_FORMAT,
    ),
    "domain_catalog": Card("one domain", "domain_store.md", FACTS, "low", STORE_FORMAT),
    "research_datasets": Card("one source found by research", "domain_metadata.md", FACTS, "low"),
    "domain_queue": Card(
        "one domain to survey",
        "domain_metadata.md",
        WORK,
        "low",
        "1",
        place="ledger: table domain_queue",
    ),
    "domain_metadata": Card(
        "one surveyed domain, stored as a folder of files",
        "domain_metadata.md",
        FACTS,
        "medium",
        AI_BOTS_VERSION,
    ),
    "domain_surveys": Card(
        "one surveyed domain", "domain_metadata.md", FACTS, "low", AI_BOTS_VERSION
    ),
    "usage_signals": Card(
        "one statement of a domain about use", "domain_metadata.md", FACTS, "low", "1"
    ),
    "ai_policy_changes": Card(
        "one crawler whose treatment by a domain has changed",
        "domain_metadata.md",
        FACTS,
        "low",
        AI_BOTS_VERSION,
    ),
    "feeds": Card("one feed and its health", "rss.md", FACTS, "medium", LEDGER_VERSION),
    "pending_articles": Card(
        "one article announced by a feed", "rss.md", WORK, "medium", LEDGER_VERSION
    ),
    "articles": Card("one article with its text", "rss.md", TEXTS, "medium", LEDGER_VERSION),
    "article_sheets": Card(
        "one feed, article, statistic or setting, depending on the tab",
        "sheets.md",
        TEXTS,
        "low",
        LEDGER_VERSION,
        place="article_sheets/articles.xlsx",
    ),
    "crawl_articles": Card("one article of the crawl", "corpus.md", TEXTS, "high", _CORPUS_VERSION),
    "feed_articles": Card("one article of a feed", "corpus.md", TEXTS, "low", _CORPUS_VERSION),
    "near_duplicates": Card(
        "one article and its cluster", "near_duplicates.md", FACTS, "medium", _SKETCH
    ),
    "training_export": Card(
        "one article that may be used for training", "corpus.md", TEXTS, "medium", "1"
    ),
    "search_index": Card("one article", "search.md", TEXTS, "medium", INDEX_VERSION),
    "page_snapshots": Card("one stored page, which is a file", "source_records.md", TEXTS, "low"),
    "source_records": Card(
        "one block of clean text", "source_records.md", TEXTS, "medium", SEGMENTER_VERSION
    ),
    "takedowns": Card(
        "one request to remove pages or domains",
        "takedown.md",
        WORK,
        "high",
        "1",
        place="takedowns/requests/ID.json",
    ),
}


# The page of the explorer that shows an asset's data; all others are on its status page.
_EXPLORER_PAGES = {
    "search_index": "/",
    "crawl_articles": "/",
    "feed_articles": "/",
    "domain_store": "/domains",
    "domain_catalog": "/domains",
    "domain_metadata": "/policies",
    "domain_surveys": "/policies",
    "ai_policy_changes": "/policies",
    "usage_signals": "/policies",
}


def with_card(
    spec: dg.AssetSpec, *, docs_url: str | None = None, server_url: str | None = None
) -> dg.AssetSpec:
    """Add the card of an asset to its description, tags and metadata."""
    name = spec.key.to_user_string()
    card = CARDS[name]
    place = card.place or spec.metadata["path"]
    docs = _docs(card.page, docs_url)
    more: dict[str, object] = {"no_freshness_policy": WITHOUT[name]} if name in WITHOUT else {}
    if name in SCHEMAS:
        more["dagster/column_schema"] = SCHEMAS[name]
    if server_url is not None:
        page = _EXPLORER_PAGES.get(name, "/status")
        more["explorer"] = dg.MetadataValue.url(f"{server_url.rstrip('/')}{page}")
    return spec.replace_attributes(
        description=f"{spec.description}\n\nA row is {card.row}. It is stored at `{place}`.",
        code_version=card.version,
    ).merge_attributes(
        tags={"sensitivity": card.sensitivity, "cost": card.cost},
        metadata={"path": place, "docs": docs, **more},
    )


def _docs(page: str, docs_url: str | None) -> dg.MetadataValue:
    """Return a link to the docs page, or its path in the project if no URL is set."""
    if docs_url is not None:
        return dg.MetadataValue.url(f"{docs_url.rstrip('/')}/{page}")
    return dg.MetadataValue.path(f"docs/{page}")
