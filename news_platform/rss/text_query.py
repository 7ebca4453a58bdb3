"""Words and phrases in, and whether a text contains them out.

A query is what people type into a search box: every word must occur, `"words in quotes"` are a
phrase, `-word` must not occur, and `word*` is the beginning of a word. Case does not matter.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from news_platform.errors import InputError

_TERM = re.compile(r'(-?)(?:"([^"]*)"|(\S+))')
# Scripts that write no spaces between words: there a word may begin and end anywhere.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class TextQuery:
    """Terms of which all, at least one, or none must occur; an empty query matches every text."""

    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()

    def matches(self, texts: Sequence[str]) -> bool:
        """Return whether the texts, taken together, answer the query."""
        if not all(_occurs(term, texts) for term in self.all_of):
            return False
        if self.any_of and not any(_occurs(term, texts) for term in self.any_of):
            return False
        return not any(_occurs(term, texts) for term in self.none_of)


def parse_query(text: str) -> TextQuery:
    """Parse what a person typed; raise InputError if nothing in it can be searched for."""
    wanted: list[str] = []
    unwanted: list[str] = []
    for minus, phrase, word in _TERM.findall(text):
        (unwanted if minus else wanted).append(phrase or word)
    query = TextQuery(all_of=searchable(wanted), none_of=searchable(unwanted))
    if not query.all_of and not query.none_of:
        raise InputError(f"invalid query {text!r}: expected words or a phrase in quotes")
    return query


def searchable(terms: Iterable[str]) -> tuple[str, ...]:
    """Return the terms that hold a letter or a digit; the others occur nowhere as words."""
    return tuple(term for term in terms if any(character.isalnum() for character in term))


def _occurs(term: str, texts: Sequence[str]) -> bool:
    found = _pattern(term).search
    return any(text and found(text) for text in texts)


@lru_cache(maxsize=10_000)
def _pattern(term: str) -> re.Pattern[str]:
    """Return the pattern of a word or phrase; any space separates the words of a phrase."""
    text = unicodedata.normalize("NFC", term.strip())
    is_prefix = text.endswith("*")
    words = text.rstrip("*").split()
    body = r"\s+".join(re.escape(word) for word in words)
    start = "" if _UNSPACED.match(words[0][0]) else r"(?<!\w)"
    end = "" if is_prefix or _UNSPACED.match(words[-1][-1]) else r"(?!\w)"
    return re.compile(start + body + end, re.IGNORECASE)
