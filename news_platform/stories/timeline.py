"""The members of a story with their texts in, how it went on out: day by day, and who was first."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from news_platform.datasets.stories import COPY
from news_platform.stories.meanings import number_text, tokens, word_prefix
from news_platform.stories.terms import MAX_CHARS, term_weight

_SENTENCE = re.compile("(?<=[.!?…])[\"'”»)]*\\s+|(?<=[。！？])|\n+")
_ADDRESS = re.compile(r"[!-~]*/[!-~]*")
_MOST_SENTENCES = 3
_LONGEST = 320
_SHORTEST = 30
# A name that is news to a story is rare by the shipped table.
_RARE = 50
_LEAST_FACTS = 2
_SILENT_DAYS = 3
# Pages state dates that are wrong: one after the fetch, or from before the window, is not believed.
_BELIEVED = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class StoryMember:
    """An article of a story; `text` may be empty where it is not needed."""

    url_hash: str
    url: str
    domain: str
    language: str
    title: str
    seen_at: datetime
    published_at: datetime | None
    linked_to: str | None
    score: int | None
    role: str
    day: str
    text: str = ""

    @property
    def clock(self) -> str:
        """Return by which clock its time is told: `published`, if the page's date is believed."""
        at = self.published_at
        is_likely = at is not None and self.seen_at - _BELIEVED <= at <= self.seen_at
        return "published" if is_likely else "fetched"

    @property
    def at(self) -> datetime:
        """Return when it appeared, by its clock."""
        if self.clock == "published" and self.published_at is not None:
            return self.published_at
        return self.seen_at


@dataclass(frozen=True, slots=True)
class NewSentence:
    """A sentence with names and numbers that no earlier member has."""

    text: str
    url: str
    domain: str
    at: datetime
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimelineDay:
    """The members that a day adds, and what they say that is new."""

    day: str
    members: tuple[StoryMember, ...]
    sentences: tuple[NewSentence, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """How a story went on; `silent_since` is None while it may still go on."""

    story_id: str
    first: StoryMember
    days: tuple[TimelineDay, ...]
    headlines: tuple[StoryMember, ...]
    copied: tuple[tuple[str, tuple[str, ...]], ...]
    silent_since: str | None

    @property
    def members(self) -> tuple[StoryMember, ...]:
        """Return all members in order."""
        return tuple(one for day in self.days for one in day.members)


def tell(story_id: str, members: Sequence[StoryMember], *, newest_day: str) -> Timeline:
    """Return the timeline of a story with at least one member; `newest_day` is the last linked."""
    ordered = sorted(members, key=lambda one: (one.day, one.seen_at, one.url_hash))
    known: set[str] = set()
    days = []
    for day in dict.fromkeys(one.day for one in ordered):
        own = tuple(one for one in ordered if one.day == day)
        days.append(TimelineDay(day, own, _news(own, known)))
    last = date.fromisoformat(ordered[-1].day)
    is_silent = date.fromisoformat(newest_day) - last >= timedelta(days=_SILENT_DAYS)
    return Timeline(
        story_id,
        min(ordered, key=lambda one: (one.at, one.url_hash)),
        tuple(days),
        tuple(_headlines(ordered)),
        _copied(ordered),
        last.isoformat() if is_silent else None,
    )


def _news(members: Iterable[StoryMember], known: set[str]) -> tuple[NewSentence, ...]:
    """Return the sentences of a day with most new facts, one per member; `known` grows."""
    found: list[tuple[int, int, NewSentence]] = []
    for number, one in enumerate(members):
        if one.role == COPY:
            continue
        best: tuple[int, NewSentence] | None = None
        everything = _facts(f"{one.title}\n{one.text[:MAX_CHARS]}")
        for sentence in sentences(one.text[:MAX_CHARS]):
            facts = [fact for fact in _facts(sentence) if fact not in known]
            if len(facts) >= _LEAST_FACTS and (best is None or len(facts) > best[0]):
                shown = tuple(dict.fromkeys(everything.get(fact, fact) for fact in facts))
                best = len(facts), NewSentence(sentence, one.url, one.domain, one.at, shown)
        known.update(everything)
        if best is not None:
            found.append((-best[0], number, best[1]))
    chosen = sorted(found)[:_MOST_SENTENCES]
    return tuple(one for _, _, one in sorted(chosen, key=lambda it: it[1]))


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that are long enough to say something, cut where too long."""
    parts = (part.strip() for part in _SENTENCE.split(text))
    return [
        part[:_LONGEST] for part in parts if len(part) >= _SHORTEST and not _ADDRESS.fullmatch(part)
    ]


def _facts(text: str) -> dict[str, str]:
    """Return the names and numbers of a text: what they are compared by, and how they are written.

    The first word of the text is a name only if it stands capitalised elsewhere.
    """
    found: dict[str, str] = {}
    for at, token in enumerate(tokens(text)):
        if token[0].isdigit():
            if len(token) > 1:
                found.setdefault(f"#{number_text(token)}", token)
        elif at and token[0].isupper() and len(token) > 2:
            begin = word_prefix(token)
            if term_weight(begin) >= _RARE:
                found.setdefault(begin, token)
    return found


def _headlines(members: Iterable[StoryMember]) -> Iterable[StoryMember]:
    """Yield the first member with each headline that is no copy, at most one per outlet and day."""
    seen: set[tuple[str, str]] = set()
    for one in members:
        key = (one.domain, one.day)
        if one.role != COPY and one.title and key not in seen:
            seen.add(key)
            yield one


def _copied(members: Sequence[StoryMember]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the addresses that others copied, each with the outlets that did."""
    urls = {one.url_hash: one.url for one in members}
    found: dict[str, list[str]] = {}
    for one in members:
        if one.role == COPY and one.linked_to in urls and one.linked_to != one.url_hash:
            found.setdefault(urls[one.linked_to], []).append(one.domain)
    return tuple((url, tuple(sorted(set(domains)))) for url, domains in found.items())
