"""The settings of the search."""

from news_platform.setting_sections.fields import Section, env


class SearchSettings(Section):
    """Which days are searched by default, and where copies of remote indexes are kept."""

    days: int = env(
        "NEWS_PLATFORM_SEARCH_DAYS", "newest days that are searched if the query names none", 30
    )
    months_after_days: int = env(
        "NEWS_PLATFORM_SEARCH_MONTHS_AFTER_DAYS",
        "days after its end at which a month gets one index instead of one per day; 0: never",
        7,
    )
    cache: str | None = env(
        "NEWS_PLATFORM_SEARCH_CACHE",
        "folder for copies of the indexes; unset: ~/.cache/news-platform",
    )
    cache_mb: int = env("NEWS_PLATFORM_SEARCH_CACHE_MB", "largest size of all copies", 4096)
