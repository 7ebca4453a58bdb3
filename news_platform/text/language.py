"""Detect the language of a text, with the probability of the guess (py3langid, normalized).

The guess is right for 98.5 % of single sentences, and for 99.8 % of those with a probability of 0.8
or more. Two or three words are too few for any detector; the probability is then low.
"""

import copy
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

UNKNOWN = "unknown"
# The detector processes bytes in Python, 0.2 ms per thousand; on real articles, results and
# probabilities no longer change after the first thousand characters.
_MAX_CHARS = 3_000
# Of a text that is this sure by its beginning, the rest is not read: the answer stays the same.
_FIRST_CHARS = 1_000
_SURE = 0.99
# Probabilities among given languages are rounded: the last bits depend on the processor.
_DIGITS = 4

# The ISO 639-1 codes that the detector knows.
_KNOWN_CODES = """
af am an ar as az ba be bg bn br bs ca cs cy da de dz el en eo es et eu fa fi fo fr fy ga gd gl gu
ha he hi hr ht hu hy id ig is it ja jv ka kk km kn ko ku ky la lb lg ln lo lt lv mg mk ml mn mr ms
mt my ne nl nn no oc om or pa pl ps pt qu ro ru rw sa se si sk sl sn so sq sr st sv sw ta te tg th
tk tl tr tt ug uk ur uz vi vo wa xh yo zh zu
"""
LANGUAGES = frozenset(_KNOWN_CODES.split())
# The languages of most pages. Among all languages, the detector divides a short Spanish text
# between Spanish, Aragonese, Extremaduran and Galician; among these it is sure.
_COMMON_CODES = """
ar cs da de el en es fi fr hu it ja ko nl no pl pt ro ru sv tr zh
"""
COMMON_LANGUAGES = frozenset(_COMMON_CODES.split())


@dataclass(frozen=True, slots=True)
class Language:
    """An ISO 639-1 code (`unknown` for text without letters) and its probability, 0 to 1."""

    code: str
    probability: float


def detect(text: str, among: Collection[str] | None = None) -> Language:
    """Return the most likely language of the text, by its first 3,000 characters.

    `among` restricts the answer to these languages; codes that the detector does not know are
    ignored.
    """
    if among is not None:
        return rank_languages(text, among)[0]
    for size in (_FIRST_CHARS, _MAX_CHARS):
        code, probability = _identifier().classify(text[:size])
        if probability >= _SURE or len(text) <= size:
            break
    if not any(map(str.isalpha, text[:size])):
        return Language(UNKNOWN, 0.0)
    return Language(code, float(probability))


def rank_languages(text: str, among: Collection[str]) -> list[Language]:
    """Return the languages of `among` by their probability for the text, most likely first."""
    beginning, known = text[:_MAX_CHARS], LANGUAGES.intersection(among)
    if not known or not any(map(str.isalpha, beginning)):
        return [Language(UNKNOWN, 0.0)]
    ranked = _restricted(known).rank(beginning)
    return [Language(code, round(probability, _DIGITS)) for code, probability in ranked]


@cache
def _identifier() -> Any:  # py3langid is untyped
    # Loading the model takes 0.8 s, so it happens at the first call, not at import.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


# Each takes about 10 MB; nearly all pages declare one of the common languages.
@lru_cache(maxsize=8)
def _restricted(languages: frozenset[str]) -> Any:
    identifier = copy.copy(_identifier())
    identifier.set_languages(languages)
    # In half precision the sums differ visibly between processors. In this order the languages of
    # one feature lie side by side in memory.
    identifier.nb_ptc = identifier.nb_ptc.astype("float32", order="C")
    return identifier
