"""The datasets of the ledger: feeds, their polls, announced and stored articles, the sheet."""

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    EVERY,
    TEXTS,
    Column,
    Dataset,
    Freshness,
    ParentDataset,
    Place,
    Role,
    Sensitivity,
    flag,
    number,
    parquet,
)

CATEGORIES = ("other", "politics", "sports")
CATEGORY_GUESS = Column("category_guess", Role.fact, "politics, sports or other, as guessed")

FEEDS = Dataset(
    name="feeds",
    group="rss",
    description="Every feed that was ever a candidate, with its status and health. Candidates "
    "are the feeds of the root's `feeds.opml` and those that crawled pages link to.",
    row="one feed and its health",
    place=parquet("feeds/date={date}/part-0.parquet"),
    parents=(
        ParentDataset("raw_news", EVERY, is_followed=False),
        ParentDataset("feed_candidates", EVERY, is_followed=False),
    ),
    version=versions.LEDGER,
    kinds=frozenset({"sql"}),
    cost="medium",
    freshness=Freshness(26, 36),
    fingerprint="files",
    columns=(
        Column("feed_url", Role.url, "address that is polled"),
        Column("feed_url_canon", Role.url, "canonical address, the key"),
        Column("lang", Role.language, "ISO 639-1 code the entries are written in"),
        Column(
            "status",
            Role.fact,
            "active, dead (slow probe), gone (410), rejected, unreachable, paused, retired",
        ),
        Column("last_entry_date", Role.time, "date of the newest entry"),
        Column("last_crawled", Role.time, "last poll"),
        Column("no_updates_days", Role.count, "whole days since the newest entry"),
        Column("etag", Role.fact, "validator of the last response"),
        Column("last_modified", Role.fact, "validator of the last response"),
        Column(
            "health_score",
            Role.count,
            "100 minus 10 per consecutive failure, 2 per day without updates, 20 if items may be "
            "missed, 20 if items are skipped, 50 if no item has a link",
        ),
        Column("notes", Role.text, "why it was rejected or what failed; people may add notes"),
        Column("checked_at", Role.time, "last check by discovery or poll"),
        Column("title", Role.title, "as the feed states it"),
        Column("feed_group", Role.fact, "folder of the feed, such as Europe/Spain"),
        Column("origin", Role.links, "opml and the listed URL, person, or '' (crawl, sheet)"),
        Column("verdict", Role.fact, "what discovery decided"),
        Column("next_check_at", Role.time, "when discovery looks again at a feed not accepted"),
        Column("next_poll_at", Role.time, "when it is polled next; null: at once"),
        Column("interval_seconds", Role.count, "current interval between polls"),
        Column("usual_gap_seconds", Role.count, "median gap between its entries; 0: unknown"),
        Column("last_success_at", Role.time, "last poll that gave the feed or 304"),
        Column("failing_since", Role.time, "first failure in a row; null: the last poll worked"),
        flag("may_miss_items", "it turned over between two polls of late"),
        Column("skipped_items", Role.count, "items of the last response beyond the limit"),
    ),
    partition_columns=(Column("date", Role.day, "UTC day whose last state the row has"),),
    sources={"feed_candidates.feed_url": ("feed_url",)},
)

FEED_POLLS = Dataset(
    name="feed_polls",
    group="rss",
    description="Every poll of a feed and what it found.",
    row="one poll of a feed",
    place=parquet("feed_polls/date={date}/part-0.parquet"),
    written_by="pending_articles",
    version=versions.LEDGER,
    fingerprint="files",
    columns=(
        Column("feed_url", Role.url, "canonical address of the feed"),
        Column("polled_at", Role.time, "when it was polled"),
        Column("outcome", Role.fact, "read, not_modified, same_body, or what failed"),
        Column("status_code", Role.count, "HTTP status; 0 if there was no response"),
        Column("items", Role.count, "entries in the feed"),
        Column("new_items", Role.count, "articles that were new"),
        Column("updated_items", Role.count, "articles that the publisher changed"),
        Column("skipped_items", Role.count, "articles that the limit of a poll left out"),
        Column("items_without_link", Role.count, "entries that link to no page"),
        flag("turned_over", "whether no known entry was left"),
        Column("notes", Role.text, "why the poll failed"),
    ),
    partition_columns=(Column("date", Role.day, "UTC day of the poll"),),
)

PENDING_ARTICLES = Dataset(
    name="pending_articles",
    group="rss",
    description="Articles found in feeds, one row per URL, from pending to stored, duplicate, "
    "error or skipped. Only feeds that are due are polled.",
    row="one article announced by a feed",
    place=parquet("pending_articles/date={date}/part-0.parquet"),
    parents=(ParentDataset("feeds", EVERY),),
    version=versions.LEDGER,
    kinds=frozenset({"sql"}),
    sensitivity=Sensitivity.work,
    cost="medium",
    freshness=Freshness(7, 12),
    fingerprint="files",
    columns=(
        Column("row_id", Role.count, "key of the article in the ledger"),
        Column("feed_url", Role.url, "feed that listed it first, by its present address"),
        Column("article_url_canon", Role.url, "canonical URL"),
        Column("url_hash", Role.url_hash, "SHA-256 hex of article_url_canon"),
        Column("title", Role.title, "as the feed states it, until the page is read"),
        Column("published_at", Role.time, "as the feed states it, until the page is read"),
        Column("found_at", Role.time, "when a feed first listed it"),
        Column("last_seen_rss", Role.time, "when a feed last listed it"),
        Column(
            "status",
            Role.fact,
            "pending, processing, stored, duplicate, error, skipped (robots, limit, type)",
        ),
        Column("lock_owner", Role.fact, "worker that holds it"),
        Column("lock_at", Role.time, "start of its lease"),
        Column("retries", Role.count, "failures so far"),
        Column("error_msg", Role.text, "last reason"),
        Column("source", Role.domain, "registrable domain of the article's address"),
        Column("stored_at", Role.time, "when it was first stored; null if it is not"),
        Column("clean_text_len", Role.count, "characters of its text"),
        Column("text_source", Role.fact, "page, json_ld, trafilatura or feed"),
    ),
    partition_columns=(Column("date", Role.day, "UTC day on which a feed first listed it"),),
    sources={"": ("title", "status")},
)


def day_path(table: Dataset, day: str) -> str:
    """Return the path of the file of one day, relative to the root."""
    return f"{table.name}/date={day}/part-0.parquet"


ARTICLES = Dataset(
    name="articles",
    group="rss",
    description="Articles of the feeds: text, title, authors, date, language; no URL or text "
    "appears twice. The robots.txt rules of the domain survey decide which pages may "
    "be fetched. Changed days are written to `articles/date=…`, and expired full "
    "texts are deleted.",
    row="one article with its text",
    place=parquet("articles/date={date}/part-0.parquet"),
    parents=(
        ParentDataset("pending_articles", EVERY),
        ParentDataset("domain_metadata", EVERY, is_followed=False),
    ),
    sources={"pending_articles.feed_url": ("feed_url",)},
    version=versions.LEDGER,
    kinds=frozenset({"sql", "parquet"}),
    sensitivity=Sensitivity.texts,
    cost="medium",
    freshness=Freshness(12, 24),
    fingerprint="files",
    beside=(
        "articles/full_text/{prefix}/{url_hash}.txt.gz",
        "articles/pages/{prefix}/{url_hash}.html.zst",
    ),
    columns=(
        Column("row_id", Role.count, "key of the article in the ledger"),
        Column("source", Role.domain, "registrable domain of the article's address"),
        Column("feed_url", Role.links, "feed that listed it first, by its present address"),
        Column("article_url", Role.url, "link as written in the feed"),
        Column("article_url_canon", Role.url, "canonical URL after redirects"),
        Column("url_hash", Role.url_hash, "SHA-256 hex of article_url_canon"),
        Column("text_hash", Role.fact, "SHA-256 hex of the normalized clean text"),
        Column("found_at", Role.time, "when a feed first listed it"),
        Column("fetched_at", Role.time, "when the page was fetched last"),
        Column("published_at", Role.time, "date stated by the page, else by the feed, else null"),
        Column("language", Role.language, "ISO 639-1 code of the text"),
        Column("title", Role.title, "headline"),
        Column("subtitle", Role.text, "second headline or summary stated by the page"),
        Column(
            "authors",
            Role.people,
            "people, else agencies, as the page names them, else the feed",
            TEXTS,
        ),
        Column("section", Role.text, "the site's own section"),
        Column("tags", Role.text, "the site's own keywords, else the feed's", TEXTS),
        Column("article_type", Role.fact, "news, opinion, live, gallery, review, video, blog, ..."),
        Column("clean_text", Role.text, "text of the article, uncut"),
        Column("clean_text_len", Role.count, "characters of the clean text"),
        Column(
            "full_text_ref",
            Role.file,
            "file of all visible main-column text, from the root; '' once expired",
        ),
        Column("full_text_len", Role.count, "characters of the full text"),
        Column("word_count", Role.count, "words of the clean text"),
        Column("out_links", Role.links, "links in the text to other hosts", TEXTS),
        CATEGORY_GUESS,
        Column("sources_list", Role.links, "feeds that carry the article or its text", TEXTS),
        Column("aliases", Role.links, "other addresses of the same article", TEXTS),
        Column("last_seen_rss", Role.time, "when a feed last listed it"),
        Column("extractor_version", Role.fact, "version of the extractor"),
        number("confidence", "F1 to expect of the clean text, 0 to 1"),
        Column(
            "published_at_source", Role.fact, "json-ld, meta, microdata, time, url, visible or ''"
        ),
        Column("summary", Role.text, "summary of the feed, else of the page"),
        Column("image_url", Role.links, "main image stated by the page, else by the feed"),
        Column(
            "text_source", Role.fact, "where clean_text is from: page, trafilatura, json_ld, feed"
        ),
        flag("is_paywalled", "true: not the whole article; null: nothing says so"),
        Column("stated_published_at", Role.time, "a stated date more than a day ahead; else null"),
        Column("page_doubt", Role.fact, "a sign that the page may be another one; else ''"),
    ),
    partition_columns=(Column("date", Role.day, "UTC day on which it was first stored"),),
)


def articles_path(day: str) -> str:
    """Return the path of the file of one day, relative to the root."""
    return f"articles/date={day}/part-0.parquet"


ARTICLE_SHEETS = Dataset(
    name="article_sheets",
    group="rss",
    description="Articles to read, feeds, index, diagnostics and config as tabs for editors, in "
    "the Google Sheet that the settings name, or in an .xlsx file under the root.",
    row="one feed, article, statistic or setting, depending on the tab",
    place=Place("files", "article_sheets/{file}"),
    columns=(
        Column("Articles", Role.text, "tab with one row per text, for reading"),
        Column("Feeds", Role.links, "tab with one row per feed"),
        Column("Raw", Role.text, "tab with one row per article"),
        Column("ArticlesIndex", Role.links, "tab with one row per address"),
        Column("Diagnostics", Role.fact, "tab with one row per statistic"),
        Column("Config", Role.fact, "tab with one row per setting"),
        Column("Analyses", Role.text, "tab with one row per analysed article"),
    ),
    parents=(ParentDataset("articles", EVERY), ParentDataset("feeds", EVERY)),
    version=versions.LEDGER,
    kinds=frozenset({"googlesheets"}),
    fingerprint="files",
    sensitivity=Sensitivity.texts,
    removal="rebuild",
    page="sheets.md",
    freshness=Freshness(13, 25),
    sources={
        "feeds.feed_url_canon": ("Feeds",),
        "feeds.status": ("Feeds", "Diagnostics"),
        "articles.article_url_canon": ("Raw", "ArticlesIndex"),
        "articles.clean_text": ("Raw", "Analyses"),
        "articles.found_at": ("Raw", "Diagnostics"),
    },
)
