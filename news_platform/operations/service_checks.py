"""Check what the platform talks to: the ledger, the crawl, the sheet, feeds and workers."""

import time
from collections.abc import Iterator

from news_platform.resources import (alarm_options)
from news_platform.datasets.warc_paths import listing_path
from news_platform.errors import FetchError, NewsPlatformError, StorageError
from news_platform.operations.checks import (Diagnosis, ok, skipped, warning, wrong)
from news_platform.operations.ledger_facts import open_ledger
from news_platform.resources import Resources, sheets_access
from news_platform.rss.feed_alarms import find_alarms
from news_platform.rss.ledger.status import require_articles
from news_platform.storage.sql.engine import ledger_url, open_engine, shown_url

_SHOWN = 3


def check_ledger_state(resources: Resources) -> Diagnosis:
    """Open the ledger, compare its revision, and see that it is the one of this root."""
    with open_ledger(resources) as engine:
        if engine is None:
            _require_articles(resources)
            return skipped("ledger", "there is none yet; the first command that needs it makes it")
        require_articles(engine, resources.data_root.store)
        return ok("ledger", f"{shown_url(engine.url)} is reachable and up to date")


def _require_articles(resources: Resources) -> None:
    store = resources.data_root.store
    engine = open_engine(ledger_url(store.url, resources.settings.ledger_url))
    try:
        require_articles(engine, store)
    finally:
        engine.dispose()


def check_credentials(resources: Resources) -> Iterator[Diagnosis]:
    """Use each account once: the crawl's and the sheet's. The root's was used to write to it."""
    yield _crawl(resources)
    yield _sheet(resources)


def _crawl(resources: Resources) -> Diagnosis:
    store, month = resources.crawl.store, resources.clock.now().date().replace(day=1)
    path = listing_path(month)
    try:
        found = store.find(path)
    except StorageError as error:
        return wrong(
            "crawl",
            f"{store.url} cannot be read: {error}",
            "check the network, NEWS_PLATFORM_CRAWL_URL and its credentials; runs retry by "
            "themselves",
        )
    if found is None:
        return warning(
            "crawl",
            f"{store.url} answers, but has no listing {path!r}",
            "on the first of a month that is usual; else check NEWS_PLATFORM_CRAWL_URL",
        )
    return ok("crawl", f"{store.url} lists this month")


def _sheet(resources: Resources) -> Diagnosis:
    access = sheets_access(resources.settings.sheets)
    if access is None:
        return skipped("sheet", "no Google Sheet is set; the local workbook takes its place")
    # Imported here: only a sheet that is set pays for Google's libraries.
    from news_platform.rss.sheets.access import CallTiming
    from news_platform.rss.sheets.api_client import ApiClient
    from news_platform.rss.sheets.google import find_spreadsheet

    try:
        book = find_spreadsheet(ApiClient(access, CallTiming(time.monotonic, time.sleep)))
    except FetchError as error:
        return wrong("sheet", f"Google refuses: {error}", "check the service account and its key")
    if book is not None:
        return ok("sheet", f"the account can open the spreadsheet {book.title!r}")
    if access.spreadsheet_id:
        cure = "share it with the service account's address, or correct its id"
        return wrong("sheet", "the spreadsheet is gone, or not shared with our account", cure)
    return ok("sheet", "the account works; the first sync creates the spreadsheet")


def check_feeds(resources: Resources) -> Diagnosis:
    """Find feeds that are silent against their own rhythm, or fail for long."""
    with open_ledger(resources) as engine:
        if engine is None:
            return skipped("feeds", "there is no ledger yet")
        found = find_alarms(
            engine,
            options=alarm_options(resources.settings),
            now=resources.clock.now(),
            kinds=("silent", "failing"),
        )
    if not found:
        return ok("feeds", "no feed is silent or failing for long")
    first = "; ".join(f"{one.thing}: {one.detail}" for one in found[:_SHOWN])
    return warning(
        "feeds",
        f"{len(found)} feeds are silent or failing: {first}",
        "`news-platform feeds why URL` explains each; see docs/runbook.md, Feeds and articles",
    )


def check_workers(resources: Resources) -> Diagnosis:
    """Ask the Celery workers whether they live, and count what waits in their queues."""
    if resources.settings.cluster.broker_url is None:
        return skipped("workers", "no broker is set: runs are processes of this machine")
    # Imported here: Celery is installed only on clusters.
    try:
        from news_platform.cluster.queues import (read_queues)
    except ImportError as error:
        cure = "install news-platform with its extra `cluster`"
        return wrong("workers", f"the package {error.name!r} is missing", cure)

    try:
        queues = read_queues(resources.settings.cluster)
    except NewsPlatformError as error:
        return wrong("workers", str(error), "check NEWS_PLATFORM_BROKER_URL and the Redis server")
    waiting = ", ".join(f"{name}: {count} waiting" for name, count in queues.waiting.items())
    idle = sorted(name for name in queues.waiting if name not in queues.served)
    if idle:
        return wrong(
            "workers",
            f"no worker serves {', '.join(idle)} ({waiting})",
            "start workers: `celery -A news_platform.cluster.app worker -Q heavy,light`",
        )
    return ok("workers", f"{len(queues.workers)} workers answer; {waiting}")
