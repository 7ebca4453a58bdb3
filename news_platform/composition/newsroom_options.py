"""From settings to the options of what the newsroom sees: sheets, alarms, queries, analyses."""

from typing import TYPE_CHECKING

from news_platform.errors import ConfigError
from news_platform.settings import Settings

# Imported where they are made: a command loads only what it runs.
if TYPE_CHECKING:
    from news_platform.rss.analyses.pipeline import AnalysisOptions
    from news_platform.rss.feed_alarms import AlarmOptions
    from news_platform.rss.sheets.access import SyncOptions
    from news_platform.rss.sheets.workbook import WorkbookOptions


def sync_options(given: Settings) -> "SyncOptions":
    """Return how much goes into a Google Sheet."""
    from news_platform.rss.sheets.access import SyncOptions

    return SyncOptions(
        max_cells=given.sheets.max_cells, clean_text_limit=given.rss.clean_text_limit
    )


def workbook_options(given: Settings) -> "WorkbookOptions":
    """Return how much of the ledger one workbook shows."""
    from news_platform.rss.sheets.workbook import WorkbookOptions

    return WorkbookOptions(
        rows_per_book=max(1, given.sheets.workbook_rows),
        clean_text_limit=given.rss.clean_text_limit,
    )


def alarm_options(given: Settings) -> "AlarmOptions":
    """Return when silence is an alarm."""
    from news_platform.rss.feed_alarms import AlarmOptions

    return AlarmOptions(
        silence_factor=given.newsroom.silence_factor,
        silence_hours=given.newsroom.silence_hours,
        failing_hours=given.newsroom.failing_hours,
        text_share_fall=given.newsroom.text_share_fall,
    )


def analysis_options(given: Settings) -> "AnalysisOptions | None":
    """Return how articles are analysed; None: they are not. Raise ConfigError without a model."""
    from news_platform.rss.analyses.model import ModelAccess
    from news_platform.rss.analyses.pipeline import AnalysisOptions

    wanted = given.newsroom
    if not wanted.analyses:
        return None
    if not wanted.analysis_url:
        return AnalysisOptions(per_run=wanted.analyses_per_run)
    if not wanted.analysis_model:
        raise ConfigError(
            "NEWS_PLATFORM_ANALYSIS_URL is set, but no model: set NEWS_PLATFORM_ANALYSIS_MODEL",
            thing="NEWS_PLATFORM_ANALYSIS_MODEL",
        )
    model = ModelAccess(wanted.analysis_url, wanted.analysis_model, wanted.analysis_key)
    return AnalysisOptions(per_run=wanted.analyses_per_run, model=model)
