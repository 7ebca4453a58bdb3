"""Find feeds and sources that went silent, and remember which of these alarms people know of.

An alarm begins when its condition is first seen, and heals when it is gone. An open alarm is judged
by what was usual before it began, and what only hides the condition does not heal it. Each
beginning and each healing is told once: whoever tells it marks it as told afterwards, so that a
message that failed is sent again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

import sqlalchemy as sa

from news_platform.rss.feed_list import LISTING_PROBLEM
from news_platform.rss.ledger.feed_rows import POLLED
from news_platform.rss.ledger.tables import CONFIG, FEED_ALARMS, FEEDS, RAW
from news_platform.rss.ledger.transactions import found_between
from news_platform.storage.sql.engine import read_transaction

AlarmKind = Literal["silent", "failing", "listing", "unreachable", "text_share"]
KINDS: tuple[AlarmKind, ...] = get_args(AlarmKind)
# Of the usual gap between two entries; but many sites publish nothing at night or on Sundays.
_SILENT_GAPS = 5.0
_SILENT_FOR = timedelta(hours=24)
# Most outages of a site are shorter.
_FAILING_FOR = timedelta(hours=24)
# Of the usual share of articles with text: below it, a redesign has broken the extraction.
_TEXT_SHARE_FALL = 0.5
# Shares are compared over these days, of at least so many articles.
_RECENT, _RECENT_ARTICLES = timedelta(days=2), 5
_USUAL, _USUAL_ARTICLES = timedelta(days=7), 20
# A source that rarely has texts cannot lose them.
_USUAL_SHARE = 0.5
_TEXT_CHARACTERS = 200
_GONE = "its site says 410 Gone: `feeds remove` ends the alarm, `feeds resume` polls it"


@dataclass(frozen=True, slots=True)
class FeedAlarm:
    """Something that should not be silent: a feed by its address, or a source by its domain."""

    kind: AlarmKind
    thing: str
    detail: str


def find_alarms(
    engine: sa.Engine, *, now: datetime, kinds: Sequence[str] = KINDS
) -> list[FeedAlarm]:
    """Return all alarms of these kinds, sorted."""
    with read_transaction(engine) as connection:
        known = {(kind, thing): began_at for kind, thing, began_at in _open_alarms(connection)}
        found = [*_feeds(connection, known, now=now), *_refused_listing(connection)]
        found += _unreachable(connection)
        if "text_share" in kinds:
            sources = {thing: at for (kind, thing), at in known.items() if kind == "text_share"}
            found += _textless_sources(connection, sources, now=now)
    chosen = (alarm for alarm in found if alarm.kind in kinds)
    return sorted(chosen, key=lambda alarm: (alarm.kind, alarm.thing))


def _open_alarms(connection: sa.Connection) -> list[tuple[str, str, datetime]]:
    alarms = FEED_ALARMS.c
    chosen = sa.select(alarms.kind, alarms.thing, alarms.began_at)
    rows = connection.execute(chosen.where(alarms.healed_at.is_(None)))
    return [(kind, thing, began_at) for kind, thing, began_at in rows]


def _feeds(
    connection: sa.Connection, known: Mapping[tuple[str, str], datetime], *, now: datetime
) -> Iterator[FeedAlarm]:
    """Yield feeds that fail, and feeds without an entry for long by their own rhythm."""
    feeds = FEEDS.c
    # The publisher says that the feed will not come back: only a person ends its alarms.
    is_gone = sa.and_(feeds.status == "gone", feeds.last_status == 410)
    for row in connection.execute(sa.select(FEEDS).where(feeds.status.in_(POLLED) | is_gone)):
        url, since = row.feed_url_canon, row.failing_since
        # A silent feed that begins to fail or is gone stays a silent one.
        is_answering = row.status == "active" and since is None
        if is_silent(row, now=now) and (is_answering or ("silent", url) in known):
            yield FeedAlarm("silent", url, _silence(row, now=now))
        if row.status == "gone":
            yield FeedAlarm("failing", url, _GONE)
        elif since is not None and now - since >= _FAILING_FOR:
            last = f"status {row.last_status}" if row.last_status else "no answer"
            detail = f"polls fail for {_hours((now - since).total_seconds())}, last: {last}"
            yield FeedAlarm("failing", url, detail)


def is_silent(feed: sa.Row[Any], *, now: datetime) -> bool:
    """Return whether a feed has been silent for much longer than its own rhythm."""
    if feed.last_entry_date is None or not feed.usual_gap_seconds:
        return False
    usual = timedelta(seconds=_SILENT_GAPS * feed.usual_gap_seconds)
    return bool(now - feed.last_entry_date > max(usual, _SILENT_FOR))


def _silence(feed: sa.Row[Any], *, now: datetime) -> str:
    silent = _hours((now - feed.last_entry_date).total_seconds())
    return f"no entry for {silent}, usually one every {_hours(feed.usual_gap_seconds)}"


def _refused_listing(connection: sa.Connection) -> Iterator[FeedAlarm]:
    """Yield the root's list of feeds if it would retire so many that a person is to confirm it."""
    problem = sa.select(CONFIG.c.value).where(CONFIG.c.key == LISTING_PROBLEM, CONFIG.c.value != "")
    for detail in connection.execute(problem).scalars():
        yield FeedAlarm("listing", "feeds.opml", detail)


def _unreachable(connection: sa.Connection) -> Iterator[FeedAlarm]:
    """Yield one alarm if most feeds that people named could not be reached when they were added."""
    is_lost = sa.case((FEEDS.c.status == "unreachable", 1), else_=0)
    count = sa.select(sa.func.count(), sa.func.sum(is_lost)).where(FEEDS.c.origin != "")
    named, lost = connection.execute(count).one()
    if named and lost > named / 2:
        detail = f"{lost} of {named} feeds could not be reached: is the network down?"
        yield FeedAlarm("unreachable", "feeds", f"{detail} `feeds recheck` checks them again")


def _textless_sources(
    connection: sa.Connection, known: Mapping[str, datetime], *, now: datetime
) -> Iterator[FeedAlarm]:
    """Yield sources whose pages gave texts until recently: their template has changed."""
    usual = _shares_before(connection, now)
    recent = _text_shares(connection, now - _RECENT, now)
    for source, (articles, share) in recent.items():
        usual_articles, usual_share = usual.get(source, (0, 0.0))
        if source in known:
            # Its usual share is by now that of the changed template: look at what was before.
            before = _shares_before(connection, known[source], source=source)
            _, usual_share = before.get(source, (0, 0.0))
            is_judged = True
        else:
            is_known = usual_articles >= _USUAL_ARTICLES and usual_share >= _USUAL_SHARE
            is_judged = is_known and articles >= _RECENT_ARTICLES
        if is_judged and share < _TEXT_SHARE_FALL * usual_share:
            detail = f"{share:.0%} of {articles} articles have a text, usually {usual_share:.0%}"
            yield FeedAlarm("text_share", source, detail)
    # Without a new article nothing shows that its pages have been mended.
    for source in known.keys() & usual.keys() - recent.keys():
        yield FeedAlarm("text_share", source, "no article was read since")


def _shares_before(
    connection: sa.Connection, moment: datetime, *, source: str = ""
) -> dict[str, tuple[int, float]]:
    """Return the shares that were usual for an alarm at this moment."""
    recent_from = moment - _RECENT
    return _text_shares(connection, recent_from - _USUAL, recent_from, source=source)


def _text_shares(
    connection: sa.Connection, start: datetime, end: datetime, *, source: str = ""
) -> dict[str, tuple[int, float]]:
    """Return the articles that were read, and the share whose page gave a text, by source."""
    has_text = sa.and_(RAW.c.clean_text_len >= _TEXT_CHARACTERS, RAW.c.text_source != "feed")
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
