"""Find feeds and sources that went silent, and remember which of these alarms people know of.

An alarm begins when its condition is first seen, and heals when it is gone. An open alarm is judged
by what was usual before it began, and what only hides the condition does not heal it. Each
beginning and each healing is told once: whoever tells it marks it as told afterwards, so that a
message that failed is sent again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import sqlalchemy as sa

from news_platform.rss.feed_list import LISTING_PROBLEM
from news_platform.rss.ledger.feed_rows import POLLED
from news_platform.rss.ledger.tables import CONFIG, FEED_ALARMS, FEEDS, RAW
from news_platform.rss.ledger.transactions import found_between
from news_platform.storage.sql.engine import read_transaction

AlarmKind = Literal["silent", "failing", "listing", "text_share"]
KINDS: tuple[AlarmKind, ...] = ("silent", "failing", "listing", "text_share")
# The publisher says that the feed will not come back: only a person ends its alarms.
_IS_GONE = sa.and_(FEEDS.c.status == "gone", FEEDS.c.last_status == 410)


@dataclass(frozen=True, slots=True)
class AlarmOptions:
    """When silence is an alarm."""

    # Of the usual gap between two entries.
    silence_factor: float = 5.0
    # Many sites publish nothing at night or on Sundays.
    silence_hours: float = 24.0
    # Most outages of a site are shorter.
    failing_hours: float = 24.0
    # Of the usual share of articles with text: below it, a redesign has broken the extraction.
    text_share_fall: float = 0.5
    # Shares are compared over these days, of at least so many articles.
    recent_days: float = 2.0
    usual_days: float = 7.0
    recent_articles: int = 5
    usual_articles: int = 20
    # A source that rarely has texts cannot lose them.
    usual_share: float = 0.5
    text_characters: int = 200


@dataclass(frozen=True, slots=True)
class FeedAlarm:
    """Something that should not be silent: a feed by its address, or a source by its domain."""

    kind: AlarmKind
    thing: str
    detail: str


def find_alarms(
    engine: sa.Engine, *, options: AlarmOptions, now: datetime, kinds: Sequence[str] = KINDS
) -> list[FeedAlarm]:
    """Return all alarms of these kinds, sorted."""
    finders = {
        "silent": _silent_feeds,
        "failing": _failing_feeds,
        "listing": _refused_listing,
        "text_share": _textless_sources,
    }
    with read_transaction(engine) as connection:
        known = {(kind, thing): began_at for kind, thing, began_at in _open_alarms(connection)}
        found = [
            alarm
            for kind in kinds
            for alarm in finders[kind](
                connection,
                {thing: began_at for (own, thing), began_at in known.items() if own == kind},
                options=options,
                now=now,
            )
        ]
    return sorted(found, key=lambda alarm: (alarm.kind, alarm.thing))


def _open_alarms(connection: sa.Connection) -> list[tuple[str, str, datetime]]:
    alarms = FEED_ALARMS.c
    chosen = sa.select(alarms.kind, alarms.thing, alarms.began_at)
    rows = connection.execute(chosen.where(alarms.healed_at.is_(None)))
    return [(kind, thing, began_at) for kind, thing, began_at in rows]


def _silent_feeds(
    connection: sa.Connection,
    known: Mapping[str, datetime],
    *,
    options: AlarmOptions,
    now: datetime,
) -> Iterator[FeedAlarm]:
    """Yield feeds that answer, but have had no entry for long by their own rhythm.

    A silent feed that begins to fail or is gone stays a silent one.
    """
    is_answering = sa.and_(FEEDS.c.status == "active", FEEDS.c.failing_since.is_(None))
    chosen = sa.select(
        FEEDS.c.feed_url_canon,
        FEEDS.c.last_entry_date,
        FEEDS.c.usual_gap_seconds,
        is_answering.label("is_answering"),
    ).where(
        sa.or_(FEEDS.c.status.in_(POLLED), _IS_GONE),
        FEEDS.c.usual_gap_seconds > 0,
        FEEDS.c.last_entry_date < now - timedelta(hours=options.silence_hours),
    )
    for url, newest, gap, answers in connection.execute(chosen):
        if is_silent(newest, gap, options=options, now=now) and (answers or url in known):
            silent_seconds = (now - newest).total_seconds()
            detail = f"no entry for {_hours(silent_seconds)}, usually one every {_hours(gap)}"
            yield FeedAlarm("silent", url, detail)


def is_silent(
    newest: datetime | None, usual_gap_seconds: float, *, options: AlarmOptions, now: datetime
) -> bool:
    """Return whether a feed has been silent for much longer than its own rhythm."""
    if newest is None or not usual_gap_seconds:
        return False
    usual = timedelta(seconds=options.silence_factor * usual_gap_seconds)
    return now - newest > max(usual, timedelta(hours=options.silence_hours))


def _failing_feeds(
    connection: sa.Connection,
    _known: Mapping[str, datetime],
    *,
    options: AlarmOptions,
    now: datetime,
) -> Iterator[FeedAlarm]:
    failing = FEEDS.c.failing_since <= now - timedelta(hours=options.failing_hours)
    columns = (FEEDS.c.feed_url_canon, FEEDS.c.failing_since, FEEDS.c.last_status, FEEDS.c.status)
    is_alarm = sa.or_(sa.and_(FEEDS.c.status.in_(POLLED), failing), _IS_GONE)
    for url, since, answer, status in connection.execute(sa.select(*columns).where(is_alarm)):
        if status == "gone":
            detail = (
                "its site says 410 Gone: `feeds remove` ends the alarm, `feeds resume` polls it"
            )
        else:
            last = f"status {answer}" if answer else "no answer"
            detail = f"polls fail for {_hours((now - since).total_seconds())}, last: {last}"
        yield FeedAlarm("failing", url, detail)


def _refused_listing(
    connection: sa.Connection,
    _known: Mapping[str, datetime],
    *,
    options: AlarmOptions,
    now: datetime,
) -> Iterator[FeedAlarm]:
    """Yield the root's list of feeds if it would retire so many that a person is to confirm it."""
    problem = sa.select(CONFIG.c.value).where(CONFIG.c.key == LISTING_PROBLEM, CONFIG.c.value != "")
    for detail in connection.execute(problem).scalars():
        yield FeedAlarm("listing", "feeds.opml", detail)


def _textless_sources(
    connection: sa.Connection,
    known: Mapping[str, datetime],
    *,
    options: AlarmOptions,
    now: datetime,
) -> Iterator[FeedAlarm]:
    """Yield sources whose pages gave texts until recently: their template has changed."""
    usual = _shares_before(connection, now, options)
    recent = _text_shares(connection, now - timedelta(days=options.recent_days), now, options)
    for source, (articles, share) in recent.items():
        usual_articles, usual_share = usual.get(source, (0, 0.0))
        if source in known:
            # Its usual share is by now that of the changed template: look at what was before.
            before = _shares_before(connection, known[source], options, source=source)
            _, usual_share = before.get(source, (0, 0.0))
            is_alarm = share < options.text_share_fall * usual_share
        else:
            is_known = usual_articles >= options.usual_articles
            is_alarm = (
                is_known
                and usual_share >= options.usual_share
                and articles >= options.recent_articles
                and share < options.text_share_fall * usual_share
            )
        if is_alarm:
            detail = f"{share:.0%} of {articles} articles have a text, usually {usual_share:.0%}"
            yield FeedAlarm("text_share", source, detail)
    # Without a new article nothing shows that its pages have been mended.
    for source in known.keys() & usual.keys() - recent.keys():
        yield FeedAlarm("text_share", source, "no article was read since")


def _shares_before(
    connection: sa.Connection, moment: datetime, options: AlarmOptions, *, source: str = ""
) -> dict[str, tuple[int, float]]:
    """Return the shares that were usual for an alarm at this moment."""
    recent_from = moment - timedelta(days=options.recent_days)
    usual_from = recent_from - timedelta(days=options.usual_days)
    return _text_shares(connection, usual_from, recent_from, options, source=source)


def _text_shares(
    connection: sa.Connection,
    start: datetime,
    end: datetime,
    options: AlarmOptions,
    *,
    source: str = "",
) -> dict[str, tuple[int, float]]:
    """Return the articles that were read, and the share whose page gave a text, by source."""
    has_text = sa.and_(RAW.c.clean_text_len >= options.text_characters, RAW.c.text_source != "feed")
    # A duplicate proves nothing about its page, and neither does a page that was not fetched.
    was_read = sa.or_(RAW.c.status == "stored", RAW.c.status == "error")
    chosen = (
        sa.select(RAW.c.source, sa.func.count(), sa.func.sum(sa.case((has_text, 1), else_=0)))
        .where(was_read, *found_between(connection, start, end))
        .group_by(RAW.c.source)
    )
    if source:
        chosen = chosen.where(RAW.c.source == source)
    return {name: (n, texts / n) for name, n, texts in connection.execute(chosen)}


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours / 24:.0f} days" if hours >= 72 else f"{hours:.1f} hours"


def update_alarms(engine: sa.Engine, found: Iterable[FeedAlarm], *, now: datetime) -> None:
    """Record which alarms have begun and which have healed since the last call."""
    alarms, current = FEED_ALARMS.c, {(alarm.kind, alarm.thing): alarm for alarm in found}
    with engine.begin() as connection:
        is_open = alarms.healed_at.is_(None)
        known = {(kind, thing) for kind, thing, _ in _open_alarms(connection)}
        new = [
            {"kind": one.kind, "thing": one.thing, "began_at": now, "detail": one.detail}
            for key, one in current.items()
            if key not in known
        ]
        if new:
            connection.execute(sa.insert(FEED_ALARMS), new)
        for kind, thing in known - current.keys():
            one = (alarms.kind == kind, alarms.thing == thing, is_open)
            connection.execute(sa.update(FEED_ALARMS).where(*one).values(healed_at=now))


@dataclass(frozen=True, slots=True)
class UntoldAlarms:
    """Alarms of one kind that have begun, or healed, without anybody having been told."""

    kind: str
    is_healed: bool
    alarms: tuple[tuple[str, datetime, str], ...]

    @property
    def things(self) -> list[str]:
        """Return the feeds or sources, sorted."""
        return sorted(thing for thing, _, _ in self.alarms)


def untold_alarms(engine: sa.Engine) -> list[UntoldAlarms]:
    """Return what is to be told, by kind; an alarm that healed before it was told is no news."""
    alarms = FEED_ALARMS.c
    conditions = {
        False: (alarms.told_at.is_(None), alarms.healed_at.is_(None)),
        True: (
            alarms.told_at.is_not(None),
            alarms.healed_at.is_not(None),
            alarms.healing_told_at.is_(None),
        ),
    }
    untold = []
    with read_transaction(engine) as connection:
        for is_healed, where in conditions.items():
            chosen = sa.select(alarms.kind, alarms.thing, alarms.began_at, alarms.detail)
            by_kind: dict[str, list[tuple[str, datetime, str]]] = {}
            for kind, *alarm in connection.execute(chosen.where(*where).order_by(alarms.thing)):
                by_kind.setdefault(kind, []).append((alarm[0], alarm[1], alarm[2]))
            untold += [UntoldAlarms(kind, is_healed, tuple(it)) for kind, it in by_kind.items()]
    return untold


def mark_told(engine: sa.Engine, told: UntoldAlarms, *, now: datetime) -> None:
    """Record that people know of these alarms, or of their healing."""
    alarms = FEED_ALARMS.c
    column = "healing_told_at" if told.is_healed else "told_at"
    with engine.begin() as connection:
        for thing, began_at, _ in told.alarms:
            one = (alarms.kind == told.kind, alarms.thing == thing, alarms.began_at == began_at)
            connection.execute(sa.update(FEED_ALARMS).where(*one).values({column: now}))
