"""Leases on SQLite and PostgreSQL: exclusive claims, fencing, renewal, expiry and release."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.storage.sql.engine import ledger_url, open_engine, read_transaction
from news_platform.storage.sql.leases import (
    LeaseTable,
    LeaseTerm,
    are_held,
    claim_named,
    claim_rows,
    is_expired,
    is_held,
    is_owned,
    release,
    release_named,
    renew,
)

METADATA = sa.MetaData()
TASKS = sa.Table(
    "tasks",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("worker", sa.Text),
    sa.Column("time", sa.Double),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
)
WRITERS = sa.Table(
    "writers",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("until", sa.DateTime(timezone=True), nullable=False),
)
BY_END = LeaseTable(
    key=TASKS.c.id,
    time=TASKS.c.time,
    owner=TASKS.c.worker,
    attempt=TASKS.c.attempt,
    state=TASKS.c.state,
    held_state="held",
)
BY_START = replace(BY_END, stores="start")
WITHOUT_STATE = LeaseTable(key=TASKS.c.id, time=TASKS.c.time)
NAMED = LeaseTable(key=WRITERS.c.name, time=WRITERS.c.until, owner=WRITERS.c.owner)
both_kinds = pytest.mark.parametrize("lease", [BY_END, BY_START], ids=["end", "start"])


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    """Return a database of each kind in turn with three free tasks."""
    is_sqlite = request.param == "sqlite"
    url = ledger_url(str(tmp_path), None) if is_sqlite else request.getfixturevalue("postgres_url")
    engine = open_engine(url)
    METADATA.create_all(engine)
    with engine.begin() as connection:
        rows = [{"id": n, "state": "free", "attempt": 0, "tries": 0} for n in (1, 2, 3)]
        connection.execute(sa.insert(TASKS), rows)
    yield engine
    engine.dispose()


def claim(
    engine: sa.Engine, lease: LeaseTable, *, owner: str = "w", now: float = 0.0, limit: int = 9
) -> list[tuple[int, int]]:
    """Claim tasks for 10 seconds; return their keys and attempts, sorted."""
    is_free = sa.or_(TASKS.c.state == "free", is_expired(lease, now=now, seconds=10))
    picked = sa.select(TASKS.c.id).where(is_free).order_by(TASKS.c.id).limit(limit)
    columns, tried = (TASKS.c.id, TASKS.c.attempt), {"tries": TASKS.c.tries + 1}
    term = LeaseTerm(now, 10, owner)
    with engine.begin() as connection:
        return sorted(
            (key, attempt)
            for key, attempt in claim_rows(
                connection, lease, picked, term=term, returning=columns, values=tried
            )
        )


def keys_where(engine: sa.Engine, condition: sa.ColumnElement[bool]) -> list[int]:
    with read_transaction(engine) as connection:
        chosen = sa.select(TASKS.c.id).where(condition).order_by(TASKS.c.id)
        return list(connection.execute(chosen).scalars())


@both_kinds
def test_a_claim_takes_free_rows_up_to_its_limit_and_counts(
    engine: sa.Engine, lease: LeaseTable
) -> None:
    assert claim(engine, lease, limit=2) == [(1, 1), (2, 1)]
    assert claim(engine, lease) == [(3, 1)]
    assert claim(engine, lease) == []
    with read_transaction(engine) as connection:
        rows = connection.execute(sa.select(TASKS).where(TASKS.c.id == 1)).all()
    end_or_start = 10.0 if lease is BY_END else 0.0
    assert [tuple(row) for row in rows] == [(1, "held", "w", end_or_start, 1, 1)]


@both_kinds
@pytest.mark.parametrize(("now", "taken"), [(9.9, []), (10.0, [(1, 2)])])
def test_a_lease_expires_at_its_end(
    engine: sa.Engine, lease: LeaseTable, now: float, taken: list[tuple[int, int]]
) -> None:
    claim(engine, lease)
    assert claim(engine, lease, owner="next", now=now, limit=1) == taken


@both_kinds
def test_an_owner_whose_lease_was_taken_over_is_fenced_off(
    engine: sa.Engine, lease: LeaseTable
) -> None:
    claim(engine, lease, limit=1)
    late = is_held(lease, 1, attempt=1, owner="w")
    # An expired lease that nobody claimed is still held.
    assert keys_where(engine, is_expired(lease, now=50.0, seconds=10)) == [1]
    assert keys_where(engine, late) == [1]
    claim(engine, lease, now=11.0, limit=1)
    assert keys_where(engine, late) == []
    assert keys_where(engine, is_held(lease, 1, attempt=2, owner="w")) == [1]
    assert keys_where(engine, is_held(lease, 1, attempt=2, owner="other")) == []
    assert keys_where(engine, are_held(lease, [(1, 1), (2, 1)])) == []
    with engine.begin() as connection:
        assert release(connection, lease, late, values={"state": "done"}) == 0


@both_kinds
def test_a_renewed_lease_starts_over(engine: sa.Engine, lease: LeaseTable) -> None:
    claim(engine, lease, limit=2)
    claim(engine, lease, owner="other")
    with engine.begin() as connection:
        term = LeaseTerm(8.0, 10)
        assert renew(connection, lease, is_owned(lease, "w"), term=term) == 2
    assert keys_where(engine, is_expired(lease, now=17.9, seconds=10)) == [3]
    assert keys_where(engine, is_expired(lease, now=18.0, seconds=10)) == [1, 2, 3]


@both_kinds
def test_released_rows_are_no_longer_held(engine: sa.Engine, lease: LeaseTable) -> None:
    claims = claim(engine, lease)
    with engine.begin() as connection:
        done = are_held(lease, claims[:2])
        assert release(connection, lease, done, values={"state": "done", "worker": None}) == 2
    assert keys_where(engine, are_held(lease, claims)) == [3]
    assert keys_where(engine, TASKS.c.state == "done") == [1, 2]
    assert keys_where(engine, is_owned(lease, "w")) == [3]


def test_without_states_a_row_that_was_never_leased_is_free(engine: sa.Engine) -> None:
    picked = sa.select(TASKS.c.id).where(is_expired(WITHOUT_STATE, now=0.0)).limit(2)
    with engine.begin() as connection:
        term = LeaseTerm(0.0, 10)
        claim_rows(connection, WITHOUT_STATE, picked, term=term, returning=[TASKS.c.id])
    assert len(keys_where(engine, is_expired(WITHOUT_STATE, now=9.0))) == 1
    assert len(keys_where(engine, is_expired(WITHOUT_STATE, now=10.0))) == 3


def test_of_many_who_claim_at_once_each_row_goes_to_one(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        rows = [{"id": n, "state": "free", "attempt": 0, "tries": 0} for n in range(10, 90)]
        connection.execute(sa.insert(TASKS), rows)
    start = threading.Barrier(4)

    def claim_all(number: int) -> list[int]:
        start.wait()
        mine: list[int] = []
        while claims := claim(engine, BY_END, owner=f"w{number}", limit=3):
            mine += [key for key, _attempt in claims]
        return mine

    with ThreadPoolExecutor(4) as pool:
        taken = [key for keys in pool.map(claim_all, range(4)) for key in keys]
    assert sorted(taken) == [1, 2, 3, *range(10, 90)]


NOW = datetime(2025, 11, 1, tzinfo=UTC)


def named(engine: sa.Engine, owner: str, *, after: float = 0.0) -> bool:
    with engine.begin() as connection:
        term = LeaseTerm(NOW + timedelta(seconds=after), 60, owner)
        return claim_named(connection, NAMED, "book", term)


@pytest.mark.parametrize(("after", "free"), [(59, False), (60, True)])
def test_a_named_lease_keeps_others_out_until_it_ends(
    engine: sa.Engine, after: int, free: bool
) -> None:
    assert named(engine, "one")
    assert named(engine, "two", after=after) is free
    assert named(engine, "one", after=after) is not free


def test_a_released_name_is_free_at_once_but_only_its_owner_can_release_it(
    engine: sa.Engine,
) -> None:
    assert named(engine, "one")
    with engine.begin() as connection:
        release_named(connection, NAMED, "book", "two")
    assert not named(engine, "two")
    with engine.begin() as connection:
        release_named(connection, NAMED, "book", "one")
    assert named(engine, "two")


def test_of_many_who_claim_a_new_name_at_once_one_gets_it(engine: sa.Engine) -> None:
    start = threading.Barrier(4)

    def first(number: int) -> bool:
        start.wait()
        return named(engine, f"w{number}")

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(first, range(4))) == 1
