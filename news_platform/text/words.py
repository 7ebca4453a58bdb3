"""Split a text into words, count them, and compare texts by their runs of words (shingles)."""

import re
from collections.abc import Set

from news_platform.text.normalize import normalize_text

# Scripts without spaces (Thai, Lao, Khmer, Myanmar, kana, Han): every character is a word.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
_COUNTED_WORD = re.compile(r"\w+")
# Han and kana are written without spaces; a word has two characters on average.
_HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_LETTERS_PER_WORD = 2


def words(text: str) -> list[str]:
    """Return the words of the normalized text in order, without punctuation."""
    return _WORD.findall(normalize_text(text))


def shingles(text: str, size: int) -> frozenset[str]:
    """Return every run of `size` words; a shorter text gives one run, an empty text none."""
    found = words(text)
    if len(found) <= size:
        return frozenset([" ".join(found)] if found else [])
    return frozenset(map(" ".join, zip(*(found[start:] for start in range(size)), strict=False)))


def jaccard(left: Set[str], right: Set[str]) -> float:
    """Return the share of common members, from 0 to 1; 0 for two empty sets."""
    common = len(left & right)
    return common / (len(left) + len(right) - common) if common else 0.0


def count_words(text: str) -> int:
    """Return the number of words; Chinese and Japanese count half their characters."""
    if text.isascii():
        return len(_COUNTED_WORD.findall(text))
    unspaced = len(_HAN_OR_KANA.findall(text))
    others = _HAN_OR_KANA.sub(" ", text) if unspaced else text
    return len(_COUNTED_WORD.findall(others)) + unspaced // _LETTERS_PER_WORD


def cut_at_word_end(text: str, limit: int) -> str:
    """Return at most `limit` characters, cut at the end of a word where there is one."""
    if len(text) <= limit:
        return text
    # One character more shows whether a word ends exactly at the limit.
    cut = text[: limit + 1].rsplit(maxsplit=1)[0] if not text[limit].isspace() else text[:limit]
    return cut.rstrip() if len(cut) <= limit else text[:limit]
