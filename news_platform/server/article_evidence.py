"""What can be said of an article of the corpus in milliseconds: a part of its explanation.

The whole explanation also searches the crawl, the domain store, the survey, sheets and exports, and
takes ten times as long. This part asks the ledger, the article's own rows and the search index.
"""

from collections.abc import Iterator, Sequence

from news_platform.corpus.explain import stored_row
from news_platform.datasets.evidence import Evidence
from news_platform.near_duplicates.explain import ROOM as CLUSTERS
from news_platform.rss.explain import explain_article
from news_platform.search.explain import IndexedDays, explain_known_indexes
from news_platform.server.article_rows import Row
from news_platform.server.documents import ArticleDocument
from news_platform.server.site import Site
from news_platform.server.versions import INDEX_MARKERS
from news_platform.takedowns.spellings import PageAddress


def article_evidence(
    site: Site, article: ArticleDocument, rows: Sequence[Row]
) -> Iterator[Evidence]:
    """Yield what the ledger, the corpus, its clusters and its index say, in this order."""
    engine = site.ledger
    if engine is not None:
        yield from explain_article(engine, site.store, PageAddress.of(article.canonical_url))
    yield from map(stored_row, rows)
    if article.cluster is not None:
        text = f"{article.cluster.size - 1} other articles have a near-identical text."
        at, name = article.cluster.first_seen_at, article.cluster.cluster_id
        yield Evidence(CLUSTERS, "clustered", text, at=at, details={"cluster": name})
    cache = site.news.search_cache
    known = site.kept("indexed days", lambda: IndexedDays.read(site.store, cache), of=INDEX_MARKERS)
    days = dict.fromkeys(row["day"] for row in rows)
    yield from explain_known_indexes(known, cache, list(days), [article.url_hash])
