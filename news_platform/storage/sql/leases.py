"""Leases on table rows: claim, renew, release and expire them, on SQLite and on PostgreSQL.

A lease gives one owner a row until a moment; after that anyone may claim the row. Where the table
has an `attempt` column, every claim increases it: an owner that returns after its lease was taken
over finds another number (a fencing token) and changes nothing.

A claim is one UPDATE … RETURNING. It is exclusive on SQLite because every write transaction opens
with BEGIN IMMEDIATE, and on PostgreSQL because the rows are picked by FOR UPDATE SKIP LOCKED.

The name of an owner tells others on its machine whether its process is gone: a killed one releases
nothing, and its leases would be waited for until they expire. The name has the machine (boot and
process namespace), the process id and its start time, because ids are reused. Where there is no
/proc, nobody is ever found to be gone.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
# Counted from the end of the command name, which may itself contain spaces: field 22 of proc(5).
_START_FIELD = 19
# Seconds since the epoch, or an aware datetime: whatever the table's time column stores.
Instant = float | datetime
Condition = sa.ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class LeaseTable:
    """The columns of a table that hold its leases.

    `time` holds the end of the lease, or its start if `stores` is "start". A table with a `state`
    column has `held_state` in it while a lease runs.
    """

    key: sa.Column[Any]
    time: sa.Column[Any]
    stores: Literal["start", "end"] = "end"
    owner: sa.Column[Any] | None = None
    attempt: sa.Column[Any] | None = None
    state: sa.Column[Any] | None = None
    held_state: str = ""

    @property
    def table(self) -> sa.Table:
        """Return the table of these columns."""
        table = self.key.table
        assert isinstance(table, sa.Table)
        return table


@dataclass(frozen=True, slots=True)
class LeaseTerm:
    """When a lease starts, how long it lasts, and who gets it."""

    now: Instant
    seconds: float
    owner: str = ""

    @property
    def end(self) -> Instant:
        """Return the moment the lease expires."""
        return _after(self.now, self.seconds)


def claim_rows(
    connection: sa.Connection,
    lease: LeaseTable,
    picked: sa.Select[Any],
    *,
    term: LeaseTerm,
    returning: Iterable[sa.ColumnElement[Any]],
    values: Mapping[str, Any] | None = None,
) -> list[tuple[Any, ...]]:
    """Lease the rows whose keys `picked` selects; return their columns in no defined order.

    `picked` selects the key column of rows that are free, with its order and limit. `values` are
    further columns to set in the same statement.
    """
    # SKIP LOCKED lets concurrent workers take different rows instead of waiting for each other.
    # A CTE is computed once; as a plain subquery PostgreSQL may lock more rows than it updates.
    keys = picked.with_for_update(skip_locked=True).cte("picked")
    claimed = (
        sa.update(lease.table)
        .where(lease.key.in_(sa.select(*keys.c)))
        .values({**_claimed_values(lease, term), **(values or {})})
        .returning(*returning)
    )
    return [tuple(row) for row in connection.execute(claimed)]


def claim_named(connection: sa.Connection, lease: LeaseTable, name: str, term: LeaseTerm) -> bool:
    """Claim the row of this key, creating it if needed; return False while another owner holds it.

    An owner that holds the lease already gets it extended.
    """
    owner = _column(lease.owner)
    row = {lease.key.name: name, **_claimed_values(lease, term)}
    is_free = sa.or_(owner == term.owner, is_expired(lease, now=term.now, seconds=term.seconds))
    # One statement, so that of two first claims at the same moment exactly one returns the row.
    claimed = (
        upsert(connection, lease.table)
        .values(row)
        .on_conflict_do_update(index_elements=[lease.key], set_=row, where=is_free)
        .returning(lease.key)
    )
    return connection.execute(claimed).first() is not None


def release_named(connection: sa.Connection, lease: LeaseTable, name: str, owner: str) -> None:
    """Delete the row of this key if the owner still holds it, so that the next claim succeeds."""
    held = (lease.key == name, _column(lease.owner) == owner)
    connection.execute(sa.delete(lease.table).where(*held))


def is_expired(lease: LeaseTable, *, now: Instant, seconds: float = 0.0) -> Condition:
    """Return the condition for rows whose lease has ended; its last moment is no longer held.

    `seconds` is the length of the leases, needed where the table stores their start. In a table
    without states, a row that was never leased counts as expired too.
    """
    limit = now if lease.stores == "end" else _after(now, -seconds)
    if lease.state is None:
        return sa.or_(lease.time.is_(None), lease.time <= limit)
    return sa.and_(lease.state == lease.held_state, lease.time <= limit)


def is_held(
    lease: LeaseTable, key: object, *, attempt: int | None = None, owner: str | None = None
) -> Condition:
    """Return the condition under which a row is still leased by this attempt and owner.

    An expired lease counts as held until someone claims the row: finished work is not thrown away.
    """
    conditions: list[Condition] = [lease.key == key, *_is_leased(lease)]
    if attempt is not None:
        conditions.append(_column(lease.attempt) == attempt)
    if owner is not None:
        conditions.append(_column(lease.owner) == owner)
    return sa.and_(*conditions)


def are_held(lease: LeaseTable, claims: Iterable[tuple[object, int]]) -> Condition:
    """Return the condition for rows still leased by one of these (key, attempt) pairs."""
    pairs = sa.tuple_(lease.key, _column(lease.attempt)).in_(list(claims))
    return sa.and_(*_is_leased(lease), pairs)


def is_owned(lease: LeaseTable, owner: str) -> Condition:
    """Return the condition for all rows that an owner has leased."""
    return sa.and_(_column(lease.owner) == owner, *_is_leased(lease))


def renew(connection: sa.Connection, lease: LeaseTable, held: Condition, *, term: LeaseTerm) -> int:
    """Restart the leases of the rows that fulfil `held`; return how many."""
    renewed = sa.update(lease.table).where(held).values({lease.time.name: _time(lease, term)})
    return connection.execute(renewed).rowcount


def release(
    connection: sa.Connection, lease: LeaseTable, held: Condition, *, values: Mapping[str, Any]
) -> int:
    """End the leases of the rows that fulfil `held` with these values; return how many."""
    return connection.execute(sa.update(lease.table).where(held).values(values)).rowcount


def upsert(connection: sa.Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """Return an INSERT that accepts ON CONFLICT clauses, for the database of this connection."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def _claimed_values(lease: LeaseTable, term: LeaseTerm) -> dict[str, Any]:
    values: dict[str, Any] = {lease.time.name: _time(lease, term)}
    if lease.owner is not None:
        values[lease.owner.name] = term.owner
    if lease.attempt is not None:
        # Computed by the database: two claims can never get the same number.
        values[lease.attempt.name] = lease.attempt + 1
    if lease.state is not None:
        values[lease.state.name] = lease.held_state
    return values


def _is_leased(lease: LeaseTable) -> list[Condition]:
    return [] if lease.state is None else [lease.state == lease.held_state]


def _time(lease: LeaseTable, term: LeaseTerm) -> Instant:
    return term.end if lease.stores == "end" else term.now


def _after(moment: Instant, seconds: float) -> Instant:
    if isinstance(moment, datetime):
        return moment + timedelta(seconds=seconds)
    return moment + seconds


def _column(column: sa.Column[Any] | None) -> sa.Column[Any]:
    assert column is not None, "this lease table lacks the column"
    return column


def process_owner(name: str) -> str:
    """Return `name` with the identity of this process."""
    machine, started = _machine(), _started(os.getpid())
    return f"{name}@{machine}/{os.getpid()}/{started}" if machine and started else name


def is_gone(owner: str) -> bool:
    """Return whether the owner is a process of this machine that has ended."""
    machine, _, process = owner.rpartition("@")[2].partition("/")
    pid, _, started = process.partition("/")
    if not (machine and machine == _machine() and pid.isdecimal() and started):
        return False
    return _started(int(pid)) != started


def _machine() -> str:
    try:
        namespace = _NAMESPACE.readlink().name.strip("pid:[]")
        return f"{_BOOT.read_text(encoding='ascii').strip()}-{namespace}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return when a process started, in ticks since the boot; empty if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[_START_FIELD].decode("ascii")
