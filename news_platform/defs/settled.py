"""Hold back the followers of a crawl day until the day is settled."""

from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta

from news_platform.ccnews.settling import SettlingOptions, unsettled_days
from news_platform.defs.planning import Hold
from news_platform.resources import Resources
from news_platform.setting_sections.features import CcnewsSettings


def unsettled(
    resources: Resources, days: Collection[str], followed: Collection[str], now: datetime
) -> Mapping[str, Hold]:
    """Return why days of the crawl are not followed yet; `followed` were built on before."""
    if not resources.is_live:
        return {}  # a crawl that does not grow has settled
    waits = unsettled_days(
        resources.data_root.store,
        map(date.fromisoformat, days),
        followed=map(date.fromisoformat, followed),
        options=settling_options(resources.settings.ccnews),
        now=now,
    )
    return {str(day): Hold(wait.reason, wait.until.timestamp()) for day, wait in waits.items()}


def settling_options(given: CcnewsSettings) -> SettlingOptions:
    """Return when a day of the crawl is settled."""
    return SettlingOptions(
        later_days=given.settled_later_days,
        quiet=timedelta(hours=given.settled_hours),
        late=timedelta(hours=given.late_hours),
    )
