"""The drill of docs/cluster.md: a backup taken while a writer goes on, restored elsewhere."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa
import yaml

from news_platform.rss.ledger.tables import FEEDS, SEQUENCE
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform.storage.sql.engine import migrate, open_engine, read_transaction
from news_platform.storage.sql.ledger_backup import backup_ledger, restore_ledger
from news_platform_tests.emulators.postgres import new_database, postgres_server, postgres_tool
from news_platform_tests.emulators.s3 import new_bucket

_NUMBER = "drill/number"


class Platform:
    """A bucket, a ledger and Dagster's storage, and a writer that fills them in this order."""

    def __init__(self, folder: Path, *, s3: str, postgres: str) -> None:
        folder.mkdir()
        options = StoreOptions(
            endpoint_url=s3, access_key="key", secret_key="secret", allow_http=True
        )
        self.store = open_store(f"s3://{new_bucket(s3)}/root", options=options)
        self.ledger = open_engine(new_database(postgres))
        self.dagster_url = new_database(postgres)
        config = {"storage": {"postgres": {"postgres_url": self.dagster_url}}}
        (folder / "dagster.yaml").write_text(yaml.safe_dump(config))
        self.home = folder
        self.written = 0

    def write_one(self, instance: dg.DagsterInstance) -> None:
        """Store an object, then the row that names it, then a run that has seen the row."""
        number = self.written + 1
        self.store.put(f"articles/{number}", str(number).encode())
        with self.ledger.begin() as connection:
            feed = {"feed_url": "x", "feed_url_canon": f"drill-{number}", "status": "on"}
            connection.execute(sa.insert(FEEDS).values(**feed, changed_seq=number))
            connection.execute(sa.update(SEQUENCE).values(value=number))
        run = instance.add_run(dg.DagsterRun(job_name="drill", tags={_NUMBER: str(number)}))
        instance.report_engine_event(f"wrote {number}", run)
        self.written = number

    def ledger_rows(self) -> set[int]:
        """Return the numbers of the rows; the counter, which each changed with it, agrees."""
        with read_transaction(self.ledger) as connection:
            last = connection.execute(sa.select(SEQUENCE.c.value)).scalar_one()
            wanted = sa.select(FEEDS.c.changed_seq).where(FEEDS.c.feed_url_canon.like("drill-%"))
            found = set(connection.execute(wanted).scalars())
        assert found == set(range(1, last + 1))
        return found

    def dagster_runs(self) -> set[int]:
        """Return the numbers of the runs."""
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            return {int(run.tags[_NUMBER]) for run in instance.get_runs()}


@contextmanager
def _writing(platform: Platform) -> Iterator[None]:
    migrate(platform.ledger)
    done = threading.Event()

    def write() -> None:
        with dg.DagsterInstance.from_config(str(platform.home)) as instance:
            while not done.is_set():
                platform.write_one(instance)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while platform.written < 20:
            assert thread.is_alive(), "the writer failed"
            done.wait(0.05)
        yield
    finally:
        done.set()
        thread.join()


def _copy(source: ObjectStore, target: ObjectStore) -> None:
    for info in source.list():
        target.put(info.path, source.read(info.path))


def _libpq(url: str) -> str:
    return url.replace("+psycopg2", "")


@pytest.mark.soak
def test_a_backup_under_load_restores_elsewhere_to_the_same_rows(
    tmp_path: Path, s3_server_url: str, postgres_server_url: str
) -> None:
    here = Platform(tmp_path / "here", s3=s3_server_url, postgres=postgres_server_url)
    dump, archive = tmp_path / "dagster.dump", tmp_path / "ledger.zip"
    with postgres_server() as other_server:
        there = Platform(tmp_path / "there", s3=s3_server_url, postgres=other_server)
        with _writing(here):
            moments = [here.written]
            postgres_tool("pg_dump", "-Fc", "-f", str(dump), _libpq(here.dagster_url))
            moments.append(here.written)
            backup_ledger(here.ledger, archive, world="real", made_at="2025-11-01T00:00:00+00:00")
            moments.append(here.written)
            _copy(here.store, there.store)
        assert moments[0] < moments[1] < moments[2] < here.written, "the writer went on"

        restore_ledger(there.ledger, archive)
        target = ("-d", _libpq(there.dagster_url))
        postgres_tool("pg_restore", "--no-owner", "--exit-on-error", *target, str(dump))
        runs, rows = there.dagster_runs(), there.ledger_rows()
        stored = {int(info.path.rpartition("/")[2]) for info in there.store.list()}
        there.ledger.dispose()
    here.ledger.dispose()
    assert runs == set(range(1, max(runs) + 1)) and moments[0] <= max(runs) <= moments[1] + 1
    assert moments[1] <= max(rows) <= moments[2] + 1
    # Each part is at least as new as the one that names what is in it.
    assert runs <= rows <= stored
