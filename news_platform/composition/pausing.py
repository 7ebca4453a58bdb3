"""What a paused root says: that nothing is collected, and what resuming it costs."""

from news_platform.ccnews.pool import Estimate, estimate
from news_platform.settings import Settings
from news_platform.storage.commit.root import is_paused
from news_platform.storage.objects.store import ObjectStore

# A usual day of the crawl.
WARCS_PER_DAY = 18


def day_estimate(settings: Settings) -> Estimate:
    """Return what a usual day of the crawl costs under the settings."""
    warcs = settings.ccnews.max_warcs or WARCS_PER_DAY
    return estimate([None] * warcs, workers=settings.ccnews.workers)


def pause_text(store: ObjectStore, settings: Settings) -> str:
    """Return what a person should know about a paused root; empty if it is not paused."""
    if not is_paused(store):
        return ""
    return (
        "paused: nothing is collected. `news-platform resume` starts all sensors: they collect the "
        f"newest day of the crawl and then each new day ({day_estimate(settings)}), poll the feeds "
        "and survey the domains that you have added"
    )
