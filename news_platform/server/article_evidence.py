"""What can be said of an article of the corpus in milliseconds: a part of its explanation.

The whole explanation also searches the crawl, the domain store, the survey, sheets and exports, and
takes ten times as long. This part asks the ledger, the article's own rows and the search index.
"""

from collections.abc import Iterator, Sequence

from news_platform.datasets.corpus import CRAWL_ARTICLES, CRAWL_SOURCE, FEED_ARTICLES
from news_platform.datasets.evidence import Evidence
from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.rss.explain import explain_article
from news_platform.search.explain import IndexedDays, explain_known_indexes
from news_platform.server.app_state import AppState
from news_platform.server.article_rows import Row
from news_platform.server.documents import ArticleDocument
from news_platform.server.versions import INDEX_MARKERS
from news_platform.takedowns.same_page import PageAddress


def article_evidence(
    state: AppState, article: ArticleDocument, rows: Sequence[Row]
) -> Iterator[Evidence]:
    """Yield what the ledger, the corpus, its clusters and its index say, in this order."""
    engine = state.ledger
    if engine is not None:
        yield from explain_article(engine, state.store, PageAddress.of(article.canonical_url))
    for row in rows:
        is_crawled = row["source"] == CRAWL_SOURCE
        yield Evidence.of_row(CRAWL_ARTICLES if is_crawled else FEED_ARTICLES, row)
    if article.cluster is not None:
        text = f"{article.cluster.size - 1} other articles have a near-identical text."
        at, name = article.cluster.first_seen_at, article.cluster.cluster_id
        yield Evidence(NEAR_DUPLICATES.name, "clustered", text, at=at, details={"cluster": name})
    cache = state.news.search_cache
    known = state.kept(
        "indexed days", lambda: IndexedDays.read(state.store, cache), of=INDEX_MARKERS
    )
    days = dict.fromkeys(row["day"] for row in rows)
    yield from explain_known_indexes(known, cache, list(days), [article.url_hash])
