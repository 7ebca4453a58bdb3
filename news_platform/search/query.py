"""Parse a query into a tree of conditions, and say where a wrong query is wrong.

    words, "phrases", AND OR NOT -word (brackets), field:word, field:"phrase",
    day:2025-11-01, day:2025-11-01..2025-11-07

Words that stand side by side must all occur, in any of their forms; a "word" in quotes occurs as it
is written. Anything else of the syntax of other search engines,
such as wildcards, is refused instead of being searched as something else.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from news_platform.errors import InputError
from news_platform.search.words import words
from news_platform.web.urls import plain_host

TEXT_FIELDS = ("title", "text", "authors", "section")
EXACT_FIELDS = ("domain", "language", "day")
FIELDS = (*TEXT_FIELDS, *EXACT_FIELDS)
DEFAULT_FIELDS = ("title", "text")
MAX_QUERY_CHARACTERS = 2_000
MAX_WORDS = 100
_MAX_DEPTH = 20
_MAX_RANGE_DAYS = 4_000


@dataclass(frozen=True, slots=True)
class Phrase:
    """These words, side by side in one of the fields; a single word is a phrase of one.

    A word that stands without quotes and without a field is found in all its forms.
    """

    words: tuple[str, ...]
    fields: tuple[str, ...] = DEFAULT_FIELDS
    with_forms: bool = False


@dataclass(frozen=True, slots=True)
class Exact:
    """The field has exactly this value."""

    field: str
    value: str


@dataclass(frozen=True, slots=True)
class DayRange:
    """The day lies in this range, both ends included."""

    first: str
    last: str


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of the conditions hold; an empty one always holds."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of the conditions holds."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class NotOf:
    """The condition does not hold."""

    part: "Condition"


Condition = Phrase | Exact | DayRange | AllOf | AnyOf | NotOf

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<open>\() | (?P<close>\)) |
      (?P<minus>-(?=[^\s-])) |
      (?P<field>[A-Za-z_]+):(?=\S) |
      "(?P<phrase>[^"]*)" |
      (?P<word>[^\s()"]+)
    )""",
    re.VERBOSE,
)
_FOREIGN_SYNTAX = re.compile(r"[*?~^\\\[\]{}]|^/.*/$|^[+&|!]")
_RANGE = re.compile(r"(?P<first>[^.]*)\.\.(?P<last>[^.]*)")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


def parse_query(query: str) -> Condition:
    """Return the conditions of a query; raise InputError with the place of its first mistake."""
    if len(query) > MAX_QUERY_CHARACTERS:
        raise InputError(
            f"the query has {len(query)} characters: expected at most {MAX_QUERY_CHARACTERS}",
            thing=query[:80],
        )
    parser = _Parser(query, list(_tokens(query)))
    return parser.parse()


def query_words(condition: Condition) -> Iterator[tuple[str, ...]]:
    """Yield the phrases to highlight: all that must or may occur, none that must not."""
    match condition:
        case Phrase():
            yield condition.words
        case AllOf() | AnyOf():
            for part in condition.parts:
                yield from query_words(part)


def _tokens(query: str) -> Iterator[_Token]:
    place = 0
    while place < len(query.rstrip()):
        found = _TOKEN.match(query, place)
        if found is None or found.end() == place:
            start = len(query) - len(query[place:].lstrip())
            raise _wrong(
                query, start, 'expected a closing "' if query[start] == '"' else "unexpected"
            )
        kind = found.lastgroup or ""
        yield _Token(kind, found[kind], found.start(kind))
        place = found.end()


class _Parser:
    """A recursive descent over the tokens of one query."""

    def __init__(self, query: str, tokens: list[_Token]) -> None:
        self._query, self._tokens = query, tokens
        self._next = self._words = self._depth = 0

    def parse(self) -> Condition:
        if not self._tokens:
            raise InputError("the query is empty: expected words to search for", thing=self._query)
        found = self._any_of()
        if (rest := self._peek()) is not None:
            raise self._error(rest, "there is no opening bracket for this one")
        return found

    def _any_of(self) -> Condition:
        parts = [self._all_of()]
        while self._takes("OR"):
            parts.append(self._all_of())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _all_of(self) -> Condition:
        parts = [self._not_of()]
        while (token := self._peek()) is not None and token.kind != "close":
            if token.kind == "word" and token.text == "OR":
                break
            self._takes("AND")
            parts.append(self._not_of())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _not_of(self) -> Condition:
        if self._takes("NOT") or self._takes_kind("minus"):
            return NotOf(self._one())
        return self._one()

    def _one(self) -> Condition:
        token = self._take()
        if token is None:
            raise self._error(None, "expected a word at the end")
        if token.kind == "open":
            return self._bracket(token)
        if token.kind == "field":
            return self._field(token)
        if token.kind == "phrase":
            return self._phrase(token, DEFAULT_FIELDS)
        if token.kind == "word" and token.text not in ("AND", "OR", "NOT"):
            return self._phrase(token, DEFAULT_FIELDS)
        raise self._error(token, "expected a word")

    def _bracket(self, opened: _Token) -> Condition:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error(opened, f"more than {_MAX_DEPTH} nested brackets")
        found = self._any_of()
        if not self._takes_kind("close"):
            raise self._error(opened, "this bracket is not closed")
        self._depth -= 1
        return found

    def _field(self, field: _Token) -> Condition:
        name, value = field.text.lower(), self._take()
        if name not in FIELDS:
            raise self._error(field, f"unknown field: expected one of {', '.join(FIELDS)}")
        if value is None or value.kind not in ("word", "phrase"):
            raise self._error(field, "expected a word or a phrase after the field")
        if name in TEXT_FIELDS:
            return self._phrase(value, (name,))
        return self._days(value) if name == "day" else self._exact(name, value)

    def _exact(self, name: str, value: _Token) -> Condition:
        self._refuse_foreign_syntax(value)
        self._count(value, 1)
        return Exact(name, plain_host(value.text))

    def _days(self, value: _Token) -> Condition:
        self._count(value, 1)
        ends = _RANGE.fullmatch(value.text)
        first, last = (ends["first"], ends["last"]) if ends else (value.text, value.text)
        try:
            span = date.fromisoformat(last) - date.fromisoformat(first)
        except ValueError:
            raise self._error(value, "expected YYYY-MM-DD or YYYY-MM-DD..YYYY-MM-DD") from None
        if not timedelta(0) <= span < timedelta(_MAX_RANGE_DAYS):
            raise self._error(value, f"expected a range of 1 to {_MAX_RANGE_DAYS} days")
        return DayRange(first, last)

    def _phrase(self, token: _Token, fields: tuple[str, ...]) -> Condition:
        if token.kind == "word":
            self._refuse_foreign_syntax(token)
            if token.text.endswith(":") and token.text[:-1].lower() in FIELDS:
                raise self._error(token, "expected a word or a phrase after the field")
        found = tuple(words(token.text))
        if not found:
            raise self._error(token, "expected letters or digits")
        self._count(token, len(found))
        is_word = token.kind == "word" and len(found) == 1 and fields == DEFAULT_FIELDS
        return Phrase(found, fields, with_forms=is_word)

    def _refuse_foreign_syntax(self, token: _Token) -> None:
        if found := _FOREIGN_SYNTAX.search(token.text):
            raise self._error(
                token, f"{found[0]!r} is not supported: quote it to search for the words in it"
            )

    def _count(self, token: _Token, number: int) -> None:
        self._words += number
        if self._words > MAX_WORDS:
            raise self._error(token, f"more than {MAX_WORDS} words")

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self) -> _Token | None:
        token = self._peek()
        self._next += 1
        return token

    def _takes(self, word: str) -> bool:
        return self._takes_if(lambda token: token.kind == "word" and token.text == word)

    def _takes_kind(self, kind: str) -> bool:
        return self._takes_if(lambda token: token.kind == kind)

    def _takes_if(self, wanted: Callable[[_Token], bool]) -> bool:
        token = self._peek()
        if token is None or not wanted(token):
            return False
        self._next += 1
        return True

    def _error(self, token: _Token | None, cause: str) -> InputError:
        position = token.position if token is not None else len(self._query)
        return _wrong(self._query, position, cause)


def _wrong(query: str, position: int, cause: str) -> InputError:
    shown = query[position : position + 30]
    where = f"at character {position + 1}, {shown!r}" if shown else "at its end"
    return InputError(f"invalid query {where}: {cause}", thing=query)
