"""The settings of the corpus and its exports."""

from news_platform.setting_sections.fields import Names, Section, Switch, env


class CorpusSettings(Section):
    """Which articles the corpus holds, how they are built, and what a monthly export takes."""

    languages: Names = env(
        "NEWS_PLATFORM_CORPUS_LANGUAGES", "only these languages of raw_news; empty: all", ()
    )
    domains: Names = env("NEWS_PLATFORM_CORPUS_DOMAINS", "only these domains; empty: all", ())
    workers: int = env("NEWS_PLATFORM_CORPUS_WORKERS", "processes that extract articles", 2)
    page_seconds: float = env("NEWS_PLATFORM_CORPUS_PAGE_SECONDS", "time limit for one page", 30.0)
    memory_mb: int = env("NEWS_PLATFORM_CORPUS_MEMORY_MB", "memory limit of a worker", 1024)
    scratch: str | None = env(
        "NEWS_PLATFORM_CORPUS_SCRATCH", "folder for sorting; unset: the system's own"
    )
    refresh_minutes: float = env(
        "NEWS_PLATFORM_CORPUS_REFRESH_MINUTES",
        "shortest time between two builds of a day of feed_articles",
        15.0,
    )
    grace_days: float = env(
        "NEWS_PLATFORM_CORPUS_GRACE_DAYS", "days that replaced files stay for readers", 7.0
    )
    cluster_days: int = env(
        "NEWS_PLATFORM_CLUSTER_DAYS", "days within which near-identical texts are one cluster", 14
    )
    export_languages: Names = env(
        "NEWS_PLATFORM_EXPORT_LANGUAGES", "languages of training_export; empty: all", ()
    )
    export_min_words: int = env(
        "NEWS_PLATFORM_EXPORT_MIN_WORDS", "shorter articles are not in training_export", 100
    )
    export_without_flags: Names = env(
        "NEWS_PLATFORM_EXPORT_WITHOUT_FLAGS",
        "quality flags that keep an article out of training_export",
        ("cut_text", "repeated_lines"),
    )
    export_policy: Names = env(
        "NEWS_PLATFORM_EXPORT_POLICY",
        "uses that publishers must not refuse, as BOT:PURPOSE,BOT:PURPOSE",
        ("*:ai_train", "GPTBot:ai_train", "CCBot:ai_train"),
    )
    export_strict: Switch = env(
        "NEWS_PLATFORM_EXPORT_STRICT",
        "training_export also leaves out publishers about whom nothing is known",
        False,
    )
    removal_contact: str | None = env(
        "NEWS_PLATFORM_REMOVAL_CONTACT", "whom the card of an export names for removals"
    )
