"""Find near-identical texts of one page by the Jaccard similarity of their word shingles."""

import math
from collections import defaultdict

from news_platform.text.words import words

# Maps every ASCII byte to lower case, or to a blank if it is not part of a word.
_WORD_BYTES = bytes(
    ord(chr(code).lower()) if f"x{chr(code)}".isidentifier() else ord(" ") for code in range(256)
)
# The non-ASCII characters of most English texts; all of them separate words.
_TYPOGRAPHY = "\u2019\u2018\u201c\u201d\u2013\u2014\u2026\u2022"

# Hashes of word n-grams: faster to create and sort than the n-grams, and practically unique.
Shingles = frozenset[int]


class SeenTexts:
    """The texts seen so far, indexed to find a near-identical one without comparing all pairs.

    Two sets of n shingles with Jaccard `similarity` share one of the first (1 - similarity)·n + 1
    shingles of either in any fixed order, so only texts that share one of those are compared.
    """

    def __init__(self, *, similarity: float, shingle_words: int) -> None:
        self._similarity = similarity
        self._size = shingle_words
        self._by_prefix: dict[int, list[int]] = defaultdict(list)
        self._long: list[tuple[str, Shingles]] = []
        self._short: dict[str, str] = {}
        # In texts with fewer words, one different word makes the similarity too low: compare them
        # for equality.
        self._few_words = math.ceil(1 / max(1 - similarity, 1e-9)) if similarity < 1 else math.inf

    def similar(self, text: str) -> tuple[str, float] | None:
        """Return the first near-identical text seen before and its similarity, or remember this."""
        if text.count(" ") < self._few_words:
            return self._similar_short(text, " ".join(_words(text)))
        return self._similar_long(text, self._shingles(text))

    def _similar_short(self, text: str, found: str) -> tuple[str, float] | None:
        earlier = self._short.setdefault(found, text)
        return None if earlier is text else (earlier, 1.0)

    def _similar_long(self, text: str, found: Shingles) -> tuple[str, float] | None:
        prefix = self._prefix(found)
        near = {number for part in prefix for number in self._by_prefix[part]}
        # In the order of the page: sets of hashes are ordered differently in every process.
        for number in sorted(near):
            earlier, other = self._long[number]
            similarity = _jaccard(found, other)
            if similarity >= self._similarity:
                return earlier, similarity
        for part in prefix:
            self._by_prefix[part].append(len(self._long))
        self._long.append((text, found))
        return None

    def _prefix(self, found: Shingles) -> list[int]:
        # 1e-9 guards against rounding: (1 - 0.9) * 10 is slightly less than 1.
        differing = math.floor((1 - self._similarity) * len(found) + 1e-9)
        return sorted(found)[: differing + 1]

    def _shingles(self, text: str) -> Shingles:
        found = _words(text)
        runs = (found[start:] for start in range(self._size))
        return frozenset(map(hash, zip(*runs, strict=False))) or frozenset([hash(tuple(found))])


def _jaccard(left: Shingles, right: Shingles) -> float:
    common = len(left & right)
    return common / (len(left) + len(right) - common)


def _words(text: str) -> list[str]:
    """Return the words of a text; ASCII takes a faster path with the same result."""
    plain = text if text.isascii() else _without_typography(text)
    if not plain.isascii():
        return words(text)
    return plain.encode("ascii").translate(_WORD_BYTES).decode("ascii").split()


def _without_typography(text: str) -> str:
    for mark in _TYPOGRAPHY:
        text = text.replace(mark, " ")
    return text
