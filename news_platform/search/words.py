"""Turn text into searchable words: one spelling for case, accents and scripts without spaces.

The index and the query go through the same two functions, so that they always agree.
"""

import re
import unicodedata
from functools import cache, lru_cache

import tantivy

# Longer runs are data, such as encoded pictures, and would only fill the dictionary.
_LONGEST_WORD_BYTES = 200
# Scripts that are written without spaces: Thai, Lao, Burmese, Khmer, kana, Han. Each character is
# a word of its own there, and a word of the query is a phrase of characters.
_NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
# The marks that are left out: accents, Hebrew points and Arabic vowel signs. In other scripts, such
# as Devanagari, marks are letters; the breve of й and the dots of ё are letters to their readers.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")
# Quotes, dashes, dots and blanks, which only separate words.
_FREQUENT_SIGNS = "\u2019\u2018\u201c\u201d\u2013\u2014\u2026\u00a0\u00ab\u00bb\u2022"
_FOREIGN = re.compile("[^\x00-\x7f]+")
# Words recur, sentences of scripts without spaces do not.
_LONGEST_CACHED, _CACHED_RUNS = 24, 1 << 17
_CYRILLIC_LETTERS = re.compile("[\u0400-\u052f]+")


def fold(text: str) -> str:
    """Return the text in the spelling that is searched: without case, accents and variants."""
    if not text.isascii():
        for sign in _FREQUENT_SIGNS:  # without them most English texts are ASCII
            text = text.replace(sign, " ")
    # Only what is not ASCII needs more than lower case. Each run is folded by itself, because marks
    # after an ASCII letter are left out anyway; runs are mostly words, which recur.
    return (text if text.isascii() else _FOREIGN.sub(_folded_run, text)).lower()


def _folded_run(found: re.Match[str]) -> str:
    run = found[0]
    return _folded(run) if len(run) > _LONGEST_CACHED else _cached(run)


def _folded(run: str) -> str:
    folded = unicodedata.normalize("NFKC", run).casefold()
    return _NO_SPACES.sub(_spaced, _without_marks(folded))


def _spaced(found: re.Match[str]) -> str:
    return f" {' '.join(found[0])} "


def words(text: str) -> list[str]:
    """Return the words of a text, folded, in their order."""
    found: list[str] = analyzer().analyze(fold(text))
    return found


@cache
def analyzer() -> tantivy.TextAnalyzer:
    """Return the tokenizer of the index: runs of letters and digits."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    return builder.filter(tantivy.Filter.remove_long(_LONGEST_WORD_BYTES)).build()


_cached = lru_cache(_CACHED_RUNS)(_folded)


def _without_marks(text: str) -> str:
    if text.isascii():
        return text
    # Cyrillic is kept as it is composed; everything else loses its marks.
    parts, last = [], 0
    for letters in _CYRILLIC_LETTERS.finditer(text):
        parts += [_decomposed(text[last : letters.start()]), letters[0]]
        last = letters.end()
    return "".join((*parts, _decomposed(text[last:])))


def _decomposed(text: str) -> str:
    stripped = _MARKS.sub("", unicodedata.normalize("NFD", text))
    # Kana and Hangul are taken apart, too, but their parts are not accents.
    return unicodedata.normalize("NFC", stripped)
