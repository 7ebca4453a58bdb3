"""Stories as the explorer, the API and the MCP tool show them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Annotated, Literal

import polars as pl
from pydantic import Field

from news_platform.datasets.stories import COPY, FIRST, STORIES, STORY_DAYS
from news_platform.errors import InputError
from news_platform.server.app_state import AppState, NothingHere
from news_platform.server.documents import Document
from news_platform.server.parameters import Day, Limit, Parameters, Short
from news_platform.storage.outlets import with_outlets
from news_platform.stories.reading import (
    chosen_stories,
    find_story,
    member_of_row,
    read_stories,
    read_timeline,
    scan_members,
    stored_days,
    unknown_values,
)
from news_platform.stories.timeline import StoryMember

_MARKERS = f"markers/{STORIES.name}"
_SHOWN_MEMBERS = 200
# The geometry of the picture, in pixels.
_WIDTH, _LANE, _LEFT, _TOP = 720, 34, 60, 20
_MOST_DAYS_SHOWN = 60


class StoriesParameters(Parameters):
    """What `stories` is asked for."""

    day: Day = Field("", description="day of the articles, YYYY-MM-DD; default: the newest")
    language: Short = Field("", description="only stories with an article in this language")
    domain: Short = Field("", description="only stories that this outlet reports")
    sort: Literal["largest", "newest", "growing"] = Field("largest", description="order")
    limit: Limit = 50


class StoryParameters(Parameters):
    """Which story is asked for."""

    story_id: Annotated[str, Field(max_length=64, description="id of the story")]


class StoryDocument(Document):
    """A story on a day."""

    story_id: str = Field(description="url_hash of its first article")
    title: str | None
    names: tuple[str, ...] = Field(description="words that most headlines share")
    first_seen_at: datetime
    last_seen_at: datetime
    articles: int
    reports: int = Field(description="articles without near-identical texts")
    articles_of_day: int
    outlets: int
    languages: tuple[str, ...]
    is_growing: bool


class StoriesDocument(Document):
    """The stories of a day."""

    day: str
    days: tuple[str, ...] = Field(description="the newest days that have stories")
    count: int
    stories: tuple[StoryDocument, ...]
    advice: tuple[str, ...] = Field(description="a language or outlet that no story has")


class StoryMemberDocument(Document):
    """An article of a story."""

    url_hash: str
    url: str
    domain: str
    language: str
    title: str
    at: datetime = Field(description="when it appeared, by its clock")
    clock: str = Field(description="`published` or `fetched`")
    role: str = Field(description="`first`, `copy` or `own report`")
    linked_to: str | None
    score: int | None
    day: str


class SentenceDocument(Document):
    """A sentence with names and numbers that no earlier article of the story has."""

    text: str
    url: str
    domain: str
    at: datetime
    facts: tuple[str, ...]


class TimelineDayDocument(Document):
    """What a day adds to a story."""

    day: str
    members: tuple[StoryMemberDocument, ...]
    sentences: tuple[SentenceDocument, ...]


class CopiedDocument(Document):
    """An article and the outlets that copied it."""

    url: str
    domains: tuple[str, ...]


class TimelineDocument(Document):
    """How a story went on."""

    story_id: str
    first: StoryMemberDocument
    articles: int
    days: tuple[TimelineDayDocument, ...]
    headlines: tuple[StoryMemberDocument, ...]
    copied: tuple[CopiedDocument, ...]
    silent_since: str | None


class StoryAroundDocument(Document):
    """The members of an article's story in the days around it."""

    story_id: str
    members: tuple[StoryMemberDocument, ...]


def stories_document(state: AppState, asked: StoriesParameters) -> StoriesDocument:
    """Return the stories of a day, by default of the newest one."""
    days = _days(state)
    day = asked.day or (days[-1] if days else "")
    shown = tuple(reversed(days[-_MOST_DAYS_SHOWN:]))
    if day not in days:
        if asked.day:
            raise NothingHere(f"no stories of {asked.day}")
        return StoriesDocument(day="", days=(), count=0, stories=(), advice=())
    rows = state.version.kept(f"stories {day}", lambda: read_stories(state.store, day), _MARKERS)
    domains = with_outlets(state.store, [asked.domain] if asked.domain else ())
    found = chosen_stories(rows, language=asked.language, domains=domains, sort=asked.sort)
    stories = [StoryDocument.of(row) for row in found.head(asked.limit).iter_rows(named=True)]
    return StoriesDocument(
        day=day,
        days=shown,
        count=found.height,
        stories=tuple(stories),
        advice=tuple(unknown_values(rows, language=asked.language, domains=domains)),
    )


def timeline_document(state: AppState, story_id: str) -> TimelineDocument:
    """Return how a story went on, by its id or the first letters of it."""
    try:
        found = read_timeline(state.store, find_story(state.store, story_id))
    except InputError as error:
        raise NothingHere(str(error)) from error
    return TimelineDocument(
        story_id=found.story_id,
        first=_member(found.first),
        articles=len(found.members),
        days=tuple(
            TimelineDayDocument(
                day=one.day,
                members=tuple(map(_member, one.members[:_SHOWN_MEMBERS])),
                sentences=tuple(map(SentenceDocument.model_validate, one.sentences)),
            )
            for one in found.days
        ),
        headlines=tuple(map(_member, found.headlines[:_SHOWN_MEMBERS])),
        copied=tuple(CopiedDocument(url=url, domains=domains) for url, domains in found.copied),
        silent_since=found.silent_since,
    )


def _member(member: StoryMember) -> StoryMemberDocument:
    return StoryMemberDocument.model_validate(member)


def _days(state: AppState) -> Sequence[str]:
    return state.version.kept("story days", lambda: stored_days(state.store), _MARKERS)


def story_around(state: AppState, url_hash: str, day: str) -> StoryAroundDocument | None:
    """Return the story of an article of a day with its members around it; None if it is alone."""
    days = _days(state)
    if day not in days:
        return None
    own = scan_members(state.store, [day]).filter(pl.col("url_hash") == url_hash).collect()
    if not own.height:
        return None
    story_id = own["story_id"][0]
    middle = date.fromisoformat(day)
    first, last = (middle + timedelta(days=n) for n in (1 - STORY_DAYS, STORY_DAYS - 1))
    around = [one for one in days if first.isoformat() <= one <= last.isoformat()]
    rows = scan_members(state.store, around).filter(pl.col("story_id") == story_id).collect()
    members = [member_of_row(row) for row in rows.iter_rows(named=True)]
    unique = {one.url_hash: one for one in reversed(members)}
    if len(unique) < 2:
        return None
    ordered = sorted(unique.values(), key=lambda one: (one.role == COPY, one.at, one.url_hash))
    return StoryAroundDocument(story_id=story_id, members=tuple(map(_member, ordered)))


@dataclass(frozen=True, slots=True)
class Point:
    """An article in the picture of a story, and where the one that it is linked to stands."""

    x: int
    y: int
    to_x: int | None
    to_y: int | None
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """The picture of a story: time from left to right, one lane per language."""

    width: int
    height: int
    lanes: tuple[tuple[str, int], ...]
    ends: tuple[tuple[str, int], ...]
    points: tuple[Point, ...]


def drawing(story: TimelineDocument) -> Drawing:
    """Return where the articles of a story stand in its picture."""
    members = [one for day in story.days for one in day.members]
    begin, end = min(one.at for one in members), max(one.at for one in members)
    seconds = max((end - begin).total_seconds(), 1.0)
    lanes = {
        name: _TOP + _LANE * at
        for at, name in enumerate(dict.fromkeys(one.language for one in members))
    }

    def x_of(at: datetime) -> int:
        return _LEFT + round((_WIDTH - 2 * _LEFT) * (at - begin).total_seconds() / seconds)

    places = {one.url_hash: (x_of(one.at), lanes[one.language]) for one in reversed(members)}
    points = []
    for one in members:
        to = places.get(one.linked_to or "")
        kind = "first" if one.role == FIRST else "copy" if one.role == COPY else "own"
        label = f"{one.at:%Y-%m-%d %H:%M} {one.domain}: {one.title}"
        x, y = x_of(one.at), lanes[one.language]
        points.append(Point(x, y, to[0] if to else None, to[1] if to else None, kind, label))
    ends = {f"{at:%Y-%m-%d %H:%M}": x_of(at) for at in (begin, end)}
    height = _TOP * 2 + _LANE * len(lanes)
    return Drawing(_WIDTH, height, tuple(lanes.items()), tuple(ends.items()), tuple(points))
