"""Check what the platform stands on: versions, the root, the clock, the disks, open ports."""

import ipaddress
import os
import secrets
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from news_platform.ccnews.pool import estimate
from news_platform.operations.diagnosis import Diagnosis, age_text, ok, skipped, warning, wrong
from news_platform.resources import Resources
from news_platform.storage.commit.collected import followed_days
from news_platform.storage.commit.root import SAMPLE, is_paused, read_world, require_data
from news_platform.text.readable import bytes_text

_PYTHONS = ((3, 11), (3, 13))
_OLDEST_SQLITE = (3, 35, 0)  # the first with RETURNING
_SHOWN_PACKAGES = ("news-platform", "dagster", "polars", "sqlalchemy", "obstore")
# A usual day of the crawl; each WARC has pages of some 45 languages, and four files besides.
_WARCS_PER_DAY, _FILES_PER_WARC = 18, 49
_PLANNED_DAYS = 7
# For ledger, logs and temporary files where nothing is collected.
_LEAST_BYTES, _LEAST_FILES = 1 << 30, 10_000
# S3 refuses requests of a clock that differs by 15 minutes.
_CLOCK_WARNING, _CLOCK_WRONG = 30.0, 300.0
_LISTENING = "0A"
_ANSWER_SECONDS = 3.0
_OURS = ("news_platform", "news-platform", "dagster")

_Shown = Callable[[int], str]
# What is free, the least that must be, and how to show a number of it.
_Free = tuple[int, int, _Shown]


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


def check_root(resources: Resources) -> Diagnosis:
    """Write, read and delete a small object, as every run does."""
    store = resources.data_root.store
    require_data(store)
    world = read_world(store) or "not yet claimed"
    path, body = _probe_path(), b"probe"
    store.put(path, body)
    try:
        is_same = store.read(path) == body
    finally:
        store.delete([path])
    if not is_same:
        return wrong("root", f"{store.url} returns other bytes than it was given", "check the disk")
    text = f"{store.url} ({world}) can be read and written"
    if is_paused(store):
        return warning(
            "root", f"{text}; all sensors are paused", "`news-platform resume` starts them again"
        )
    return ok("root", text)


def _probe_path() -> str:
    # At the top: deleting it leaves no folder behind.
    return f"doctor-{secrets.token_hex(8)}"


def check_clock(resources: Resources) -> Diagnosis:
    """Compare this clock with the one of the object store, by the time of a new object."""
    store = resources.data_root.store
    if store.local_folder is not None:
        return _clock_against_files(store.local_folder)
    path = _probe_path()
    store.put(path, b"clock")
    try:
        modified = store.head(path).modified_at
    finally:
        store.delete([path])
    return _clock_finding(abs((datetime.now(UTC) - modified).total_seconds()), "the store's clock")


def _clock_against_files(folder: Path) -> Diagnosis:
    """Compare with the newest file at the top of the root: none may be from the future."""
    newest = max((path.stat().st_mtime for path in folder.iterdir()), default=0.0)
    ahead = newest - datetime.now(UTC).timestamp()
    return _clock_finding(max(0.0, ahead), "the newest file of the root")


def _clock_finding(seconds: float, other: str) -> Diagnosis:
    text = f"this clock differs from {other} by {age_text(seconds)}"
    if seconds >= _CLOCK_WRONG:
        return wrong("clock", text, "set the clock (NTP), then restart the daemon")
    if seconds >= _CLOCK_WARNING:
        return warning("clock", text, "check that NTP runs")
    return ok("clock", text)


def check_room(resources: Resources) -> Iterator[Diagnosis]:
    """Compare free bytes and inodes with what the next days of the crawl need."""
    store, settings = resources.data_root.store, resources.settings
    warcs = settings.ccnews.max_warcs or _WARCS_PER_DAY
    is_collecting = read_world(store) != SAMPLE and bool(followed_days(store))
    plan = estimate([None] * (warcs if is_collecting else 0), workers=settings.ccnews.workers)
    needed_files = warcs * _FILES_PER_WARC if is_collecting else 0
    if store.local_folder is not None:
        yield _room("disk", store.local_folder, plan.output_bytes, _free_bytes)
        yield _room("inodes", store.local_folder, needed_files, _free_files)
    yield _room("scratch", Path(tempfile.gettempdir()), plan.scratch_bytes, _free_bytes)


def _room(check: str, folder: Path, per_day: int, free_of: Callable[[Path], _Free]) -> Diagnosis:
    free, least, shown = free_of(folder)
    needed = max(per_day, least)
    plan = f"a day of the crawl needs {shown(per_day)}" if per_day else "nothing is planned"
    text = f"{shown(free)} free in {str(folder)!r}; {plan}"
    cure = "free some, use a larger disk, or see `news-platform retention plan`"
    if free < needed:
        return wrong(check, text, cure)
    # Scratch space is used again every day.
    if check != "scratch" and per_day and free < _PLANNED_DAYS * per_day:
        return warning(check, f"{text}; that is less than {_PLANNED_DAYS} days", cure)
    return ok(check, text)


def _free_bytes(folder: Path) -> _Free:
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize, _LEAST_BYTES, bytes_text


def _free_files(folder: Path) -> _Free:
    stat = os.statvfs(folder)
    # Some file systems have no fixed number of inodes and say 0.
    free = stat.f_favail if stat.f_files else sys.maxsize
    return free, _LEAST_FILES, lambda n: "no limit" if n == sys.maxsize else f"{n:,} files"


def check_listeners() -> Diagnosis:
    """Find servers of ours that other machines reach, and that ask nobody for a password."""
    table = Path("/proc/net/tcp")
    if not table.exists():
        return skipped("listeners", "this system does not show open ports in /proc")
    open_ports = _open_ports()
    exposed = sorted(
        f"{address} ({command})"
        for inode, (address, is_loopback) in open_ports.items()
        if not is_loopback
        and (command := _our_command(inode))
        and not _asks_for_a_password(address)
    )
    if exposed:
        return wrong(
            "listeners",
            f"open to other machines: {', '.join(exposed)}; whoever reaches them can use them",
            "bind them to 127.0.0.1, or put an authenticating proxy before them (docs/cluster.md)",
        )
    return ok("listeners", "other machines reach no server of the platform without a password")


def _asks_for_a_password(address: str) -> bool:
    """Return whether a server refuses a request without credentials, as the explorer can."""
    host, _, port = address.rpartition(":")
    # A server on all addresses answers on loopback, too.
    target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    connection = HTTPConnection(target, int(port), timeout=_ANSWER_SECONDS)
    try:
        connection.request("HEAD", "/", headers={"Host": "localhost"})
        return connection.getresponse().status == HTTPStatus.UNAUTHORIZED
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _open_ports() -> dict[str, tuple[str, bool]]:
    """Return the address of every listening socket by its inode, and whether it is loopback."""
    found: dict[str, tuple[str, bool]] = {}
    for name in ("tcp", "tcp6"):
        table = Path(f"/proc/net/{name}")
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            if fields[3] == _LISTENING:
                host, port = _address(fields[1])
                found[fields[9]] = (f"{host}:{port}", host.is_loopback)
    return found


def _address(text: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    """Parse an address of /proc/net/tcp: words of 4 bytes, each in the machine's byte order."""
    host, _, port = text.partition(":")
    raw = bytes.fromhex(host)
    words = [raw[start : start + 4] for start in range(0, len(raw), 4)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    address = ipaddress.ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address, int(port, 16)


def _our_command(inode: str) -> str:
    """Return the command of the process that holds a socket, if it is one of ours."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            links = {os.readlink(link) for link in (process / "fd").iterdir()}  # noqa: PTH115 - a socket is no path
            words = (process / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:  # gone, or of another user
            continue
        if f"socket:[{inode}]" in links:
            named = [word for word in words if any(name in word for name in _OURS)]
            return f"{Path(named[0]).name[:60]}, process {process.name}" if named else ""
    return ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"
