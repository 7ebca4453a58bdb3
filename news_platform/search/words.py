"""Turn text into searchable words, and choose the part of a text that shows the words of a query.

Words have one spelling for case, accents and scripts without spaces. The index and the query go
through the same two functions, so that they always agree.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
_FOREIGN = re.compile("[^\x00-\x7f]+")
# Words recur, sentences of scripts without spaces do not.
_LONGEST_CACHED, _CACHED_RUNS = 24, 1 << 17
_CYRILLIC_LETTERS = re.compile("[\u0400-\u052f]+")
_WORD = re.compile(r"\w+")
# Snippets of long texts come from their beginning, which is what a reader looks at first.
MOST_READ_CHARACTERS = 10_000
ELLIPSIS = "…"
_ENDS = ".!?…。！？"
# After a letter and before a space: not after the number of a list or the dots of an abbreviation.
_SENTENCE_END = re.compile(r"(?<=[\w”“\"')»])[.!?…]\s+|[。！？]")


def fold(text: str) -> str:
    """Return the text in the spelling that is searched: without case, accents and variants."""
    if text.isascii():
        return text.lower()
    # Only what is not ASCII needs more than lower case. Each run is folded by itself, because marks
    # after an ASCII letter are left out anyway; runs are mostly words, which recur.
    return _FOREIGN.sub(_folded_run, text).lower()


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


# The languages whose word forms are known, each with the name of its stemmer in tantivy.
STEMMERS = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}


@cache
def form_analyzer(language: str) -> tantivy.TextAnalyzer:
    """Return the tokenizer that reduces the folded words of a language to their stems."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    builder = builder.filter(tantivy.Filter.remove_long(_LONGEST_WORD_BYTES))
    return builder.filter(tantivy.Filter.stemmer(STEMMERS[language])).build()


@lru_cache(1 << 16)
def stem(word: str, language: str) -> str:
    """Return the stem of a folded word; the word itself in a language without a stemmer."""
    if language not in STEMMERS:
        return word
    return next(iter(form_analyzer(language).analyze(word)), word)


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


def snippet(
    text: str,
    phrases: Iterable[Sequence[str]],
    *,
    characters: int = 240,
    read: int = MOST_READ_CHARACTERS,
    language: str = "",
) -> Snippet:
    """Return the part of the text with the most different words of the query, in one line.

    It is looked for in the first `read` characters. Where it can, it begins and ends with a
    sentence; an ellipsis stands for what is cut.
    """
    line = " ".join(text[:read].split())
    wanted = {stem(word, language) for phrase in phrases for word in phrase}
    places = list(_places(line, wanted, language))
    before = characters // 4
    first = _best_start(places, characters - before) if places else 0
    start = _begin(line, first, before)
    room = characters - (len(ELLIPSIS) if start else 0)
    last = max((b for _, b, _ in places if b <= start + room), default=start)
    end = _end(line, start, last, room)
    lead = ELLIPSIS if start and not _SENTENCE_END.search(line[max(0, start - 3) : start]) else ""
    shown = (
        lead
        + line[start:end].strip()
        + (ELLIPSIS if end < len(line) and line[end - 1] not in _ENDS else "")
    )
    shift = len(lead) - start
    return Snippet(
        shown, tuple((a + shift, b + shift) for a, b, _ in places if start <= a and b <= end)
    )


def _begin(line: str, first: int, before: int) -> int:
    """Return the beginning of the sentence with the first found word, or of a word near it."""
    if first <= before:
        return 0
    # A sentence may begin twice as far before as a part of one.
    begins = [one.end() for one in _SENTENCE_END.finditer(line, max(0, first - 2 * before), first)]
    return begins[-1] if begins else _word_start(line, first - before)


def _end(line: str, start: int, last: int, room: int) -> int:
    """Return where a part ends: after the last sentence that fits, or else after a word."""
    if len(line) - start <= room:
        return len(line)
    limit = start + room - len(ELLIPSIS)
    sentences = [one.start() + 1 for one in _SENTENCE_END.finditer(line, last, limit)]
    if sentences:
        return sentences[-1]
    space = line.rfind(" ", last, limit)
    return space if space > start else limit


def _places(line: str, wanted: set[str], language: str) -> Iterator[tuple[int, int, str]]:
    """Yield where a word of the query stands, in any form, and which."""
    for found in _WORD.finditer(line):
        if hits := wanted.intersection(stem(word, language) for word in words(found[0])):
            yield found.start(), found.end(), min(hits)


def _best_start(places: Sequence[tuple[int, int, str]], characters: int) -> int:
    """Return where the part with the most different words begins; each place is passed twice."""
    inside = Counter[str]()
    best, most, end = 0, 0, 0
    for start, _, word in places:
        while end < len(places) and places[end][0] < start + characters:
            inside[places[end][2]] += 1
            end += 1
        # The first of the best: news tells the most important things first.
        if len(inside) > most:
            best, most = start, len(inside)
        inside[word] -= 1
        if not inside[word]:
            del inside[word]
    return best


def _word_start(line: str, place: int) -> int:
    return 0 if place == 0 else line.rfind(" ", 0, place + 1) + 1
