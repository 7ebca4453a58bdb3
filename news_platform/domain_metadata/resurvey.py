"""Decide which domains to survey again today, and write their research files.

A domain is due an interval after its last survey, sooner if that survey found a change. Domains
that wait in the queue or in a research file that is not queued yet are never due, so a plan that
was killed is not made twice. At most `per_day` domains are planned per day, in turn from each
country, the longest overdue first.

Times are compared with care, because a clock may jump. A survey dated into the future counts as
made when that was first noticed: the domain is due an interval later, instead of in that future or
at once.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.domain_surveys import AI_POLICY_CHANGES
from news_platform.datasets.research_datasets import DomainQueueMessage, PartitionInfo
from news_platform.domain_metadata.generated_research import domains_of_file, write_due_files
from news_platform.domain_metadata.queue import QUEUE, DomainQueue
from news_platform.domain_metadata.raw_files import batch_files
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.sql.engine import read_transaction

# Clocks of several machines differ by seconds; a clock that jumps is off by more.
CLOCK_TOLERANCE_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class LastSurvey:
    """The newest message about a domain: its batch, when it was surveyed, and whether it waits.

    `at` is the time of the survey, or else when it was queued; None if that lies in the future,
    which a clock that was ahead has written.
    """

    message_id: int
    domain: str
    batch: str
    at: float | None
    is_open: bool


def last_surveys(engine: sa.Engine, *, now: float) -> list[LastSurvey]:
    """Return the newest message about every domain, in the order of their ids.

    Messages are numbered in the order they came. One that claims to be older than those before it
    was written by a clock that was behind, and counts as being as old as they are.
    """
    latest = now + CLOCK_TOLERANCE_SECONDS
    finished_at = sa.func.coalesce(QUEUE.c.finished_at, 0.0)
    is_future = sa.or_(QUEUE.c.accepted_at > latest, finished_at > latest)
    queued_at = sa.func.max(sa.case((~is_future, QUEUE.c.accepted_at), else_=0.0)).over(
        order_by=QUEUE.c.id, rows=(None, 0)
    )
    later = sa.case((finished_at > queued_at, finished_at), else_=queued_at)
    timed = sa.select(
        QUEUE.c.id,
        QUEUE.c.domain,
        sa.case((~is_future, later)).label("at"),
        sa.case((is_future, QUEUE.c.id), else_=0).label("future_id"),
        sa.case((QUEUE.c.state.in_(("ready", "claimed")), 1), else_=0).label("open"),
    ).subquery()
    ids, future_ids = sa.func.max(timed.c.id), sa.func.max(timed.c.future_id)
    # An earlier survey in the future does not matter once a later one has a time that can be.
    at = sa.case((ids > future_ids, sa.func.max(timed.c.at)))
    columns = (ids.label("id"), at.label("at"), sa.func.max(timed.c.open).label("open"))
    last = sa.select(*columns).group_by(timed.c.domain).subquery()
    rows = sa.select(QUEUE.c.id, QUEUE.c.domain, QUEUE.c.batch, last.c.at, last.c.open)
    with read_transaction(engine) as connection:
        found = connection.execute(rows.join(last, last.c.id == QUEUE.c.id).order_by(QUEUE.c.id))
        return [LastSurvey(*row[:4], is_open=bool(row[4])) for row in found]


def count_repeated(engine: sa.Engine, day: str) -> int:
    """Count the messages of a day's batches about domains that were queued before."""
    earlier = QUEUE.alias()
    was_known = sa.exists().where(earlier.c.domain == QUEUE.c.domain, earlier.c.id < QUEUE.c.id)
    is_of_day = QUEUE.c.batch.like(f"%|{day}")
    counted = sa.select(sa.func.count()).select_from(QUEUE).where(is_of_day, was_known)
    with read_transaction(engine) as connection:
        return connection.execute(counted).scalar_one()


CLOCK_PATH = "domain_queue/clock.json"
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class ResurveyOptions:
    """When a domain is surveyed again, and how many domains per day; 0 days: never."""

    interval_days: float = 7.0
    # A site that has just changed its robots.txt or terms often changes them again.
    changed_days: float = 2.0
    per_day: int = 5_000
    # A domain counts as late only after this: the plan is made every few hours.
    grace_days: float = 1.0


@dataclass(frozen=True, slots=True)
class DueDomain:
    """A domain with the time at which its next survey is due; None while it waits in the queue."""

    last: LastSurvey
    due_at: float | None

    @property
    def country(self) -> str:
        """Return the country of the domain's batch."""
        return self.last.batch.partition("|")[0]


@dataclass(frozen=True, slots=True)
class NoticedJump:
    """When it was noticed that messages up to an id are dated into the future."""

    up_to_id: int
    at: float


@dataclass(frozen=True, slots=True)
class ResurveyPlan:
    """What is due now and what is planned of it; `late` are due for longer than the grace."""

    day: date
    domains: int
    due: int
    late: int
    planned_before: int
    next_due_at: datetime | None
    chosen: tuple[LastSurvey, ...] = field(repr=False, default=())

    @property
    def by_country(self) -> dict[str, int]:
        """Return the number of planned domains by country."""
        counts: dict[str, int] = {}
        for one in self.chosen:
            country = one.batch.partition("|")[0]
            counts[country] = counts.get(country, 0) + 1
        return dict(sorted(counts.items()))

    @property
    def share_in_time(self) -> float:
        """Return the share of domains that are not late."""
        return 1.0 - self.late / self.domains if self.domains else 1.0


def plan_resurvey(
    *, store: ObjectStore, queue: DomainQueue, now: datetime, options: ResurveyOptions
) -> ResurveyPlan:
    """Return which domains to survey again today; nothing is written but the note of a jump."""
    seconds, day = now.timestamp(), now.date()
    last = last_surveys(queue.engine, now=seconds)
    offered = offered_domains(store, queue, since=day - timedelta(days=_days(options)))
    changed = changed_domains(store, since=day - timedelta(days=_days(options)))
    jumps = notice_jumps(store, last, now=seconds)
    known = due_times(last, changed=changed, offered=offered, jumps=jumps, options=options)
    due = [one for one in known if one.due_at is not None and one.due_at <= seconds]
    before = count_repeated(queue.engine, str(day))
    budget = max(0, options.per_day - before) if options.interval_days > 0 else 0
    return ResurveyPlan(
        day,
        len(last),
        len(due),
        sum(_is_late(one, now=seconds, options=options) for one in known),
        before,
        _instant(min((one.due_at for one in known if one.due_at is not None), default=None)),
        tuple(one.last for one in fair_share(due, limit=budget)),
    )


def write_plan(plan: ResurveyPlan, *, store: ObjectStore, queue: DomainQueue) -> dict[str, str]:
    """Write one research file per batch of the plan; return the paths by batch key."""
    messages: Sequence[DomainQueueMessage] = queue.messages_by_id(
        [one.message_id for one in plan.chosen]
    )
    return write_due_files(messages, day=plan.day, store=store)


def due_times(
    last: Iterable[LastSurvey],
    *,
    changed: frozenset[tuple[str, str]],
    offered: frozenset[str],
    jumps: Sequence[NoticedJump],
    options: ResurveyOptions,
) -> list[DueDomain]:
    """Return when each domain is due.

    `changed` has the domain and day of surveys that found a change, `offered` the domains of
    research files that are not queued yet, `jumps` tells when surveys in the future were noticed.
    """
    found: list[DueDomain] = []
    for one in last:
        if one.is_open or one.domain in offered:
            found.append(DueDomain(one, None))
            continue
        at = one.at if one.at is not None else _noticed_at(one, jumps)
        is_changed = (one.domain, one.batch.rpartition("|")[2]) in changed
        days = options.changed_days if is_changed else options.interval_days
        # A batch is a day: a domain cannot be in the batches of one day twice.
        found.append(DueDomain(one, at + max(days, 1.0) * _DAY_SECONDS))
    return found


def _noticed_at(one: LastSurvey, jumps: Sequence[NoticedJump]) -> float:
    return next(jump.at for jump in jumps if one.message_id <= jump.up_to_id)


def fair_share(due: Iterable[DueDomain], *, limit: int) -> list[DueDomain]:
    """Return at most `limit` domains, in turn from each country, the longest overdue first."""
    countries: dict[str, list[DueDomain]] = {}
    for one in sorted(due, key=lambda one: (one.due_at or 0.0, one.last.domain), reverse=True):
        countries.setdefault(one.country, []).append(one)
    chosen: list[DueDomain] = []
    while countries and len(chosen) < limit:
        for country in sorted(countries)[: limit - len(chosen)]:
            chosen.append(countries[country].pop())
            if not countries[country]:
                del countries[country]
    return chosen


def offered_domains(store: ObjectStore, queue: DomainQueue, *, since: date) -> frozenset[str]:
    """Return the domains of research files of recent days that are not in the queue yet.

    An older file that was never accepted is broken; its domains must not wait for it.
    """
    accepted = queue.accepted_paths()
    return frozenset(
        domain
        for key, infos in batch_files(store).items()
        if PartitionInfo.parse(key).date >= since
        for info in infos
        if info.path not in accepted
        for domain in domains_of_file(store, info.path)
    )


def changed_domains(store: ObjectStore, *, since: date) -> frozenset[tuple[str, str]]:
    """Return the domains and days of recent surveys that found a change."""
    rows = ParquetEngine(store, AI_POLICY_CHANGES).scan().select("domain", "date").unique()
    return frozenset(rows.filter(pl.col("date") >= str(since)).collect().iter_rows())


def notice_jumps(
    store: ObjectStore, last: Iterable[LastSurvey], *, now: float
) -> list[NoticedJump]:
    """Return when surveys dated into the future were first noticed, oldest first.

    The times are kept in the store. Those of the surveys are left as they are: if it is today's
    clock that is wrong, they are right again once it is corrected.
    """
    newest = max((one.message_id for one in last if one.at is None), default=0)
    known = _read_jumps(store)
    # What a clock noted that was ahead itself is not trusted.
    jumps = [one for one in known if one.at <= now + CLOCK_TOLERANCE_SECONDS] if newest else []
    if newest > max((one.up_to_id for one in jumps), default=0):
        jumps.append(NoticedJump(newest, now))
    if not jumps and known:
        store.delete([CLOCK_PATH])
    elif jumps != known:
        store.put(CLOCK_PATH, json.dumps([asdict(one) for one in jumps]).encode())
    return jumps


def _read_jumps(store: ObjectStore) -> list[NoticedJump]:
    try:
        found = json.loads(store.read(CLOCK_PATH))
        return [NoticedJump(int(one["up_to_id"]), float(one["at"])) for one in found]
    except (NotFound, ValueError, KeyError, TypeError):
        return []


def _is_late(one: DueDomain, *, now: float, options: ResurveyOptions) -> bool:
    """Return whether a domain is due for longer than the grace, planned or not."""
    if one.due_at is not None:
        return one.due_at + options.grace_days * _DAY_SECONDS < now
    # A domain that waits in the queue is late if it waits for longer than the grace.
    waits_since = one.last.at if one.last.is_open else None
    return waits_since is not None and waits_since + options.grace_days * _DAY_SECONDS < now


def _days(options: ResurveyOptions) -> float:
    return max(options.interval_days, options.changed_days, 1.0) + 1.0


def _instant(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
