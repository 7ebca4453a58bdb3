"""Write a fictional story from the phrasebook of a language and a random stream."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from hashlib import blake2b
from typing import TypeVar

from news_platform.sample.outlets import Voice, read_toml

T = TypeVar("T")


class Chance:
    """Draw from a stream that depends only on its names.

    `random` promises stable results for `random()` only; hashing a counter promises all of them,
    and a stream per thing keeps one article from changing when another is added.
    """

    def __init__(self, *names: object) -> None:
        self._key = blake2b("\0".join(map(str, names)).encode()).digest()
        self._drawn = 0

    def number(self, low: int, high: int) -> int:
        """Draw an integer from `low` to `high`, both included."""
        return low + self._word() % (high - low + 1)

    def happens(self, percent: int) -> bool:
        """Return True in `percent` of a hundred draws."""
        return self._word() % 100 < percent

    def pick(self, items: Sequence[T]) -> T:
        """Draw one of the items."""
        return items[self._word() % len(items)]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Draw `count` different items (all if there are fewer), in the order drawn."""
        left = list(items)
        return [left.pop(self._word() % len(left)) for _ in range(min(count, len(left)))]

    def in_order(self, items: Sequence[T], count: int) -> list[T]:
        """Draw `count` different items and keep their original order."""
        chosen = sorted(self.sample(range(len(items)), count))
        return [items[index] for index in chosen]

    def octets(self, count: int) -> bytes:
        """Draw up to 64 bytes."""
        return self._block()[:count]

    def _word(self) -> int:
        return int.from_bytes(self._block()[:8], "big")

    def _block(self) -> bytes:
        self._drawn += 1
        return blake2b(self._drawn.to_bytes(8, "big"), key=self._key).digest()


LANGUAGES = ("ar", "de", "el", "en", "es", "fr", "ja", "pt", "ru")


@dataclass(frozen=True, slots=True)
class Plot:
    """The phrases of one kind of story; beats are in the order of the text."""

    topic: str
    headlines: tuple[str, ...]
    leads: tuple[str, ...]
    beats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrasebook:
    """Everything that is needed to write a story in one language."""

    language: str
    thousands: str
    weekdays: tuple[str, ...]
    labels: Mapping[str, str]
    names: Mapping[str, tuple[str, ...]]
    plots: tuple[Plot, ...]
    general: tuple[str, ...]
    word_space: str = " "

    def plots_about(self, topics: tuple[str, ...]) -> tuple[Plot, ...]:
        """Return the plots on these topics, or all plots if none is given."""
        return tuple(plot for plot in self.plots if not topics or plot.topic in topics)


@cache
def phrasebook(language: str) -> Phrasebook:
    """Read the phrasebook of a language."""
    return read_toml(f"languages/{language}.toml", Phrasebook, language=language)


_ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")

# All end in 0, 5, 6 or 8, so that one plural form fits in every language of the world.
_DOZENS = (25, 30, 35, 36, 38, 40, 45, 46, 48, 50, 55, 56, 58, 60, 65, 68, 70, 75, 80, 85, 90)

# Sentences after the lead: fewer would not make an article of 150 words.
_SHORTEST = 9

# Topics that involve a decision, so that phrases about decisions fit.
_DEBATED = ("politics", "economy", "technology")


@dataclass(frozen=True, slots=True)
class Story:
    """The text of a story, without publisher, place or time."""

    language: str
    topic: str
    headline: str
    paragraphs: tuple[str, ...]
    people: tuple[str, ...]
    places: tuple[str, ...]

    @property
    def lead(self) -> str:
        """Return the opening paragraph."""
        return self.paragraphs[0]

    @property
    def text(self) -> str:
        """Return the paragraphs, one per line."""
        return "\n".join(self.paragraphs)


def write_story(book: Phrasebook, plot: Plot, *, chance: Chance, voice: Voice, day: date) -> Story:
    """Write one story of the plot for a day."""
    cast = _cast(book, chance, day)
    number = _numbers(book, chance)
    # Headline and lead use the same numbers; the beats after them have their own.
    main_number = cache(number)

    def say(template: str, number: Callable[[str], str] = number) -> str:
        return _capitalised(expand(template, chance, cast=cast, number=number))

    return Story(
        language=book.language,
        topic=plot.topic,
        headline=say(chance.pick(plot.headlines), main_number),
        paragraphs=(
            say(chance.pick(plot.leads), main_number),
            *_body(book, plot, chance=chance, voice=voice, say=say),
        ),
        people=(cast["person"], cast["other"]),
        places=(cast["place"], cast["town"]),
    )


def expand(
    template: str,
    chance: Chance,
    *,
    cast: Mapping[str, str],
    number: Callable[[str], str],
) -> str:
    """Choose one variant of each `[a|b]` and fill each `{slot}`."""
    text = _ALTERNATIVES.sub(lambda found: chance.pick(found[1].split("|")), template)
    return _SLOT.sub(lambda found: cast.get(found[1]) or number(found[1]), text)


def with_ending(story: Story, *paragraphs: str) -> Story:
    """Return the story with paragraphs added at its end."""
    return replace(story, paragraphs=(*story.paragraphs, *paragraphs))


def _body(
    book: Phrasebook, plot: Plot, *, chance: Chance, voice: Voice, say: Callable[[str], str]
) -> tuple[str, ...]:
    remarks = _remarks(book, plot, chance)
    told_by_plot = max(chance.number(voice.shortest, voice.longest), _SHORTEST - len(remarks))
    beats = chance.in_order(plot.beats, told_by_plot)
    for remark in remarks:
        beats.insert(chance.number(1, len(beats)), remark)
    told = [say(beat) for beat in beats]
    grouped: list[str] = []
    while told:
        size = chance.number(1, 3)
        grouped.append(book.word_space.join(told[:size]))
        del told[:size]
    return tuple(grouped)


def _remarks(book: Phrasebook, plot: Plot, chance: Chance) -> list[str]:
    if plot.topic not in _DEBATED:
        return []
    return chance.sample(book.general, chance.number(2, 4))


def _cast(book: Phrasebook, chance: Chance, day: date) -> dict[str, str]:
    person, other = chance.sample(book.names["people"], 2)
    place, town = chance.sample(book.names["places"], 2)
    team, rival = chance.sample(book.names["teams"], 2)
    return {
        "person": person,
        "other": other,
        "woman": chance.pick(book.names["women"]),
        "place": place,
        "town": town,
        "team": team,
        "rival": rival,
        "org": chance.pick(book.names["orgs"]),
        "day": book.weekdays[day.weekday()],
    }


def _numbers(book: Phrasebook, chance: Chance) -> Callable[[str], str]:
    draws: dict[str, Callable[[], int]] = {
        "n": lambda: chance.pick(_DOZENS),
        "few": lambda: chance.number(6, 19),
        "pct": lambda: chance.number(5, 12),
        "money": lambda: chance.pick(_DOZENS) * chance.number(3, 9),
        "big": lambda: chance.pick(_DOZENS) * 100,
    }
    return lambda slot: f"{draws[slot]():,}".replace(",", book.thousands)


def _capitalised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
