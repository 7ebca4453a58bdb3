"""One section of settings per feature.

A field has the name of the option that it sets, so that `resources.options_of` can copy it.
"""

from news_platform.setting_sections.fields import LowerNames, Names, Section, Switch, env, secret

# One value per machine: every feature that needs it reads the same variable.
WORKERS = env(
    "NEWS_PLATFORM_WORKERS",
    "processes per run that parse pages; 0: they are parsed in the run's own, for debugging",
    2,
)
MEMORY_MB = env("NEWS_PLATFORM_MEMORY_MB", "memory limit of one worker process or builder", 1024)
CONTACT = env(
    "NEWS_PLATFORM_CONTACT",
    "address or page for questions and removal requests: part of the User-Agent and of exports",
    "",
)
SCRATCH = env("NEWS_PLATFORM_SCRATCH", "folder for sorting; unset: the system's own")


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
    workers: int = WORKERS
    memory_mb: int = MEMORY_MB
    max_warcs: int | None = env("NEWS_PLATFORM_CCNEWS_MAX_WARCS", "most WARCs per day; unset: all")
    max_days: int = env(
        "NEWS_PLATFORM_CCNEWS_MAX_DAYS", "most days that the sensor has in progress", 4
    )
    settled_hours: float = env(
        "NEWS_PLATFORM_SETTLED_HOURS",
        "hours without a new WARC before a day counts as settled",
        5.0,
    )
    late_hours: float = env(
        "NEWS_PLATFORM_LATE_HOURS",
        "late WARCs of a day are added together at intervals of this many hours",
        72.0,
    )
    dropped_days: int = env(
        "NEWS_PLATFORM_DROPPED_RESPONSES_DAYS",
        "days that dropped_responses keeps its files",
        90,
    )
    redo_newest_days: int = env(
        "NEWS_PLATFORM_REDO_NEWEST_DAYS",
        "newest days that sensors collect, and extract articles of, again when they are outdated",
        0,
    )
    hosts: LowerNames = env("NEWS_PLATFORM_CCNEWS_HOSTS", "only these domains; empty: all", ())
    languages: LowerNames = env(
        "NEWS_PLATFORM_CCNEWS_LANGUAGES", "only these languages; empty: all", ()
    )
    # A growing day lists a new WARC about every hour: runs take several together.
    collect_hours: float = 4.0
    # WARCs of a day are listed until shortly after midnight, when the next day's first appears.
    settled_later_days: int = 1
    # Common Crawl republishes WARCs within weeks; two months cost a few thousand HEAD requests.
    recheck_days: int = 60


class DomainStoreSettings(Section):
    """The layout and the limits of the domain store."""

    buckets: int = env(
        "NEWS_PLATFORM_BUCKETS", "hash buckets of a new store; an old one keeps its own", 1000
    )
    memory_mb: int = MEMORY_MB
    scratch: str | None = SCRATCH
    grace_days: float = env(
        "NEWS_PLATFORM_STORE_GRACE_DAYS", "days that replaced files stay for readers", 7.0
    )


class DomainMetadataSettings(Section):
    """The survey of domains."""

    catalog_domains_per_day: int = env(
        "NEWS_PLATFORM_CATALOG_DOMAINS_PER_DAY", "new domains of the crawl to survey; 0: none", 0
    )
    resurvey_days: float = env(
        "NEWS_PLATFORM_RESURVEY_DAYS", "days between two surveys of a domain; 0: no resurveys", 7.0
    )
    resurveys_per_day: int = env(
        "NEWS_PLATFORM_RESURVEYS_PER_DAY", "most domains surveyed again per day", 5_000
    )
    news_sitemaps: int = env(
        "NEWS_PLATFORM_NEWS_SITEMAPS",
        "news sitemaps of surveyed domains without feeds that are read per hour; 0: none",
        0,
    )
    survey_pause_seconds: float = env(
        "NEWS_PLATFORM_SURVEY_PAUSE_SECONDS",
        "seconds between two requests of a survey to one host",
        1.0,
    )
    # Domains surveyed at once, not counting those that pause. Most of them wait for the network, so
    # that one core serves them all.
    survey_concurrency: int = 64
    # Longer than the resolver caches a negative answer (30 s), so that a retry asks DNS again.
    survey_retry_seconds: float = 45.0


class RssSettings(Section):
    """Discovery and polling of feeds, and fetching of articles."""

    fulltext_dir: str | None = env(
        "FULLTEXT_DIR", "folder or URL of full texts; unset: articles/full_text in the root"
    )
    fulltext_keep_days: int | None = env(
        "NEWS_PLATFORM_FULLTEXT_KEEP_DAYS", "days a full text is kept; unset: forever"
    )
    pages_keep_days: int = env(
        "NEWS_PLATFORM_PAGES_KEEP_DAYS",
        "days the bytes of a fetched page are kept for `rss reextract`; 0: they are not kept",
        30,
    )
    fresh_days_limit: int = env(
        "FRESH_DAYS_LIMIT", "age limit, in days, of the newest entry of a new feed", 7
    )
    languages: LowerNames = env(
        "NEWS_PLATFORM_FEED_LANGUAGES",
        "languages of accepted feeds, as en,de; a comma alone: any",
        ("en",),
    )
    max_items_per_feed: int = env(
        "MAX_ITEMS_PER_FEED_PER_POLL",
        "new articles per feed and poll; further ones become rows with status skipped",
        2_000,
    )
    min_interval_seconds: int = env(
        "NEWS_PLATFORM_POLL_MIN_SECONDS", "shortest interval between polls of a feed", 3 * 3600
    )
    max_interval_seconds: int = env(
        "NEWS_PLATFORM_POLL_MAX_SECONDS", "longest interval between polls of a feed", 6 * 3600
    )
    pending_batch_size: int = env(
        "PENDING_BATCH_SIZE", "articles that a worker claims at once", 100
    )
    clean_text_limit: int = env(
        "CLEAN_TEXT_SHEETS_LIMIT", "characters of clean_text shown in a row of the sheet", 20_000
    )
    workers: int = WORKERS
    # Articles that a worker fetches at once; the limits per host keep it polite.
    article_concurrency: int = 32


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


class NewsroomSettings(Section):
    """Which queries notify, and how articles are analysed."""

    saved_queries: str | None = env(
        "NEWS_PLATFORM_SAVED_QUERIES",
        "TOML file of queries that notify; unset: alerts.toml in the root",
    )
    analysis_url: str | None = env(
        "NEWS_PLATFORM_ANALYSIS_URL",
        "base URL of an OpenAI-compatible server, as http://HOST/v1, that fills the Analyses tab",
    )
    analysis_model: str = env("NEWS_PLATFORM_ANALYSIS_MODEL", "name of the model there", "")
    analysis_key: str | None = secret("NEWS_PLATFORM_ANALYSIS_KEY", "its API key, if it needs one")


class SourceRecordsSettings(Section):
    """The segmentation of page snapshots into source records."""

    rules: str | None = env(
        "NEWS_PLATFORM_RECORDS_RULES",
        "TOML file: language and sizes of blocks, headings, tables, boilerplate and section rules",
    )
    redo_outdated: Switch = env(
        "NEWS_PLATFORM_RECORDS_REDO_OUTDATED",
        "the sensor also segments again what another version of the segmenter made",
        False,
    )
    workers: int = WORKERS
    # More failed pages than one in five mean a broken input or segmenter, not a few odd pages.
    failed_share: float = 0.2


class CorpusSettings(Section):
    """Which articles the corpus holds, how they are built, and what a monthly export takes."""

    languages: LowerNames = env(
        "NEWS_PLATFORM_CORPUS_LANGUAGES", "only these languages of raw_news; empty: all", ()
    )
    domains: LowerNames = env(
        "NEWS_PLATFORM_CORPUS_DOMAINS", "only articles of these domains; empty: all", ()
    )
    workers: int = WORKERS
    memory_mb: int = MEMORY_MB
    scratch: str | None = SCRATCH
    export_languages: LowerNames = env(
        "NEWS_PLATFORM_EXPORT_LANGUAGES", "languages of training_export; empty: all", ()
    )
    export_min_words: int = env(
        "NEWS_PLATFORM_EXPORT_MIN_WORDS", "shorter articles are not in training_export", 100
    )
    export_policy: Names = env(
        "NEWS_PLATFORM_EXPORT_POLICY",
        "what publishers must not refuse: training, search, archive, none, or BOT:PURPOSE; "
        "`strict` also leaves out publishers about whom nothing is known",
        ("training",),
    )
    export_signer: str | None = env(
        "NEWS_PLATFORM_EXPORT_SIGNER", "PEM file of the Ed25519 key that signs exports; unset: none"
    )
    contact: str = CONTACT
    # New articles of feeds arrive all the time; a day is not rebuilt for each of them.
    refresh_minutes: float = 15.0
    # News agencies' texts are reprinted within days; a longer window costs memory and finds little.
    cluster_days: int = 14


class SearchSettings(Section):
    """Which days are searched by default, and where copies of remote indexes are kept."""

    days: int = env(
        "NEWS_PLATFORM_SEARCH_DAYS", "newest days that are searched if the query names none", 30
    )
    cache: str | None = env(
        "NEWS_PLATFORM_SEARCH_CACHE",
        "folder for copies of the indexes; unset: ~/.cache/news-platform",
    )
    cache_mb: int = env("NEWS_PLATFORM_SEARCH_CACHE_MB", "largest size of all copies", 4096)
    # Late WARCs of the month's last days are in by then; fewer indexes are faster to search.
    months_after_days: int = 7


class RetentionSettings(Section):
    """What is deleted: datasets by `news-platform retention apply`, if set, and runs by a job."""

    stage_1_days: int | None = env(
        "NEWS_PLATFORM_RETAIN_STAGE_1_DAYS",
        "days that domain_buckets keeps a batch after the domain store took it over",
    )
    raw_news_days: int | None = env(
        "NEWS_PLATFORM_RETAIN_RAW_NEWS_DAYS",
        "age in days after which raw_news of a day is deleted; only the domain store holds it then",
    )
    runs_days: int = env(
        "NEWS_PLATFORM_RETAIN_RUNS_DAYS",
        "age in days after which finished runs of schedules and sensors are deleted, every night",
        14,
    )
