"""Choose the part of a text that shows the words of a query, and mark them in it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from news_platform.search.words import words

_WORD = re.compile(r"\w+")
# Long texts are not read to their end: the first places are what a reader looks at.
_READ_CHARACTERS = 50_000


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of a text and the places of the found words in it, as (start, end)."""

    text: str
    marks: tuple[tuple[int, int], ...]

    def marked(self, before: str, after: str) -> str:
        """Return the text with something before and after every found word."""
        parts, last = [], 0
        for start, end in self.marks:
            parts += [self.text[last:start], before, self.text[start:end], after]
            last = end
        return "".join((*parts, self.text[last:]))


def snippet(text: str, phrases: Iterable[Sequence[str]], *, characters: int = 240) -> Snippet:
    """Return the part of the text with the most different words of the query, in one line."""
    line = " ".join(text[:_READ_CHARACTERS].split())
    wanted = {word for phrase in phrases for word in phrase}
    places = list(_places(line, wanted))
    start = _best_start(places, characters)
    start = _word_start(line, max(0, start - characters // 4)) if places else 0
    part = line[start : start + characters]
    inside = [(a - start, b - start) for a, b, _ in places if start <= a and b <= start + len(part)]
    return Snippet(part, tuple(inside))


def _places(line: str, wanted: set[str]) -> Iterator[tuple[int, int, str]]:
    """Yield where a word of the query stands, and which."""
    for found in _WORD.finditer(line):
        if hits := wanted.intersection(words(found[0])):
            yield found.start(), found.end(), min(hits)


def _best_start(places: Sequence[tuple[int, int, str]], characters: int) -> int:
    def different(start: int) -> int:
        return len({word for at, _, word in places if start <= at < start + characters})

    # The first of the best: news tells the most important things first.
    return max((place[0] for place in places), key=different, default=0)


def _word_start(line: str, place: int) -> int:
    return 0 if place == 0 else line.rfind(" ", 0, place + 1) + 1
