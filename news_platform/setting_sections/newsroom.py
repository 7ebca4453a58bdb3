"""Settings of what the newsroom is told: silent feeds, saved queries, analyses."""

from news_platform.setting_sections.fields import Section, Switch, env, secret


class NewsroomSettings(Section):
    """When silence is an alarm, which queries notify, and who analyses articles."""

    silence_factor: float = env(
        "NEWS_PLATFORM_SILENCE_FACTOR",
        "a feed is silent after so many times its usual gap between entries",
        5.0,
    )
    silence_hours: float = env(
        "NEWS_PLATFORM_SILENCE_HOURS", "and not before so many hours without an entry", 24.0
    )
    failing_hours: float = env(
        "NEWS_PLATFORM_FAILING_HOURS", "hours of failed polls after which a feed is reported", 24.0
    )
    text_share_fall: float = env(
        "NEWS_PLATFORM_TEXT_SHARE_FALL",
        "share of its usual share of articles with text below which a source is reported",
        0.5,
    )
    saved_queries: str | None = env(
        "NEWS_PLATFORM_SAVED_QUERIES",
        "TOML file of queries that notify; unset: alerts.toml in the root",
    )
    analyses: Switch = env(
        "NEWS_PLATFORM_ANALYSES", "fill the Analyses tab with summaries and keywords", True
    )
    analyses_per_run: int = env(
        "NEWS_PLATFORM_ANALYSES_PER_RUN", "articles that one run analyses at most", 5_000
    )
    analysis_url: str | None = env(
        "NEWS_PLATFORM_ANALYSIS_URL",
        "base URL of an OpenAI-compatible server, as http://HOST/v1; unset: no model is asked",
    )
    analysis_model: str = env("NEWS_PLATFORM_ANALYSIS_MODEL", "name of the model there", "")
    analysis_key: str | None = secret("NEWS_PLATFORM_ANALYSIS_KEY", "its API key, if it needs one")
