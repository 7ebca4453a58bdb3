"""What every test has: no network beyond loopback, and stores, servers and data by name."""

import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform_tests.emulators.fault_proxy import FaultProxy, fault_proxy
from news_platform_tests.emulators.sharing import shared_folder

pytest_plugins = [
    "news_platform_tests.sample.fixtures",
    "news_platform_tests.servers.demo",
    "news_platform_tests.servers.wheel",
]

# Fast enough for a test, slow enough to be a wait.
_BACKOFF_SECONDS = 0.01

# Files that start a daemon, a cluster or a browser, or that take a minute; `make test-live` runs
# them.
LIVE = frozenset(
    {
        "ccnews/test_live_daemon.py",
        "cluster/test_live.py",
        "cluster/test_real_graph.py",
        "server/test_pages.py",
        "servers/test_dev.py",
        "servers/test_finished_demo.py",
        "servers/test_planted_secrets_live.py",
        "servers/test_roles.py",
        "year/test_month.py",
    }
)
# Files whose tests wait for the demo or take 20 seconds. Started last, each would leave the other
# workers idle.
LONGEST_FIRST = (
    "test_demo_metadata.py",
    "year/test_year.py",
    "ccnews/test_pool.py",
    "isolation/test_pool_faults.py",
    "source_records/test_pipeline.py",
    "cli/test_demo.py",
    "test_definitions.py",
    "cli/test_fuzz.py",
)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the live tests, and move the longest files to the front."""
    for item in items:
        if _name(item) in LIVE:
            item.add_marker(pytest.mark.live)
    items.sort(key=_start_order)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line per reason what was skipped."""
    skipped = (report.longrepr for report in terminalreporter.stats.get("skipped", ()))
    reasons = Counter(str(one[2]) for one in skipped if isinstance(one, tuple))
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason.removeprefix('Skipped: ')}")


def _name(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).as_posix()


def _start_order(item: pytest.Item) -> int:
    name = _name(item)
    return LONGEST_FIRST.index(name) if name in LONGEST_FIRST else len(LONGEST_FIRST)


class NetworkRefused(RuntimeError):
    """A test tried to leave this machine."""


@pytest.fixture(autouse=True, scope="session")
def _loopback_only() -> Iterator[None]:
    """Refuse every connection of Python's that leaves this machine.

    Native clients open sockets of their own; their tests give them loopback addresses.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
        yield


@pytest.fixture(autouse=True)
def _sigterm_ends_processes() -> None:
    """Undo what a library left: an ignored SIGTERM is inherited by every process a test starts."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _no_instance_of_another_test() -> None:
    """Forget the instance that Dagster keeps in a context variable after a test has closed it."""
    module = sys.modules.get("dagster._core.storage.defs_state.base")
    if module is not None:
        module._current_storage.set(None)


def _guarded(connect: Callable[..., int | None]) -> Callable[..., int | None]:
    def guarded(self: socket.socket, address: object) -> int | None:
        if isinstance(address, tuple) and not _is_loopback(str(address[0])):
            raise NetworkRefused(f"a test may not connect to {address!r}")
        return connect(self, address)

    return guarded


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


@pytest.fixture(scope="session")
def bench_data() -> Path:
    """Return the folder of real inputs; skip where there is none."""
    folder = os.environ.get("NEWS_PLATFORM_BENCH_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real inputs: set NEWS_PLATFORM_BENCH_DATA to their folder")
    return Path(folder)


@pytest.fixture
def local_store(tmp_path: Path) -> ObjectStore:
    """Return an empty store in a local folder that does not exist yet."""
    return open_store(str(tmp_path / "root"))


@pytest.fixture(scope="session")
def s3_server_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the one S3 emulator of the session."""
    from news_platform_tests.emulators.s3 import shared_s3_url

    return shared_s3_url(shared_folder(tmp_path_factory))


@pytest.fixture(scope="session")
def gcs_server_url(s3_server_url: str) -> Iterator[str]:
    """Run one Google Cloud Storage shim for the whole session."""
    from news_platform_tests.emulators.gcs import gcs_server

    with gcs_server(s3_server_url) as url:
        yield url


@pytest.fixture
def bucket(s3_server_url: str) -> str:
    """Return a fresh bucket, known to the S3 emulator and to the Google shim."""
    from news_platform_tests.emulators.s3 import new_bucket

    return new_bucket(s3_server_url)


@pytest.fixture
def s3_faults(s3_server_url: str) -> Iterator[tuple[FaultProxy, str]]:
    """Run a fault proxy before the S3 emulator; give it and its URL."""
    with fault_proxy(s3_server_url) as running:
        yield running


@pytest.fixture
def gs_faults(gcs_server_url: str) -> Iterator[tuple[FaultProxy, str]]:
    """Run a fault proxy before the Google shim; give it and its URL."""
    with fault_proxy(gcs_server_url) as running:
        yield running


@pytest.fixture
def s3_store(s3_faults: tuple[FaultProxy, str], bucket: str) -> ObjectStore:
    """Return an empty store in the S3 emulator, behind the fault proxy `s3_faults`."""
    options = StoreOptions(
        endpoint_url=s3_faults[1],
        access_key="test-key",
        secret_key="test-secret",
        allow_http=True,
        backoff_seconds=_BACKOFF_SECONDS,
    )
    return open_store(f"s3://{bucket}/root", options=options)


@pytest.fixture
def gs_store(gs_faults: tuple[FaultProxy, str], bucket: str) -> ObjectStore:
    """Return an empty store in the Google shim, behind the fault proxy `gs_faults`."""
    from news_platform_tests.emulators.gcs import service_account_key

    options = StoreOptions(
        service_account_key=service_account_key(gs_faults[1]),
        allow_http=True,
        backoff_seconds=_BACKOFF_SECONDS,
    )
    return open_store(f"gs://{bucket}/root", options=options)


@pytest.fixture(params=["local", "s3", "gs"])
def any_store(request: pytest.FixtureRequest) -> ObjectStore:
    """Return an empty store of each kind in turn."""
    store = request.getfixturevalue(f"{request.param}_store")
    assert isinstance(store, ObjectStore)
    return store


@pytest.fixture(scope="session")
def postgres_server_url() -> Iterator[str]:
    """Run one PostgreSQL server for all workers of the session."""
    from news_platform_tests.emulators.postgres import postgres_server, shared_postgres_folder

    with postgres_server(shared_postgres_folder()) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server_url: str) -> str:
    """Return the URL of an empty PostgreSQL database."""
    from news_platform_tests.emulators.postgres import new_database

    return new_database(postgres_server_url)
