"""Words that name places and notions, by language: places by CLDR, notions by a table."""

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files

from babel import Locale, UnknownLocaleError

from news_platform.stories.terms import Meanings, tokens, word_prefix

LANGUAGES = ("en", "de", "fr", "es", "it", "pl", "tr", "ar", "ru", "zh")
"""The languages of the columns of `notions.txt`."""
# CLDR names places in these as well; a language without notions still shares places.
PLACED = (*LANGUAGES, "pt", "nl", "ja", "ko", "uk", "cs", "sv", "ro", "hu", "el", "fa", "he", "id")
_UNSPACED_LANGUAGES = frozenset({"zh", "ja"})
_COUNTRY = re.compile("[A-Z]{2}")
# Codes that are no places, and names that are mostly other words.
_LEFT_OUT = frozenset({"EU", "EZ", "UN", "XA", "XB", "ZZ", "QO"})
_MIN_LETTERS = 4


def read_meanings() -> Mapping[str, Meanings]:
    """Return the words of each language that name places and notions."""
    notions = _read_notions()
    return {
        language: _meanings(language, [*_places(language), *notions.get(language, ())])
        for language in PLACED
    }


def _read_notions() -> Mapping[str, list[tuple[str, str]]]:
    """Return the words of each language with the notion that each names."""
    written = files("news_platform.stories").joinpath("notions.txt").read_text("utf-8")
    found: dict[str, list[tuple[str, str]]] = {language: [] for language in LANGUAGES}
    for line in written.splitlines():
        if line.startswith("#"):
            continue
        columns = [column.split() for column in line.split("|")]
        name = f"@{columns[0][0]}"
        for language, words in zip(LANGUAGES, columns, strict=True):
            found[language] += ((word, name) for word in words)
    return found


def _places(language: str) -> Iterator[tuple[str, str]]:
    """Yield the names of countries and of the cities of time zones, and the adjectives by CLDR."""
    try:
        locale = Locale(language)
    except UnknownLocaleError:
        return
    for code, name in locale.territories.items():
        if _COUNTRY.fullmatch(code) and code not in _LEFT_OUT:
            yield name, f"={code}"
    for zone, names in locale.time_zones.items():
        city = names.get("city") or zone.rpartition("/")[2].replace("_", " ")
        if not zone.startswith("Etc"):
            yield city, f"={zone.rpartition('/')[2]}"


def _meanings(language: str, named: Iterable[tuple[str, str]]) -> Meanings:
    words: dict[str, set[str]] = {}
    runs: dict[str, set[tuple[tuple[str, ...], str]]] = {}
    spelled: dict[str, str] = {}
    for written, name in named:
        if language in _UNSPACED_LANGUAGES:
            if len(written) > 1:
                spelled.setdefault(written, name)
            continue
        begins = tuple(filter(None, map(word_prefix, tokens(written))))
        if len(begins) == 1 and (name[0] == "@" or len(begins[0]) >= _MIN_LETTERS):
            words.setdefault(begins[0], set()).add(name)
        elif len(begins) > 1:
            runs.setdefault(begins[0], set()).add((begins, name))
    return Meanings(
        {begin: tuple(sorted(names)) for begin, names in words.items()},
        {begin: tuple(sorted(found)) for begin, found in runs.items()},
        _pattern(spelled),
        spelled,
    )


def _pattern(spelled: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted(spelled, key=lambda word: (-len(word), word))
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
