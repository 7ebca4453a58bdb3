"""The checks of feeds and their articles, and the sensors that report silence and matches."""

import os
from collections.abc import Iterable, Mapping
from datetime import timedelta

import dagster as dg

from news_platform.datasets.feeds import ARTICLES, FEEDS
from news_platform.defs.alerts import Alert, post_message
from news_platform.defs.checks import check
from news_platform.defs.rebuild_rules import Platform
from news_platform.defs.sensors import skip_reason
from news_platform.errors import ConfigError, FetchError, hide_addresses
from news_platform.resources import Resources, open_full_texts, work_options
from news_platform.rss.feed_alarms import (
    UntoldAlarms,
    find_alarms,
    mark_told,
    untold_alarms,
    update_alarms,
)
from news_platform.rss.ledger.status import doubled_main_rows, missing_full_texts, overdue_locks
from news_platform.rss.saved_queries.pipeline import run_saved_queries
from news_platform.rss.saved_queries.query_file import webhook_variables
from news_platform.text.readable import number_of

_SHOWN = 10
# Older articles were checked when they were new, and every file costs a storage request.
_CHECKED_DAYS = 2
# What an alert says has begun, and what has healed, by kind of alarm: of one, and of more.
_BEGUN: Mapping[str, tuple[str, str]] = {
    "silent": (
        "1 feed is silent against its own rhythm",
        "{n} feeds are silent against their own rhythm",
    ),
    "failing": (
        "1 feed has failed for a day or is gone",
        "{n} feeds have failed for a day or are gone",
    ),
    "listing": ("the list of feeds retires nothing until a person confirms it",) * 2,
    "unreachable": ("most feeds that were added could not be reached",) * 2,
    "text_share": (
        "1 source no longer gives texts; its pages may have changed",
        "{n} sources no longer give texts; their pages may have changed",
    ),
}
_HEALED: Mapping[str, tuple[str, str]] = {
    "silent": ("1 silent feed has entries again", "{n} silent feeds have entries again"),
    "failing": (
        "1 failing feed answers again or was removed",
        "{n} failing feeds answer again or were removed",
    ),
    "listing": ("the list of feeds is followed again",) * 2,
    "unreachable": ("most feeds that were added could be reached",) * 2,
    "text_share": ("1 source gives texts again", "{n} sources give texts again"),
}


@check(FEEDS)
def feeds_keep_their_rhythm(resources: Resources, _key: str) -> Iterable[str]:
    """No active feed has been silent for several times its usual gap between entries.

    If red: `news-platform feeds why FEED` shows the last polls of a feed. Its publisher may have
    moved it, or publishes less than before.
    """
    return _alarms(resources, "silent")


@check(FEEDS)
def feeds_answer(resources: Resources, _key: str) -> Iterable[str]:
    """No feed has failed for a day or is gone, and feeds.opml names most feeds that it named.

    If red: `news-platform feeds why FEED` shows what failed. Pause or remove feeds that are gone.
    Mend feeds.opml, or confirm it by `news-platform feeds import FILE --retire`.
    """
    return _alarms(resources, "failing", "listing", "unreachable")


@check(ARTICLES)
def sources_keep_their_texts(resources: Resources, _key: str) -> Iterable[str]:
    """No source gives far fewer articles with a text than in the week before.

    If red: the source has probably changed its pages. Look at some of its articles; give its feed a
    CSS selector for the body, then `news-platform rss reextract --source SOURCE`.
    """
    return _alarms(resources, "text_share")


def _alarms(resources: Resources, *kinds: str) -> Iterable[str]:
    found = find_alarms(
        resources.ledger.engine,
        now=resources.clock.now(),
        kinds=kinds,
    )
    return [f"{alarm.thing}: {alarm.detail}" for alarm in found]


@check(ARTICLES)
def no_url_hash_twice_as_main_row(resources: Resources, _key: str) -> Iterable[str]:
    """No two main rows have the same url_hash.

    If red: the ledger has lost its unique index. Stop the workers (`news-platform pause`) and
    restore the index or a backup of the ledger; then `rss export` writes the tables again.
    """
    return doubled_main_rows(resources.ledger.engine)


@check(ARTICLES)
def every_stored_row_has_its_full_text(resources: Resources, _key: str) -> Iterable[str]:
    """Every article stored in the last two days has its full text where its row says.

    If red: files were deleted by hand, or FULLTEXT_DIR was changed. Restore the setting or the
    files. To fetch articles again, set their status to `pending` in the ledger.
    """
    since = resources.clock.now() - timedelta(days=_CHECKED_DAYS)
    texts = open_full_texts(resources.data_root)
    return missing_full_texts(resources.ledger.engine, texts, since=since)


@check(ARTICLES)
def no_lock_older_than_its_lease(resources: Resources, _key: str) -> Iterable[str]:
    """No article is still leased by a worker that has died.

    If red: no worker has run since one died. Check that the schedule `run_articles` is on and that
    the root is not paused; the next run takes the articles over.
    """
    lease = work_options(resources.settings.rss).lease_seconds
    now, engine = resources.clock.now(), resources.ledger.engine
    return overdue_locks(engine, lease_seconds=lease, now=now)


def alarm_text(told: UntoldAlarms) -> str:
    """Return the line that chat systems show: how many, and the first of them."""
    one, many = (_HEALED if told.is_healed else _BEGUN)[told.kind]
    details = {thing: detail for thing, _, detail in told.alarms}
    shown = [
        thing if told.is_healed else f"{thing} ({details[thing]})" for thing in told.things[:_SHOWN]
    ]
    more = len(details) - len(shown)
    pattern = one if len(details) == 1 else many
    return f"{pattern.format(n=len(details))}: {', '.join(shown)}{f' and {more} more' * (more > 0)}"


@dg.sensor(
    name="watch_feeds",
    description="Reports feeds and sources that went silent, once each, and their recovery.",
    minimum_interval_seconds=900,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def watch_feeds(context: dg.SensorEvaluationContext, platform: Platform) -> dg.SkipReason:
    """Compare all feeds with their rhythm and report what has begun or healed since the last tick.

    All alarms of one kind are one message: an outage of our own network is not a thousand.
    """
    if reason := skip_reason(platform.data_root.store):
        return reason
    engine, now = platform.ledger.engine, platform.clock.now()
    found = find_alarms(engine, now=now)
    update_alarms(engine, found, now=now)
    failures = []
    for told in untold_alarms(engine):
        asset = "articles" if told.kind == "text_share" else "feeds"
        alert = Alert(alarm_text(told), assets=asset)
        (context.log.info if told.is_healed else context.log.error)(
            "ALERT %s", hide_addresses(alert.text)
        )
        try:
            post_message(platform.settings, alert)
        except (FetchError, ConfigError) as error:
            # Not marked as told: the next tick sends it again.
            failures.append(str(error))
        else:
            mark_told(engine, told, now=now)
    state = number_of(len(found), "alarm is", "alarms are") + " open"
    return dg.SkipReason("; ".join([state, *dict.fromkeys(failures)]))


@dg.sensor(
    name="notify_of_matches",
    description="Compares new articles with the saved queries and delivers their matches.",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def notify_of_matches(platform: Platform) -> dg.SkipReason:
    """Run the saved queries beside all runs, so that a slow webhook keeps nothing waiting."""
    if reason := skip_reason(platform.data_root.store):
        return reason
    report = run_saved_queries(
        platform.ledger.engine,
        platform.data_root.store,
        path=platform.settings.newsroom.saved_queries,
        variables=webhook_variables(os.environ),
        clock=platform.clock.now,
    )
    if not report.queries:
        return dg.SkipReason("there are no saved queries")
    failures = "".join(
        f"; {name}: " + ", ".join(f"{count} {reason}" for reason, count in counts.items())
        for name, counts in report.delivery.failures.items()
    )
    return dg.SkipReason(
        f"{report.queries} queries, {report.found.articles} articles compared, "
        f"{sum(report.found.matches.values())} new matches, {report.delivery.delivered} delivered, "
        f"{report.delivery.failed} failed, {report.delivery.given_up} given up{failures}"
    )
