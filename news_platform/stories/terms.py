"""The title, text and language of an article in, the terms that it is compared by out.

A term is a word in Latin letters cut to its first five, a number, a place or one of some hundred
notions of the news, so that most terms are the same in every language and script. Rarer terms weigh
more, by a shipped table, never by what else arrived.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from news_platform.stories.meanings import (
    CUT,
    Meanings,
    number_text,
    read_meanings,
    tokens,
    word_prefix,
)

# Tenths of the natural logarithm: a word that the table does not have is in one article of 1,000.
MOST_WEIGHT = 70
_DATE_WEIGHT = 45
LEAD_CHARS = 500
MAX_CHARS = 6_000
# Hostile articles have every word of the day: each kind of term is capped, the rarest win.
MOST_WORDS, MOST_NUMBERS, MOST_NOTIONS, MOST_WHOLE = 220, 40, 60, 120

WORD, NUMBER, PLACE, NOTION, WHOLE, DATE = range(6)
KINDS = 8
IN_TITLE, IN_LEAD, IS_NAME = 8, 16, 32
_PARTS = IN_TITLE | IN_LEAD
# How often a word occurs is kept in the two highest bits: once, twice, up to four times, more.
OFTEN_BITS = 6

Keys = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of an article, sorted by `keys`: what each weighs, its kind and where it stands.

    The lower three bits of a mark are the kind, the others say in which parts the term stands.
    """

    keys: Keys
    weights: Bytes
    marks: Bytes


@dataclass(frozen=True, slots=True)
class Term:
    """A term before it is hashed."""

    kind: int
    text: str
    weight: int
    mark: int

    @property
    def key(self) -> int:
        """Return the 32-bit key by which terms are compared."""
        return zlib.crc32(f"{self.kind}{self.text}".encode())


@cache
def _weights() -> Mapping[str, int]:
    """Return what terms weigh, by lines of a weight and the terms that have it."""
    found: dict[str, int] = {}
    written = files("news_platform.stories").joinpath("term_weights.txt").read_text("utf-8")
    for line in written.splitlines():
        weight, *terms = line.split()
        found.update(dict.fromkeys(terms, int(weight)))
    return found


def term_weight(text: str) -> int:
    """Return what a term weighs, from 0 to MOST_WEIGHT."""
    return _weights().get(text, MOST_WEIGHT)


def iter_terms(title: str, text: str, language: str) -> Iterator[Term]:
    """Yield the terms of an article, each once, at most so many of each kind."""
    known = read_meanings(language)
    title = known.with_plain_numbers(title[:LEAD_CHARS])
    body = text[:MAX_CHARS]
    lead, rest = known.with_plain_numbers(body[:LEAD_CHARS]), body[LEAD_CHARS:]
    parts = tokens(title), tokens(lead), tokens(known.with_plain_numbers(rest))
    own = _Article(*parts)
    yield from own.words()
    yield from own.numbers()
    yield from own.whole_words(language)
    yield from own.meanings(f"{title}\n{body}", known)
    yield from _dates(f"{title}\n{body}", known)


def _dates(text: str, known: Meanings) -> Iterator[Term]:
    """Yield the days that a text names."""
    places: dict[str, int] = {}
    for date, at in known.dates(text):
        places.setdefault(date, at)
    for date, at in sorted(places.items())[:MOST_NUMBERS]:
        yield Term(DATE, date, _DATE_WEIGHT, DATE | IN_LEAD * (at < LEAD_CHARS))


def _named(begins: Sequence[str], text: str, known: Meanings) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    words, runs = known.words, known.runs
    for at, begin in enumerate(begins):
        if begin in words:
            for name in words[begin]:
                found.setdefault(name, set()).add(begin)
        if begin in runs:
            for run, name in runs[begin]:
                if tuple(begins[at : at + len(run)]) == run:
                    found.setdefault(name, set()).add(begin)
    if known.unspaced is not None:
        for match in known.unspaced.finditer(text):
            found.setdefault(known.spelled[match.group()], set()).add(str(match.start()))
    return found


class _Article:
    """The words of an article, and in which parts they stand."""

    def __init__(self, title: list[str], lead: list[str], rest: list[str]) -> None:
        everything = [*title, *lead, *rest]
        self._counts = Counter(everything)
        begins = {
            token: f"#{number_text(token)}" if token[0].isdigit() else word_prefix(token)
            for token in self._counts
        }
        self._begins = begins
        self._running = [begins[token] for token in everything]
        self._title = {begins[token] for token in title}
        self._lead = {begins[token] for token in lead}

    def _mark(self, begin: str) -> int:
        return IN_TITLE * (begin in self._title) | IN_LEAD * (begin in self._lead)

    def words(self) -> list[Term]:
        """Return beginnings of words; one that is always capitalised is a name."""
        counts: Counter[str] = Counter()
        small: set[str] = set()
        for token, begin in self._begins.items():
            if begin[:1] != "#" and len(begin) > 1:
                counts[begin] += self._counts[token]
                if not token[0].isupper():
                    small.add(begin)
        terms = []
        for begin, count in counts.items():
            if weight := term_weight(begin):
                often = min((count - 1).bit_length(), 3) << OFTEN_BITS
                name = IS_NAME * (begin not in small)
                terms.append(Term(WORD, begin, weight, WORD | self._mark(begin) | name | often))
        return _rarest(terms, MOST_WORDS)

    def numbers(self) -> list[Term]:
        """Return numbers; single digits say too little."""
        begins = {begin for begin in self._begins.values() if begin[:1] == "#" and len(begin) > 2}
        terms = (
            Term(NUMBER, begin, term_weight(begin), NUMBER | self._mark(begin)) for begin in begins
        )
        return _rarest(terms, MOST_NUMBERS)

    def whole_words(self, language: str) -> list[Term]:
        """Return long words as they are written, for articles of the same language."""
        terms = {}
        for token, begin in self._begins.items():
            if len(token) > CUT and begin[:1] != "#":
                word, weight = f"{language} {token.lower()}", term_weight(begin)
                terms[word] = Term(WHOLE, word, weight, WHOLE | self._mark(begin))
        return _rarest(terms.values(), MOST_WHOLE)

    def meanings(self, text: str, known: Meanings) -> list[Term]:
        """Return places and notions."""
        terms = []
        for name, begins in _named(self._running, text, known).items():
            kind, mark = NOTION if name[0] == "@" else PLACE, 0
            for begin in begins:
                is_early = begin.isdigit() and int(begin) < LEAD_CHARS
                mark |= IN_TITLE | IN_LEAD if is_early else self._mark(begin)
            terms.append(Term(kind, name, term_weight(name), kind | mark))
        return _rarest(terms, MOST_NOTIONS)


def _rarest(terms: Iterable[Term], most: int) -> list[Term]:
    """Return the heaviest terms; those of title and lead before others of the same weight."""
    return sorted(terms, key=lambda term: (-term.weight, -(term.mark & _PARTS), term.text))[:most]


def pack(found: Iterable[Term]) -> Terms:
    """Return terms as arrays, sorted by their keys; equal keys keep the heavier term."""
    rows: dict[int, tuple[int, int]] = {}
    for term in found:
        rows.setdefault(term.key, (term.weight, term.mark))
    keys = np.fromiter(rows, np.uint32, len(rows))
    order = np.argsort(keys)
    values = np.array(list(rows.values()), dtype=np.uint8).reshape(-1, 2)[order]
    return Terms(keys[order], values[:, 0].copy(), values[:, 1].copy())


def article_terms(title: str, text: str, language: str) -> Terms:
    """Return the terms of an article as arrays."""
    return pack(iter_terms(title, text, language))
