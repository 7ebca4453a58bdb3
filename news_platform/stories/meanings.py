"""Text in, its words out, and what they name in each language: places, notions, dates, amounts.

Places, months and words such as *million* are those of CLDR; notions and names that scripts spell
differently are a table, `notions.txt`.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise

from anyascii import anyascii
from babel import Locale, UnknownLocaleError
from babel.core import get_global

LANGUAGES = ("en", "de", "fr", "es", "it", "pl", "tr", "ar", "ru", "zh")
"""The languages of the columns of `notions.txt`."""
# Endings of words differ by grammar and language, beginnings less: `elect-ion`, `elecc-iones`.
CUT = 5
# Marks are letters of Indic scripts; elsewhere they are left of letters that have no single sign.
_TOKEN = re.compile(
    r"\d+(?:[.,]\d+)*|(?:[^\W\d_]+[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff]*)+"
)
# Scripts without spaces: Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
_UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th", "lo", "my", "km"})
# The Arabic article with the conjunctions and prepositions that are written with it.
_ARABIC_ARTICLE = re.compile("^(?:[وفبكل]?ال|لل)(?=..)")
_THOUSANDS = re.compile(r"[.,](?=\d{3}(?!\d))")
# The pronoun is never written so outside of headlines in capitals.
_US = re.compile(r"\bU\.?S\b\.?")
_COUNTRY = re.compile("[A-Z]{2}")
# Codes that are no places.
_LEFT_OUT = frozenset({"EU", "EZ", "UN", "XA", "XB", "ZZ", "QO"})
_MIN_LETTERS = 4
# Countries whose adjective is the name of a language, which may begin otherwise than their own.
_NAMED_AFTER = {
    "cs": "CZ",
    "da": "DK",
    "el": "GR",
    "fi": "FI",
    "ga": "IE",
    "he": "IL",
    "hi": "IN",
    "hu": "HU",
    "it": "IT",
    "ja": "JP",
    "ko": "KR",
    "nb": "NO",
    "no": "NO",
    "ru": "RU",
    "sv": "SE",
    "th": "TH",
    "uk": "UA",
}
# `Iran-ian`, `irak-isch`: what may follow a short name of a country.
_NEXT_LETTERS = "aeiknosu"


@lru_cache(200_000)
def word_prefix(word: str) -> str:
    """Return the first letters of a word, transliterated to Latin."""
    if not word.isascii():
        word = anyascii(_ARABIC_ARTICLE.sub("", word))
    return "".join(letter for letter in word.lower() if letter.isalnum())[:CUT]


def number_text(written: str) -> str:
    """Return a number without separators of thousands, with a point before decimals."""
    plain = _THOUSANDS.sub("", written).replace(",", ".")
    return plain.lstrip("0") or "0"


def tokens(text: str) -> list[str]:
    """Return the words and numbers of a text; unspaced scripts as pairs of characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        text = _UNSPACED.sub(lambda run: f" {' '.join(_pairs(run.group()))} ", text)
    return _TOKEN.findall(_US.sub("USA", text))


def _pairs(run: str) -> Iterator[str]:
    return (one + other for one, other in pairwise(run)) if len(run) > 1 else iter(run)


@dataclass(frozen=True, slots=True)
class Meanings:
    """What the words of a language name.

    `words` and `runs` are beginnings of one word and of several, `spelled` the strings of unspaced
    scripts, `scales` words such as *million*, and `months` the names of months.
    """

    words: Mapping[str, tuple[str, ...]]
    runs: Mapping[str, tuple[tuple[tuple[str, ...], str], ...]]
    spelled: Mapping[str, str]
    unspaced: re.Pattern[str] | None
    scales: Mapping[str, int]
    scaled: re.Pattern[str] | None
    months: Mapping[str, int]
    dated: re.Pattern[str] | None

    def with_plain_numbers(self, text: str) -> str:
        """Return a text with amounts such as *3.5 million* as one number."""
        return self.scaled.sub(self._plain, text) if self.scaled is not None else text

    def _plain(self, found: re.Match[str]) -> str:
        # Letters without regard to case are more than those that have one small form.
        scale = self.scales.get(_small(found[2]))
        return f" {float(number_text(found[1])) * scale:.0f} " if scale else found[0]

    def dates(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield the days that a text names, as `#MM-DD`, and where."""
        for found in self.dated.finditer(text) if self.dated is not None else ():
            day = int(found["a"] or found["b"])
            month = self.months.get(_small(found["am"] or found["bm"]))
            if month is not None and 1 <= day <= 31:
                yield f"#{month:02}-{day:02}", found.start()


def _small(word: str) -> str:
    """Return a word in small letters; a Turkish capital has a dot of its own."""
    return word.lower().replace("\u0307", "")


_NONE = Meanings({}, {}, {}, None, {}, None, {}, None)


@cache
def read_meanings(language: str) -> Meanings:
    """Return what the words of a language name; nothing is known of one without a locale."""
    try:
        locale = Locale(language)
    except (UnknownLocaleError, ValueError):
        return _NONE
    # Short names of CLDR are mostly other words; the table is read by people.
    places = (one for one in _places(locale) if len(word_prefix(one[0])) >= _MIN_LETTERS)
    named = [*places, *_read_notions().get(language, ())]
    scales, months = _scales(locale), _months(locale)
    words, runs, spelled = _named(named, is_spaced=language not in _UNSPACED_LANGUAGES)
    return Meanings(
        words,
        runs,
        spelled,
        _any_of(spelled),
        scales,
        _scaled(scales),
        months,
        _dated(months),
    )


@cache
def _read_notions() -> Mapping[str, list[tuple[str, str]]]:
    """Return the words of each language with the notion that each names."""
    written = files("news_platform.stories").joinpath("notions.txt").read_text("utf-8")
    found: dict[str, list[tuple[str, str]]] = {language: [] for language in LANGUAGES}
    for line in written.splitlines():
        if line.startswith("#"):
            continue
        columns = [column.split() for column in line.split("|")]
        first = columns[0].pop(0) if columns[0][0][0] == "=" else f"@{columns[0][0]}"
        for language, words in zip(LANGUAGES, columns, strict=True):
            found[language] += ((word, first) for word in words)
    return found


def _places(locale: Locale) -> Iterator[tuple[str, str]]:
    """Yield the names of countries and of the cities of time zones."""
    for code, name in locale.territories.items():
        if _COUNTRY.fullmatch(code) and code not in _LEFT_OUT:
            yield name, f"={code}"
    for code, name in locale.languages.items():
        if code in _NAMED_AFTER:
            yield name, f"={_NAMED_AFTER[code]}"
    known = locale.time_zones
    for zone in get_global("zone_territories"):
        if not zone.startswith("Etc"):
            last = zone.rpartition("/")[2]
            yield known.get(zone, {}).get("city") or last.replace("_", " "), f"={last}"


def _scales(locale: Locale) -> Mapping[str, int]:
    """Return the words of a language that multiply a number, in small letters."""
    found: dict[str, int] = {}
    for style in locale.compact_decimal_formats.values():
        for sizes in style.values():
            for size, form in sizes.items():
                zeros, word = _scale_word(str(form.pattern))
                if len(word) > 1 or not word.isascii():
                    found.setdefault(word, int(size) // 10 ** (zeros - 1))
    return {word: scale for word, scale in found.items() if word and scale >= 1000}


def _scale_word(pattern: str) -> tuple[int, str]:
    word = re.sub(r"[0¤'.\s\u200f\u200e]", "", pattern)
    return max(pattern.count("0"), 1), _small(word)


def _scaled(scales: Mapping[str, int]) -> re.Pattern[str] | None:
    if not scales:
        return None
    # Where words are not written apart, nothing tells where a word ends.
    ends = r"(?!\w)" if all(len(word) > 1 for word in scales) else ""
    number = r"(?<![\d.,])(\d+(?:[.,]\d{3})*(?:[.,]\d+)?)"
    return re.compile(rf"{number}\s?({_alternatives(scales)}){ends}", re.I)


def _months(locale: Locale) -> Mapping[str, int]:
    found: dict[str, int] = {}
    # Babel shares what a locale takes over from another, also after it has resolved it for a third:
    # the names of months that stand alone would depend on which language was read before.
    for width in ("wide", "abbreviated"):
        for number, name in locale.months["format"][width].items():
            found.setdefault(_small(name).rstrip("."), number)
    numbered = {name: number for name, number in found.items() if name[:1].isdigit()}
    return numbered or {name: number for name, number in found.items() if name}


def _dated(months: Mapping[str, int]) -> re.Pattern[str]:
    names = _alternatives(months)
    if all(name[0].isdigit() for name in months):
        return re.compile(rf"(?P<am>{names})\s?(?P<a>\d\d?)[日일](?P<b>)(?P<bm>)")
    return re.compile(
        rf"\b(?P<a>\d\d?)(?:\.|º|er|th|st|nd|rd)?\s(?:de\s)?(?P<am>{names})\b"
        rf"|\b(?P<bm>{names})\.?\s(?P<b>\d\d?)\b(?![:.]\d)",
        re.I,
    )


def _alternatives(words: Iterable[str]) -> str:
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(map(re.escape, longest_first))


def _any_of(words: Iterable[str]) -> re.Pattern[str] | None:
    alternatives = _alternatives(words)
    return re.compile(alternatives) if alternatives else None


_Runs = Mapping[str, tuple[tuple[tuple[str, ...], str], ...]]


def _named(
    named: Iterable[tuple[str, str]], *, is_spaced: bool
) -> tuple[Mapping[str, tuple[str, ...]], _Runs, Mapping[str, str]]:
    words: dict[str, set[str]] = {}
    runs: dict[str, set[tuple[tuple[str, ...], str]]] = {}
    spelled: dict[str, str] = {}
    for written, name in named:
        if not is_spaced:
            if len(written) > 1:
                spelled.setdefault(written, name)
            continue
        begins = tuple(filter(None, map(word_prefix, tokens(written))))
        if len(begins) == 1:
            words.setdefault(begins[0], set()).add(name)
            if len(begins[0]) == _MIN_LETTERS and _COUNTRY.fullmatch(name[1:]):
                for letter in _NEXT_LETTERS:
                    words.setdefault(begins[0] + letter, set()).add(name)
        elif len(begins) > 1:
            runs.setdefault(begins[0], set()).add((begins, name))
    return (
        {begin: tuple(sorted(names)) for begin, names in words.items()},
        {begin: tuple(sorted(found)) for begin, found in runs.items()},
        spelled,
    )
