"""Check what the platform depends on: machine, root, ledger, crawl, sheet, feeds, workers."""

import enum
import os
import secrets
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from news_platform.ccnews.checks import read_footers, row_problems
from news_platform.ccnews.pool import estimate
from news_platform.composition.pausing import day_estimate, pause_text
from news_platform.datasets.corpus import DELTA_TABLES
from news_platform.datasets.raw_news import listing_path
from news_platform.errors import FetchError, NewsPlatformError, StorageError, redacted
from news_platform.operations.ledger_facts import open_ledger
from news_platform.resources import Resources, sheets_access
from news_platform.rss.feed_alarms import find_alarms
from news_platform.rss.ledger.status import require_articles
from news_platform.storage.commit.collected import followed_days, newest_collected_days
from news_platform.storage.commit.root import SAMPLE, read_world, require_data
from news_platform.storage.delta import DeltaEngine
from news_platform.storage.sql.engine import ledger_url, open_engine, shown_url, sqlite_path
from news_platform.storage.sql.sqlite_file import lock_holders
from news_platform.text.readable import age_text, bytes_text, number_of
from news_platform.web.allowed_hosts import is_loopback

_PYTHONS = ((3, 11), (3, 13))
_OLDEST_SQLITE = (3, 35, 0)  # the first with RETURNING
_SHOWN_PACKAGES = ("news-platform", "dagster", "polars", "sqlalchemy", "obstore")
# Each WARC has pages of some 45 languages, and four files besides.
_FILES_PER_WARC = 49
_PLANNED_DAYS = 7
# For ledger, logs and temporary files where nothing is collected.
_LEAST_BYTES, _LEAST_FILES = 1 << 30, 10_000
# S3 refuses requests of a clock that differs by 15 minutes.
_CLOCK_WARNING, _CLOCK_WRONG = 30.0, 300.0
_ANSWER_SECONDS = 3.0
# Our own transactions take less.
_LOCK_SECONDS = 5.0
_SHOWN_COMMAND = 120
_OURS = ("news_platform", "news-platform", "dagster")
# People wait: older days are read by the nightly checks.
_NEWEST_DAYS, _READ_SECONDS = 31, 5.0
_SHOWN = 3


class Health(enum.StrEnum):
    """How a thing is; only WRONG makes the doctor fail."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The state of one thing. `action` says what to do; empty if nothing is to be done."""

    check: str
    state: Health
    meaning: str
    action: str = ""


def ok(check: str, meaning: str) -> Diagnosis:
    """Return that a thing is as it should be."""
    return Diagnosis(check, Health.OK, meaning)


def skipped(check: str, meaning: str) -> Diagnosis:
    """Return that a thing does not apply, or could not be checked."""
    return Diagnosis(check, Health.SKIPPED, meaning)


def warning(check: str, meaning: str, action: str) -> Diagnosis:
    """Return that a thing works, but wants somebody to look."""
    return Diagnosis(check, Health.WARNING, meaning, action)


def wrong(check: str, meaning: str, action: str) -> Diagnosis:
    """Return that a thing does not work."""
    return Diagnosis(check, Health.WRONG, meaning, action)


def check_versions() -> Diagnosis:
    """Check Python and SQLite, and name the versions of what matters most."""
    shown = ", ".join(f"{name} {_version(name)}" for name in _SHOWN_PACKAGES)
    python = ".".join(map(str, sys.version_info[:3]))
    text = f"{shown}, Python {python}, SQLite {sqlite3.sqlite_version}"
    if not _PYTHONS[0] <= sys.version_info[:2] <= _PYTHONS[1]:
        return wrong("versions", text, "use Python 3.11 to 3.13")
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        return wrong("versions", text, "use a Python with SQLite 3.35 or later")
    return ok("versions", text)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def check_root(resources: Resources) -> Diagnosis:
    """Write, read and delete a small object, as every run does; a read-only root is only read."""
    store = resources.data_root.store
    require_data(store)
    world = read_world(store) or "not yet claimed"
    if store.local_folder is not None and not os.access(store.local_folder, os.W_OK):
        text = f"{store.url} ({world}) can be read, but not written"
        return warning("root", text, "to collect or remove anything, mount it writable")
    path, body = _probe_path(), b"probe"
    store.put(path, body)
    try:
        is_same = store.read(path) == body
    finally:
        store.delete([path])
    if not is_same:
        return wrong("root", f"{store.url} returns other bytes than it was given", "check the disk")
    text = f"{store.url} ({world}) can be read and written"
    if pause := pause_text(store, resources.settings):
        return warning("root", text, pause)
    return ok("root", text)


def _probe_path() -> str:
    # At the top: deleting it leaves no folder behind.
    return f"doctor-{secrets.token_hex(8)}"


def check_tables(resources: Resources) -> Diagnosis:
    """Open the newest version of every Delta table."""
    store = resources.data_root.store
    for table in DELTA_TABLES:
        try:
            DeltaEngine(store, table).require_readable()
        except StorageError as error:
            return wrong("tables", f"{table.name} cannot be opened", str(error))
    return ok("tables", "every Delta table can be opened")


def check_days(resources: Resources) -> Diagnosis:
    """Compare the files of the newest days of the crawl with their markers, newest first."""
    store, began, read = resources.data_root.store, time.monotonic(), 0
    for day in newest_collected_days(store, count=_NEWEST_DAYS):
        if problems := row_problems(store, read_footers(store, day=day), day=day):
            return wrong(
                "days",
                f"{day} is not as it was collected: {problems[0]}",
                "see 'A corrupt day' in docs/runbook.md",
            )
        read += 1
        if time.monotonic() - began > _READ_SECONDS:
            break
    if not read:
        return skipped("days", "no day of the crawl is collected yet")
    return ok("days", f"the newest {read} days of the crawl are stored as they were collected")


def check_clock(resources: Resources) -> Diagnosis:
    """Compare this clock with the one of the object store, by the time of a new object."""
    store = resources.data_root.store
    if store.local_folder is not None:
        # Both clocks are the same one, but no file of the root may be from the future.
        newest = max((path.stat().st_mtime for path in store.local_folder.iterdir()), default=0.0)
        seconds = max(0.0, newest - datetime.now(UTC).timestamp())
        return _clock_finding(seconds, "the newest file of the root")
    path = _probe_path()
    store.put(path, b"clock")
    try:
        modified = store.head(path).modified_at
    finally:
        store.delete([path])
    return _clock_finding(abs((datetime.now(UTC) - modified).total_seconds()), "the store's clock")


def _clock_finding(seconds: float, other: str) -> Diagnosis:
    text = f"this clock differs from {other} by {age_text(seconds)}"
    if seconds >= _CLOCK_WRONG:
        return wrong("clock", text, "set the clock (NTP), then restart the daemon")
    if seconds >= _CLOCK_WARNING:
        return warning("clock", text, "check that NTP runs")
    return ok("clock", text)


def check_space(resources: Resources) -> Iterator[Diagnosis]:
    """Compare free bytes and inodes with what the next days of the crawl need."""
    store, settings = resources.data_root.store, resources.settings
    is_collecting = read_world(store) != SAMPLE and bool(followed_days(store))
    plan = day_estimate(settings) if is_collecting else estimate([], workers=1)
    if (folder := store.local_folder) is not None:
        stat = os.statvfs(folder)
        yield space_finding("disk", folder, stat.f_bavail * stat.f_frsize, plan.output_bytes)
        # Some file systems have no fixed number of inodes and report 0.
        free = stat.f_favail if stat.f_files else sys.maxsize
        yield space_finding("inodes", folder, free, plan.warcs * _FILES_PER_WARC)
    scratch = Path(tempfile.gettempdir())
    yield space_finding(
        "scratch", scratch, psutil.disk_usage(str(scratch)).free, plan.scratch_bytes
    )


def space_finding(check: str, folder: Path, free: int, per_day: int) -> Diagnosis:
    """Judge what is free in a folder against what a day of the crawl takes."""
    shown, least = (_files, _LEAST_FILES) if check == "inodes" else (bytes_text, _LEAST_BYTES)
    plan = f"a day of the crawl needs {shown(per_day)}" if per_day else "nothing is planned"
    text = f"{shown(free)} free in {str(folder)!r}; {plan}"
    cure = "free some, use a larger disk, or see `news-platform retention plan`"
    if free < max(per_day, least):
        return wrong(check, text, cure)
    # Scratch space is used again every day.
    if check != "scratch" and per_day and free < _PLANNED_DAYS * per_day:
        return warning(check, f"{text}; that is less than {_PLANNED_DAYS} days", cure)
    return ok(check, text)


def _files(count: int) -> str:
    return "no limit" if count == sys.maxsize else f"{count:,} files"


def check_listeners() -> Diagnosis:
    """Find servers of ours that other machines reach without a password."""
    exposed = sorted(
        f"{host}:{port} ({command})"
        for host, port, command in _listeners()
        if not is_loopback(host) and not _asks_for_a_password(host, port)
    )
    if exposed:
        return wrong(
            "listeners",
            f"open to other machines: {', '.join(exposed)}; anyone who reaches them can use them",
            "bind them to 127.0.0.1, or put an authenticating proxy before them (docs/cluster.md)",
        )
    return ok("listeners", "other machines reach no server of the platform without a password")


def _listeners() -> Iterator[tuple[str, int, str]]:
    """Yield the host, the port and the command of our processes that listen."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or ()
        named = [word for word in words if any(name in word for name in _OURS)]
        try:
            sockets = process.net_connections("tcp") if named else ()
        except psutil.Error:  # gone, or of another user
            continue
        for one in sockets:
            if one.status == psutil.CONN_LISTEN:
                command = f"{Path(named[0]).name[:60]}, process {process.pid}"
                yield one.laddr.ip, one.laddr.port, command


def _asks_for_a_password(host: str, port: int) -> bool:
    """Return whether a server refuses a request without credentials, as the explorer can."""
    # A server on all addresses answers on loopback, too.
    target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    connection = HTTPConnection(target, port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("HEAD", "/", headers={"Host": "localhost"})
        return connection.getresponse().status == HTTPStatus.UNAUTHORIZED
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def check_ledger(resources: Resources) -> Diagnosis:
    """Open the ledger, compare its revision, and see that it is the one of this root."""
    with open_ledger(resources) as engine:
        if engine is not None:
            require_articles(engine, resources.data_root.store)
            if (file := sqlite_path(engine.url)) and _is_locked(file):
                return wrong(
                    "ledger",
                    f"{file} has been locked for over {_LOCK_SECONDS:.0f} s by {_holders(file)}",
                    "see 'A locked ledger' in docs/runbook.md; what waits is retried by itself",
                )
            return ok("ledger", f"{shown_url(engine.url)} is reachable and up to date")
    _refuse_lost_ledger(resources)
    return skipped("ledger", "there is none yet; the first command that needs it makes it")


def _is_locked(file: Path) -> bool:
    """Return whether another process keeps all others from writing; nothing is changed."""
    with closing(sqlite3.connect(file, timeout=_LOCK_SECONDS, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            return error.sqlite_errorcode == sqlite3.SQLITE_BUSY
    return False


def _holders(file: Path) -> str:
    """Name the processes that hold the lock."""
    names = []
    for pid in lock_holders(file):
        with suppress(psutil.Error):
            command = " ".join(psutil.Process(pid).cmdline())
            names.append(f"process {pid} ({redacted(command)[:_SHOWN_COMMAND]})")
    return ", ".join(names) or "a process of another machine or user"


def _refuse_lost_ledger(resources: Resources) -> None:
    store = resources.data_root.store
    engine = open_engine(ledger_url(store.url, resources.settings.ledger_url))
    try:
        require_articles(engine, store)
    finally:
        engine.dispose()


def check_crawl(resources: Resources) -> Diagnosis:
    """Look up this month's listing of the crawl."""
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


def check_sheet(resources: Resources) -> Diagnosis:
    """Use the account of the Google Sheet once."""
    access = sheets_access(resources.settings.sheets)
    if access is None:
        return skipped("sheet", "no Google Sheet is set; the local workbook takes its place")
    # Imported here: only a sheet that is set pays for Google's libraries.
    from news_platform.rss.sheets.books import CallTiming
    from news_platform.rss.sheets.google import ApiClient, find_spreadsheet

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
            now=resources.clock.now(),
            kinds=("silent", "failing", "listing", "unreachable"),
        )
    if not found:
        return ok("feeds", "no feed is silent, gone or failing for long")
    first = "; ".join(f"{one.thing}: {one.detail}" for one in found[:_SHOWN])
    judge = wrong if any(one.kind == "unreachable" for one in found) else warning
    return judge(
        "feeds",
        f"{number_of(len(found), 'feed is', 'feeds are')} silent, gone or failing: {first}",
        "`news-platform feeds why URL` explains each; see docs/runbook.md, Feeds and articles",
    )


def check_workers(resources: Resources) -> Diagnosis:
    """Ask the Celery workers whether they live, and count what waits in their queues."""
    if resources.settings.cluster.broker_url is None:
        return skipped("workers", "no broker is set: runs are processes of this machine")
    # Imported here: Celery is installed only on clusters.
    try:
        from news_platform.cluster.queues import read_queues
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
