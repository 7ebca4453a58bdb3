"""One section of settings per feature."""

from news_platform.setting_sections.fields import Names, Section, Switch, env, secret


class CcnewsSettings(Section):
    """The crawl to follow, and what to collect from it."""

    source: str = env(
        "NEWS_PLATFORM_CRAWL_URL",
        "folder or URL that holds crawl-data/CC-NEWS/YYYY/MM/warc.paths.gz",
        "https://data.commoncrawl.org/",
    )
    fallback: str | None = env(
        "NEWS_PLATFORM_CRAWL_FALLBACK_URL", "same layout, read on errors (S3 first, HTTPS second)"
    )
    workers: int = env(
        "NEWS_PLATFORM_CCNEWS_WORKERS",
        "worker processes for the WARCs of a day; 0: the run's own process, for debugging",
        2,
    )
    max_warcs: int | None = env("NEWS_PLATFORM_CCNEWS_MAX_WARCS", "most WARCs per day; unset: all")
    max_days: int = env(
        "NEWS_PLATFORM_CCNEWS_MAX_DAYS", "most days that the sensor has in progress", 4
    )
    collect_hours: float = env(
        "NEWS_PLATFORM_CCNEWS_COLLECT_HOURS",
        "shortest time between two runs for a growing day",
        4.0,
    )
    settled_later_days: int = env(
        "NEWS_PLATFORM_SETTLED_LATER_DAYS", "later days listed before a day counts as settled", 1
    )
    settled_hours: float = env(
        "NEWS_PLATFORM_SETTLED_HOURS",
        "hours without a new WARC before a day counts as settled",
        5.0,
    )
    late_hours: float = env(
        "NEWS_PLATFORM_LATE_HOURS", "late WARCs of a day are followed together, every so many", 72.0
    )
    page_seconds: float = env("NEWS_PLATFORM_CCNEWS_PAGE_SECONDS", "time limit for one page", 30.0)
    memory_mb: int = env("NEWS_PLATFORM_CCNEWS_MEMORY_MB", "memory limit of a worker", 1024)
    main_content: Switch = env(
        "NEWS_PLATFORM_CCNEWS_MAIN_CONTENT", "text is the main content; 0: the whole page", True
    )
    captures: Switch = env("NEWS_PLATFORM_CCNEWS_CAPTURES", "write news/captures", True)
    feed_candidates: Switch = env(
        "NEWS_PLATFORM_CCNEWS_FEED_CANDIDATES", "write news/feed_candidates", True
    )
    dropped_days: int = env(
        "NEWS_PLATFORM_DROPPED_RESPONSES_DAYS",
        "days that dropped_responses keeps its files; 0: they are not written",
        90,
    )
    redo_newest_days: int = env(
        "NEWS_PLATFORM_REDO_NEWEST_DAYS",
        "newest days that sensors collect, and extract articles of, again when they are outdated",
        0,
    )
    recheck_days: int = env(
        "NEWS_PLATFORM_CCNEWS_RECHECK_DAYS",
        "newest collected days whose sources are checked for changes every night",
        60,
    )
    accept_after: int = env(
        "NEWS_PLATFORM_CCNEWS_ACCEPT_AFTER",
        "equal failures of a broken WARC after which its readable part is published; 0: never",
        5,
    )
    hosts: Names = env("NEWS_PLATFORM_CCNEWS_HOSTS", "only these domains; empty: all", ())
    languages: Names = env("NEWS_PLATFORM_CCNEWS_LANGUAGES", "only these languages; empty: all", ())
    statuses: Names = env(
        "NEWS_PLATFORM_CCNEWS_STATUSES", "only these HTTP statuses; empty: all", ()
    )
    mimes: Names = env(
        "NEWS_PLATFORM_CCNEWS_MIMES", "only these MIME types; empty: HTML and XHTML", ()
    )


class DomainStoreSettings(Section):
    """The layout and the limits of the domain store."""

    buckets: int = env(
        "NEWS_PLATFORM_BUCKETS", "hash buckets of a new store; an old one keeps its own", 1000
    )
    memory_mb: int = env("NEWS_PLATFORM_STORE_MEMORY_MB", "memory limit of a builder", 1024)
    file_mb: int = env("NEWS_PLATFORM_STORE_FILE_MB", "size limit of a data file", 2000)
    grace_days: float = env(
        "NEWS_PLATFORM_STORE_GRACE_DAYS", "days that replaced files stay for readers", 7.0
    )
    scratch: str | None = env(
        "NEWS_PLATFORM_STORE_SCRATCH", "folder for sorting; unset: the system's own"
    )
    removal_share: float = env(
        "NEWS_PLATFORM_STORE_REMOVAL_SHARE",
        "share of the store's records above which a removal needs --allow-removal",
        0.1,
    )


class DomainMetadataSettings(Section):
    """The survey of domains."""

    survey_concurrency: int = env(
        "NEWS_PLATFORM_SURVEY_CONCURRENCY", "domains surveyed at once", 64
    )
    survey_tries: int = env(
        "NEWS_PLATFORM_SURVEY_TRIES", "tries per run for a domain that does not answer", 3
    )
    survey_retry_seconds: float = env(
        "NEWS_PLATFORM_SURVEY_RETRY_SECONDS", "pause before the first retry, then doubled", 45.0
    )
    catalog_domains_per_day: int = env(
        "NEWS_PLATFORM_CATALOG_DOMAINS_PER_DAY", "new domains of the crawl to survey; 0: none", 0
    )
    resurvey_days: float = env(
        "NEWS_PLATFORM_RESURVEY_DAYS", "days between two surveys of a domain; 0: no resurveys", 7.0
    )
    resurvey_changed_days: float = env(
        "NEWS_PLATFORM_RESURVEY_CHANGED_DAYS", "the same after a survey that found a change", 2.0
    )
    news_sitemaps: int = env(
        "NEWS_PLATFORM_NEWS_SITEMAPS",
        "news sitemaps of surveyed domains without feeds that are read per hour; 0: none",
        0,
    )
    news_sitemap_days: float = env(
        "NEWS_PLATFORM_NEWS_SITEMAP_DAYS", "age limit, in days, of pages in a news sitemap", 2.0
    )
    resurveys_per_day: int = env(
        "NEWS_PLATFORM_RESURVEYS_PER_DAY", "domains surveyed again per day at most", 5_000
    )


class RssSettings(Section):
    """Discovery and polling of feeds, and fetching of articles."""

    fulltext_dir: str | None = env(
        "FULLTEXT_DIR", "folder or URL of full texts; unset: articles/full_text in the root"
    )
    fulltext_keep_days: int | None = env(
        "NEWS_PLATFORM_FULLTEXT_KEEP_DAYS", "days a full text is kept; unset: for ever"
    )
    pages_keep_days: int = env(
        "NEWS_PLATFORM_PAGES_KEEP_DAYS",
        "days the bytes of a fetched page are kept for `rss reextract`; 0: they are not kept",
        30,
    )
    fresh_days_limit: int = env(
        "FRESH_DAYS_LIMIT", "age limit, in days, of the newest entry of a new feed", 7
    )
    feed_languages: str = env(
        "NEWS_PLATFORM_FEED_LANGUAGES", "languages of accepted feeds, as en,de; empty: any", "en"
    )
    max_items_per_feed: int = env(
        "MAX_ITEMS_PER_FEED_PER_POLL",
        "new articles per feed and poll; further ones become rows with status skipped",
        2_000,
    )
    poll_min_seconds: int = env(
        "NEWS_PLATFORM_POLL_MIN_SECONDS", "shortest interval between polls of a feed", 3 * 3600
    )
    poll_max_seconds: int = env(
        "NEWS_PLATFORM_POLL_MAX_SECONDS", "longest interval between polls of a feed", 6 * 3600
    )
    pending_batch_size: int = env(
        "PENDING_BATCH_SIZE", "articles that a worker claims at once", 100
    )
    clean_text_limit: int = env(
        "CLEAN_TEXT_SHEETS_LIMIT", "characters of clean_text shown in a row of the sheet", 20_000
    )
    article_concurrency: int = env(
        "NEWS_PLATFORM_ARTICLE_CONCURRENCY", "articles that a worker fetches at once", 32
    )
    extractors: int = env("NEWS_PLATFORM_EXTRACTORS", "extractor processes per worker", 2)


class SheetsSettings(Section):
    """The Google Sheet that shows the ledger; without one, a local workbook does."""

    service_account: str | None = secret(
        "GOOGLE_SERVICE_ACCOUNT_JSON", "path or text of a service account key for the Google Sheet"
    )
    spreadsheet_id: str | None = env("SPREADSHEET_ID", "id of the Google Sheet, from its URL")
    spreadsheet_title: str | None = env(
        "SPREADSHEET_TITLE", "title of the Google Sheet, created if missing"
    )
    endpoint: str | None = env(
        "NEWS_PLATFORM_SHEETS_ENDPOINT", "URL to use instead of Google's (emulators)"
    )
    calls_per_minute: int = env(
        "NEWS_PLATFORM_SHEETS_CALLS_PER_MINUTE", "Google's quota, for reads and for writes", 60
    )
    max_cells: int = env(
        "NEWS_PLATFORM_SHEETS_MAX_CELLS",
        "cells after which a Google Sheet is continued in a new one; Google's limit is 10 million",
        9_500_000,
    )
    workbook_rows: int = env(
        "NEWS_PLATFORM_WORKBOOK_ROWS",
        "newest rows per tab of the workbook, and articles per monthly book",
        20_000,
    )


class SourceRecordsSettings(Section):
    """The segmentation of page snapshots into source records."""

    language: str = env("NEWS_PLATFORM_RECORDS_LANGUAGE", "language of the blocks to keep", "en")
    min_chars: int = env("NEWS_PLATFORM_RECORDS_MIN_CHARS", "shorter blocks are dropped", 12)
    max_chars: int = env("NEWS_PLATFORM_RECORDS_MAX_CHARS", "longer blocks are dropped", 2000)
    whitelist: Names = env(
        "NEWS_PLATFORM_RECORDS_WHITELIST", "regexes of sections and texts of any length, as a,b", ()
    )
    headings: str = env(
        "NEWS_PLATFORM_RECORDS_HEADINGS",
        "`attach`: headings name the section that follows; `records`: also become records",
        "attach",
    )
    tables: str = env(
        "NEWS_PLATFORM_RECORDS_TABLES", "record per `rows` or per whole table (`structure`)", "rows"
    )
    rules: str | None = env(
        "NEWS_PLATFORM_RECORDS_RULES", "TOML file of boilerplate and section rules"
    )
    failed_share: float = env(
        "NEWS_PLATFORM_RECORDS_FAILED_SHARE", "share of failed pages above which a check fails", 0.2
    )
    redo_outdated: bool = env(
        "NEWS_PLATFORM_RECORDS_REDO_OUTDATED",
        "the sensor also segments what another version of the segmenter made",
        False,
    )
    samples: int = env("NEWS_PLATFORM_RECORDS_SAMPLES", "blocks per institution shown in the UI", 5)
    workers: int = env("NEWS_PLATFORM_RECORDS_WORKERS", "processes that segment pages", 2)


class RetentionSettings(Section):
    """What `news-platform retention apply` deletes; unset: nothing of this dataset."""

    stage_1_days: int | None = env(
        "NEWS_PLATFORM_RETAIN_STAGE_1_DAYS",
        "days that domain_buckets keeps a batch after the domain store took it over",
    )
    raw_news_days: int | None = env(
        "NEWS_PLATFORM_RETAIN_RAW_NEWS_DAYS",
        "age in days after which raw_news of a day is deleted; only the domain store holds it then",
    )
