"""The durable queue of domains to survey, in SQL: accept, claim, renew and settle messages.

It works the same on SQLite and PostgreSQL. A claim is a lease with a fencing token: a worker whose
lease was taken over cannot settle the message, because the next claim has a higher `attempt`. Times
are seconds since the epoch.

    ready ──claim──▶ claimed ──settle──▶ done      a final outcome
      ▲                │  │ └──settle──▶ unfinished  given up for this run, reopened by the next
      └──postpone──────┘  └──lease expires──▶ may be claimed again
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from news_platform.datasets.dataset import Role
from news_platform.datasets.research_datasets import DomainQueueMessage
from news_platform.storage.chunks import chunked
from news_platform.storage.sql.engine import ScrubbedText, read_transaction
from news_platform.storage.sql.leases import (
    LeaseTable,
    LeaseTerm,
    are_held,
    claim_rows,
    is_expired,
    is_gone,
    is_held,
    is_owned,
    release,
    renew,
    upsert,
)

METADATA = sa.MetaData()
# `attempt` counts all claims of a message and is its fencing token; `tries` counts the claims of
# the current run and limits its retries.
QUEUE = sa.Table(
    "domain_queue",
    METADATA,
    # SQLite numbers rows only by a column of this type.
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("batch", ScrubbedText, nullable=False),
    # Takedowns remove and verify rows by these roles.
    sa.Column("domain", ScrubbedText, nullable=False, info={"role": Role.domain}),
    sa.Column("message", ScrubbedText, nullable=False, info={"role": Role.links}),
    sa.Column("state", ScrubbedText, nullable=False),
    sa.Column("accepted_at", sa.Double, nullable=False),
    sa.Column("due_at", sa.Double, nullable=False),
    sa.Column("worker", ScrubbedText),
    sa.Column("lease_until", sa.Double),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("outcome", ScrubbedText),
    sa.Column("finished_at", sa.Double),
    sa.UniqueConstraint("batch", "domain", name="domain_queue_batch_domain"),
    sa.Index("domain_queue_due", "batch", "state", "due_at", "id"),
    sa.Index("domain_queue_domain", "domain"),
)
_LEASES = LeaseTable(
    key=QUEUE.c.id,
    time=QUEUE.c.lease_until,
    owner=QUEUE.c.worker,
    attempt=QUEUE.c.attempt,
    state=QUEUE.c.state,
    held_state="claimed",
)
FILES = sa.Table(
    "research_files",
    METADATA,
    sa.Column("path", ScrubbedText, primary_key=True),
    sa.Column("batch", ScrubbedText, nullable=False),
    sa.Column("sha256", ScrubbedText, nullable=False),
    sa.Column("records", sa.Integer, nullable=False),
    sa.Column("messages", sa.Integer, nullable=False),
    sa.Column("dropped", sa.Integer, nullable=False),
    sa.Column("accepted_at", sa.Double, nullable=False),
)


@dataclass(frozen=True, slots=True)
class AcceptedFile:
    """A research file whose domains are in the queue."""

    path: str
    batch: str
    sha256: str
    records: int
    messages: int
    dropped: int


@dataclass(frozen=True, slots=True)
class MessageClaim:
    """A message leased to one worker; `tries` counts the tries of this run, including this one."""

    id: int
    attempt: int
    tries: int
    leased_until: float
    message: DomainQueueMessage


@dataclass(frozen=True, slots=True)
class SettledClaim:
    """The end of a claim: a `final` outcome is done, any other is retried by the next run."""

    claim: MessageClaim
    outcome: str
    final: bool


@dataclass(frozen=True, slots=True)
class BatchBacklog:
    """The unsettled messages of a batch, and the earliest time at which one can be claimed."""

    messages: int
    next_at: float | None


class DomainQueue:
    """The queue in a ledger. Each method is one transaction and may be called from any thread."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @property
    def engine(self) -> sa.Engine:
        """Return the engine of the ledger, for modules that only read the queue."""
        return self._engine

    def accept(
        self, file: AcceptedFile, messages: Sequence[DomainQueueMessage], *, at: float
    ) -> int:
        """Insert all messages of a file; return how many of its domains are new to the batch."""
        rows = [_row(message, at) for message in messages]
        with self._engine.begin() as connection:
            # The row count of many inserts with ON CONFLICT is not reliable: compare the sizes.
            before = self._size(connection, file.batch)
            if rows:
                connection.execute(upsert(connection, QUEUE).on_conflict_do_nothing(), rows)
            accepted = dict(_columns(file), accepted_at=at)
            connection.execute(upsert(connection, FILES).on_conflict_do_nothing(), accepted)
            return self._size(connection, file.batch) - before

    def accepted_file(self, path: str) -> AcceptedFile | None:
        """Return the record of a file, or None if it was never accepted."""
        columns = [column for column in FILES.c if column.name != "accepted_at"]
        with read_transaction(self._engine) as connection:
            row = connection.execute(sa.select(*columns).where(FILES.c.path == path)).first()
        return AcceptedFile(**row._mapping) if row else None

    def claim(
        self, batch: str, *, worker: str, limit: int, now: float, lease_seconds: float
    ) -> list[MessageClaim]:
        """Claim up to `limit` messages: first those due, then those with expired leases."""
        due = sa.and_(QUEUE.c.state == "ready", QUEUE.c.due_at <= now)
        term = LeaseTerm(now, lease_seconds, worker)
        rows: list[tuple[Any, ...]] = []
        with self._engine.begin() as connection:
            # Two queries instead of one OR: each of them reads in the order of an index.
            for is_free in (due, is_expired(_LEASES, now=now)):
                if len(rows) < limit:
                    picked = _picked(batch, is_free, limit=limit - len(rows))
                    rows += _claim(connection, picked, term)
        parse, until = DomainQueueMessage.model_validate_json, now + lease_seconds
        return [
            MessageClaim(id_, attempt, tries, until, parse(text))
            for id_, attempt, tries, text in rows
        ]

    def expire_gone(self, batch: str, *, now: float) -> int:
        """End the leases of processes of this machine that were killed; return how many."""
        held = sa.and_(
            QUEUE.c.batch == batch, QUEUE.c.state == "claimed", QUEUE.c.lease_until > now
        )
        with self._engine.begin() as connection:
            owners = connection.execute(sa.select(QUEUE.c.worker).where(held).distinct()).scalars()
            gone = [owner for owner in owners if owner and is_gone(owner)]
            ended = sa.update(QUEUE).where(held, QUEUE.c.worker.in_(gone)).values(lease_until=now)
            return connection.execute(ended).rowcount if gone else 0

    def renew(self, worker: str, *, now: float, lease_seconds: float) -> None:
        """Extend every lease of a worker that has not expired yet."""
        held = sa.and_(is_owned(_LEASES, worker), ~is_expired(_LEASES, now=now))
        with self._engine.begin() as connection:
            renew(connection, _LEASES, held, term=LeaseTerm(now, lease_seconds))

    def holds(self, claim: MessageClaim, *, now: float) -> bool:
        """Return whether the claim is still held: not taken over, and its lease has not expired."""
        ours = sa.select(QUEUE.c.id).where(_is(claim), ~is_expired(_LEASES, now=now))
        with read_transaction(self._engine) as connection:
            return connection.execute(ours).first() is not None

    def settle(self, settled: Iterable[SettledClaim], *, at: float) -> int:
        """Record how claims ended; skip those that were taken over and return how many were not."""
        # Most messages of a batch end with the same outcome: one statement settles all of those.
        alike: dict[tuple[str, bool], list[tuple[int, int]]] = {}
        for one in settled:
            claim = (one.claim.id, one.claim.attempt)
            alike.setdefault((one.outcome, one.final), []).append(claim)
        with self._engine.begin() as connection:
            return sum(
                release(
                    connection,
                    _LEASES,
                    are_held(_LEASES, claims),
                    values=_settled_values(outcome, final, at=at),
                )
                for (outcome, final), claims in alike.items()
            )

    def postpone(self, claim: MessageClaim, *, due_at: float, outcome: str) -> bool:
        """Release a claim for another try at `due_at`; return whether it was still held."""
        values = {"state": "ready", "due_at": due_at, "outcome": outcome, "worker": None}
        with self._engine.begin() as connection:
            return release(connection, _LEASES, _is(claim), values=values) == 1

    def reopen(self, batch: str, *, now: float) -> int:
        """Make the unfinished messages of earlier runs ready again; return how many.

        A retry that a wrong clock put off by more than a day is due now.
        """
        put_off = sa.and_(QUEUE.c.state == "ready", QUEUE.c.due_at > now + 86_400)
        is_left = sa.or_(QUEUE.c.state == "unfinished", put_off)
        reopened = sa.update(QUEUE).where(QUEUE.c.batch == batch, is_left)
        with self._engine.begin() as connection:
            return connection.execute(reopened.values(state="ready", tries=0, due_at=now)).rowcount

    def finished(self, batch: str) -> list[str]:
        """Return the domains of a batch that have a final outcome."""
        done = sa.select(QUEUE.c.domain).where(QUEUE.c.batch == batch, QUEUE.c.state == "done")
        with read_transaction(self._engine) as connection:
            return list(connection.execute(done).scalars())

    def reopen_finished(self, batch: str, domains: Sequence[str], *, now: float) -> int:
        """Make finished domains of a batch ready again in one transaction; return how many."""
        reopened = sa.update(QUEUE).where(
            QUEUE.c.batch == batch,
            QUEUE.c.state == "done",
            QUEUE.c.domain == sa.bindparam("reopened_domain"),
        )
        with self._engine.begin() as connection:
            return sum(
                connection.execute(
                    reopened.values(state="ready", tries=0, due_at=now), {"reopened_domain": domain}
                ).rowcount
                for domain in domains
            )

    def waiting(self, batch: str) -> BatchBacklog:
        """Return the unsettled messages of a batch."""
        open_ = sa.and_(QUEUE.c.batch == batch, QUEUE.c.state.in_(("ready", "claimed")))
        free_at = sa.case((QUEUE.c.state == "ready", QUEUE.c.due_at), else_=QUEUE.c.lease_until)
        with read_transaction(self._engine) as connection:
            row = connection.execute(sa.select(sa.func.count(), sa.func.min(free_at)).where(open_))
            count, next_at = row.one()
        return BatchBacklog(count, next_at)

    def outcomes(self, batch: str) -> dict[str, int]:
        """Count the outcomes of a batch; messages without one count as `waiting`."""
        outcome = sa.func.coalesce(QUEUE.c.outcome, "waiting")
        counted = (
            sa.select(outcome, sa.func.count()).where(QUEUE.c.batch == batch).group_by(outcome)
        )
        with read_transaction(self._engine) as connection:
            rows = connection.execute(counted).all()
        return {name: count for name, count in sorted(rows)}

    def states(self) -> dict[str, Counter[str]]:
        """Count the messages of every batch by state."""
        counted = sa.select(QUEUE.c.batch, QUEUE.c.state, sa.func.count())
        with read_transaction(self._engine) as connection:
            rows = connection.execute(counted.group_by(QUEUE.c.batch, QUEUE.c.state)).all()
        found: dict[str, Counter[str]] = {}
        for batch, state, count in sorted(rows):
            found.setdefault(batch, Counter())[state] = count
        return found

    def messages(self, batch: str) -> list[DomainQueueMessage]:
        """Return all messages of a batch in the order they were accepted."""
        rows = sa.select(QUEUE.c.message).where(QUEUE.c.batch == batch).order_by(QUEUE.c.id)
        return self._parsed(rows)

    def messages_of(self, domain: str) -> list[DomainQueueMessage]:
        """Return the messages about a domain, latest day first."""
        rows = sa.select(QUEUE.c.message).where(QUEUE.c.domain == domain)
        # A batch of an earlier day may have been accepted after one of a later day.
        found = self._parsed(rows.order_by(QUEUE.c.id.desc()))
        return sorted(found, key=lambda message: message.partition_info.date, reverse=True)

    def messages_by_id(self, ids: Sequence[int]) -> list[DomainQueueMessage]:
        """Return the messages with these ids, in the order they were accepted."""
        found: list[DomainQueueMessage] = []
        for part in chunked(ids):
            chosen = sa.select(QUEUE.c.message).where(QUEUE.c.id.in_(part))
            found += self._parsed(chosen.order_by(QUEUE.c.id))
        return found

    def accepted_paths(self) -> frozenset[str]:
        """Return the paths of all accepted research files."""
        with read_transaction(self._engine) as connection:
            return frozenset(connection.execute(sa.select(FILES.c.path)).scalars())

    def _parsed(self, rows: sa.Select[str]) -> list[DomainQueueMessage]:
        with read_transaction(self._engine) as connection:
            texts = [text for (text,) in connection.execute(rows)]
        return [DomainQueueMessage.model_validate_json(text) for text in texts]

    def _size(self, connection: sa.Connection, batch: str) -> int:
        counted = sa.select(sa.func.count()).where(QUEUE.c.batch == batch)
        return connection.execute(counted).scalar_one()


def _row(message: DomainQueueMessage, at: float) -> dict[str, object]:
    return {
        "batch": message.partition_info.key,
        "domain": message.registrable_domain,
        "message": message.model_dump_json(),
        "state": "ready",
        "accepted_at": at,
        "due_at": 0.0,
        "attempt": 0,
        "tries": 0,
    }


def _columns(file: AcceptedFile) -> dict[str, object]:
    return {name: getattr(file, name) for name in AcceptedFile.__slots__}


def _is(claim: MessageClaim) -> sa.ColumnElement[bool]:
    return is_held(_LEASES, claim.id, attempt=claim.attempt)


def _picked(batch: str, is_free: sa.ColumnElement[bool], *, limit: int) -> sa.Select[int]:
    chosen = sa.select(QUEUE.c.id).where(QUEUE.c.batch == batch, is_free)
    return chosen.order_by(QUEUE.c.due_at, QUEUE.c.id).limit(limit)


def _claim(
    connection: sa.Connection, picked: sa.Select[int], term: LeaseTerm
) -> list[tuple[Any, ...]]:
    columns = (QUEUE.c.id, QUEUE.c.attempt, QUEUE.c.tries, QUEUE.c.message)
    tried = {"tries": QUEUE.c.tries + 1}
    return claim_rows(connection, _LEASES, picked, term=term, returning=columns, values=tried)


def _settled_values(outcome: str, final: bool, *, at: float) -> dict[str, Any]:
    state = "done" if final else "unfinished"
    return {"state": state, "outcome": outcome, "finished_at": at, "worker": None}


# A survey that stored nothing, or whose files were damaged, leaves its place to the one before.
_EARLIER_KEPT = 5


def earlier_batches(engine: sa.Engine, batch: str) -> dict[str, list[str]]:
    """Return, for each domain of a batch, its surveyed batches of days before, the latest first."""
    day = batch.rpartition("|")[2]
    dated = sa.func.substr(QUEUE.c.batch, sa.func.length(QUEUE.c.batch) - len(day) + 1)
    of_batch = sa.select(QUEUE.c.domain).where(QUEUE.c.batch == batch)
    place = sa.func.row_number().over(
        partition_by=QUEUE.c.domain, order_by=(dated.desc(), QUEUE.c.batch.desc())
    )
    rows = (
        sa.select(QUEUE.c.domain, QUEUE.c.batch, place.label("place"))
        .where(QUEUE.c.domain.in_(of_batch), QUEUE.c.finished_at.is_not(None), dated < day)
        .subquery()
    )
    chosen = sa.select(rows.c.domain, rows.c.batch).where(rows.c.place <= _EARLIER_KEPT)
    found: dict[str, list[str]] = {}
    with read_transaction(engine) as connection:
        for domain, key in connection.execute(chosen.order_by(rows.c.domain, rows.c.place)):
            found.setdefault(domain, []).append(key)
    return found
