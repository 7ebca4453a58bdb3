"""An extracted article in, its row of the corpus out, with what may be wrong about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

import polars as pl

from news_platform.articles.article import Article, believed_date, guess_category
from news_platform.datasets.corpus import CRAWL_ARTICLES, CRAWL_SOURCE, FEED_ARTICLES, FEED_SOURCE
from news_platform.datasets.feeds import ARTICLES
from news_platform.text.normalize import count_words, text_hash
from news_platform.web.urls import canonical_url, registrable_domain, url_hash, url_host

# Below, most texts are captions, teasers of a locked article, or the wrong part of the page.
FEW_WORDS = 50
# The worst tenth of texts is at 0.80 on the average, and legal notices are among them.
_UNSURE_TEXT = 0.85
_UNSURE_LANGUAGE = 0.8
# The share of lines that occur more than once, from which a text is mostly menus.
_REPEATED_SHARE = 0.2

QUALITY_FLAGS = (
    "cut_text",
    "fallback_text",
    "few_words",
    "no_date",
    "no_title",
    "repeated_lines",
    "unsure_language",
    "unsure_page",
    "unsure_text",
)
"""Every quality flag, in the order in which a row lists them."""


TARGET = "news_platform.corpus.worker:classify_page"
"""What a worker process runs on each page; it alone loads the extractor."""
NO_TEXT = "no_text"
NOT_AN_ARTICLE = "not_an_article"
ERROR_STATUS = "error_status"


@dataclass(frozen=True, slots=True)
class CrawlPage:
    """A page to classify: its address, its decoded HTML, and its HTTP status if it is known."""

    url: str
    html: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class ArticleRow:
    """One row of crawl_articles; the fields are its columns."""

    source: str
    url: str
    canonical_url: str
    url_hash: str
    domain: str
    title: str | None
    subtitle: str | None
    authors: Sequence[str]
    published_at: datetime | None
    stated_published_at: datetime | None
    section: str | None
    tags: Sequence[str]
    category_guess: str
    article_type: str
    language: str
    language_probability: float
    text: str
    text_hash: str
    word_count: int
    quality_flags: Sequence[str]
    confidence: float
    image_url: str | None
    is_paywalled: bool | None
    text_source: str
    extractor_version: str


_ROW_FIELDS = frozenset(one.name for one in fields(ArticleRow))


@dataclass(frozen=True, slots=True)
class PagePlace:
    """Where and when a page was fetched; the fields are columns of crawl_articles."""

    day: str
    warc: str
    fetched_at: datetime
    record_offset: int | None = None
    record_length: int | None = None
    payload_digest: str | None = None


@dataclass(frozen=True, slots=True)
class ClassifiedPage:
    """The row of an article, or the reason why the page has none.

    `detail` says how a worker failed at the page.
    """

    row: ArticleRow | None
    reason: str = ""
    detail: str = ""


def article_row(article: Article, url: str, doubt: str = "") -> ArticleRow:
    """Return the row of an article of the crawl; where it comes from is added later."""
    canonical = canonical_url(url)
    words = count_words(article.clean_text)
    return ArticleRow(
        source=CRAWL_SOURCE,
        url=url,
        canonical_url=canonical,
        url_hash=url_hash(url),
        domain=registrable_domain(url_host(url)),
        title=article.title or None,
        subtitle=article.subtitle or None,
        authors=article.authors,
        published_at=article.published_at,
        stated_published_at=None,
        section=article.section or None,
        tags=article.tags,
        category_guess=guess_category(
            section=article.section,
            tags=article.tags,
            url=url,
            title=article.title,
            text=article.clean_text,
        ),
        article_type=article.article_type,
        language=article.language,
        language_probability=article.language_probability,
        text=article.clean_text,
        text_hash=text_hash(article.clean_text),
        word_count=words,
        quality_flags=tuple(quality_flags(article, words, doubt)),
        confidence=article.confidence,
        image_url=article.image_url or None,
        is_paywalled=article.is_paywalled,
        text_source=article.text_source,
        extractor_version=article.extractor_version,
    )


def dated_row(row: ArticleRow, fetched_at: datetime) -> ArticleRow:
    """Return the row without a date that lies too far ahead of its fetch to be true."""
    published_at, stated = believed_date(row.published_at, now=fetched_at)
    if stated is None:
        return row
    flags = tuple(flag for flag in QUALITY_FLAGS if flag in (*row.quality_flags, "no_date"))
    return replace(row, published_at=published_at, stated_published_at=stated, quality_flags=flags)


def quality_flags(article: Article, words: int, doubt: str = "") -> Iterator[str]:
    """Yield what may be wrong about an article, in the order of QUALITY_FLAGS.

    `doubt` is the sign that its page may be another than the article's.
    """
    found = {
        "cut_text": False,  # the crawl's texts are whole
        "fallback_text": article.text_source not in ("", "page"),
        "few_words": words < FEW_WORDS,
        "no_date": article.published_at is None,
        "no_title": not article.title,
        "repeated_lines": _repeated_share(article.clean_text) >= _REPEATED_SHARE,
        "unsure_language": article.language_probability < _UNSURE_LANGUAGE,
        "unsure_page": bool(doubt),
        "unsure_text": article.confidence < _UNSURE_TEXT,
    }
    return (flag for flag in QUALITY_FLAGS if found[flag])


def _repeated_share(text: str) -> float:
    lines = text.split("\n")
    return 1 - len(set(lines)) / len(lines)


def crawl_frame(rows: Sequence[ArticleRow], places: Sequence[PagePlace]) -> pl.DataFrame:
    """Return rows and where each was found, as a frame with the columns of crawl_articles."""
    found: dict[str, list[object]] = {}
    for name in CRAWL_ARTICLES.full_schema:
        given: Sequence[object] = rows if name in _ROW_FIELDS else places
        found[name] = [getattr(one, name) for one in given]
    return pl.DataFrame(found, schema=dict(CRAWL_ARTICLES.full_schema))


_FROM_LEDGER = {
    "url": "article_url",
    "canonical_url": "article_url_canon",
    "domain": "source",
    "text": "clean_text",
    "day": "date",
}


def feed_frame(articles: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `articles` with the columns of feed_articles, sorted by domain and address.

    A column that articles do not have yet is null.
    """
    columns = []
    for name, dtype in FEED_ARTICLES.full_schema.items():
        own = _FROM_LEDGER.get(name, name)
        known = own in articles.columns and (own in ARTICLES.full_schema) and name != "source"
        value = pl.col(own) if known else pl.lit(None)
        columns.append(value.cast(dtype).alias(name))
    cut = pl.col("clean_text_len") > pl.col("clean_text").str.len_chars()
    doubt = pl.col("page_doubt") if "page_doubt" in articles.columns else pl.lit("")
    facts = {"is_cut": cut.fill_null(False), "is_doubtful": doubt.fill_null("") != ""}
    rows = articles.select(*columns, **facts).with_columns(
        source=pl.lit(FEED_SOURCE),
        title=_or_null("title"),
        subtitle=_or_null("subtitle"),
        section=_or_null("section"),
        authors=pl.col("authors").fill_null([]),
        tags=pl.col("tags").fill_null([]),
        quality_flags=_feed_flags(),
    )
    stored = rows.filter(pl.col("text").fill_null("") != "")
    return (
        stored.drop("is_cut", "is_doubtful")
        .sort("domain", "canonical_url", "url_hash")
        .unique(["domain", "canonical_url"], keep="last", maintain_order=True)
    )


def _or_null(name: str) -> pl.Expr:
    return pl.when(pl.col(name) != "").then(pl.col(name))


def _feed_flags() -> pl.Expr:
    """Return the flags that can be told from the columns of the feeds' articles."""
    found = {
        "cut_text": pl.col("is_cut"),
        "fallback_text": pl.col("text_source").fill_null("page") != "page",
        "few_words": pl.col("word_count") < FEW_WORDS,
        "no_date": pl.col("published_at").is_null(),
        "no_title": pl.col("title").fill_null("") == "",
        "repeated_lines": pl.col("text").str.split("\n").list.n_unique()
        / pl.col("text").str.split("\n").list.len()
        <= 1 - _REPEATED_SHARE,
        "unsure_language": pl.col("language_probability") < _UNSURE_LANGUAGE,
        "unsure_page": pl.col("is_doubtful"),
        "unsure_text": pl.col("confidence") < _UNSURE_TEXT,
    }
    flags = [pl.when(rule).then(pl.lit(name)) for name, rule in found.items()]
    return pl.concat_list(flags).list.drop_nulls()
