"""Detect the language of every block, although most blocks are too short for a detector.

A detector needs a sentence or two. Blocks of at least `_LONG` characters are detected on their own;
shorter ones take the language of the joined text of their list, then of their section, then of
their page, then the declared one. Names are not a language: a list that the detector takes for
another language speaks it only if it has words of one. A short block that is clearly in another
language is recognised in any context.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby, repeat

from news_platform.source_records.blocks import (
    CODE,
    HEADING,
    BlockDecision,
    BlockLanguage,
    iter_kept,
)
from news_platform.source_records.words import word_list
from news_platform.text.language import COMMON_LANGUAGES, Language, detect, rank_languages

_COMMON_WORDS = {"en": frozenset(word_list("languages", "english"))}
_FOREIGN_WORDS = frozenset(word_list("languages", "foreign"))
_SPOKEN = {
    "en": (_COMMON_WORDS["en"], word_list("languages", "english_beginnings")),
    "": (frozenset(word_list("languages", "joining")), word_list("languages", "beginnings")),
}
_STRIPPED = ".,:;()|–-•\"'’"

_LONG = 200
# More text does not change the result; the detector takes 0.1 ms plus 1 ms per 1,000 characters.
_SAMPLE_CHARS = 160
_PAGE_CHARS = 500
# At most this much of each block, so that the first block does not decide alone.
_BEGINNING_CHARS = 100
_SECTION_CHARS = 80
# The joined items of a list are of one kind, so less text is enough.
_LIST_CHARS = 40
_LIST_ITEMS = 3
# A text of which more words are common in the target language is not wholly in another one.
_MIXED = 0.05
# Prose in the target language has at least this share of common words.
_PROSE = 0.1
# Stands for every language but English in the vocabulary.
_ELSEWHERE = ""
# The share of a page's text that must be in another language to overrule the declared one.
_AGAINST_DECLARED = 0.9
# A text with this share of words known from the target language is not detected on its own.
# Related languages share up to half of their words in prose; for a text without a foreign word or
# letter a lower share is enough.
_SHARED_WORDS_CLOSE = 0.55
_SHARED_WORDS = 0.25
# Bounds the time for a page of thousands of short blocks.
_MAX_DETECTED_BLOCKS = 500
# For shorter ASCII texts the detector never reaches a probability of 0.5.
_MIN_DETECTED_CHARS = 25
# A text of this length without a common word is unusual enough to run the detector.
_ODD_CHARS = 60
_COMMON = 0.01
# In a text of at most this many words, one known word already exceeds the share of `_COMMON`.
_FEW_WORDS = 100
# The probability required of a short text with a foreign word: "Facultad de Ingeniería" does not
# reach a higher one.
_LIKELY = 0.5

_NOT_LATIN = frozenset(word_list("languages", "not_latin"))
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[a-zA-ZÀ-ɏ]")
# Letters beyond ASCII, without quotes, dashes, arrows and symbols.
_FOREIGN_LETTER = re.compile(r"[À-ÖØ-öø-ɏͰ-\u1fff\u3040-\ud7ff]")
_ASSUMED = BlockLanguage(None, None, "assumed")


@dataclass(slots=True)
class _TargetLanguage:
    """The target language, the required probability, and the target's words seen so far."""

    target: str
    sure: float
    plausible: frozenset[str] = COMMON_LANGUAGES
    words: set[str] = field(default_factory=set)

    def is_target(self, language: BlockLanguage | None) -> bool:
        return language is not None and language.code == self.target

    def threshold(self, text: str) -> float | None:
        """Return the probability from which another language is accepted, or None: do not detect.

        The detector runs for texts with a foreign word or letter, and for unusual ones.
        """
        own = text.lower().split()
        has_word = self.target not in _COMMON_WORDS or not _FOREIGN_WORDS.isdisjoint(own)
        has_letter = not text.isascii() and _FOREIGN_LETTER.search(text) is not None
        if has_word:
            return _LIKELY if self.shared(own) < _SHARED_WORDS_CLOSE else None
        if has_letter:
            return self.sure if self.shared(own) < _SHARED_WORDS else None
        if len(text) < _ODD_CHARS or (len(own) <= _FEW_WORDS and not self.words.isdisjoint(own)):
            return None
        return self.sure if self.shared(own) < _COMMON else None

    def shared(self, own: Sequence[str]) -> float:
        """Return the share of these words that were seen in text of the target language."""
        return sum(map(self.words.__contains__, own)) / (len(own) or 1)


def detect_languages(
    decisions: Sequence[BlockDecision], *, sure: float, target: str, declared: str | None
) -> None:
    """Set the language of every block that is still kept.

    `sure` is the probability from which a detected language is accepted.
    """
    kept = list(iter_kept(decisions))
    stated = declared_code(declared)
    plausible = COMMON_LANGUAGES | {target, stated or target}
    wanted = _TargetLanguage(target, sure, plausible, set(_COMMON_WORDS.get(target, ())))
    _detect_long(kept, wanted)
    page = _page_language(kept, wanted, stated)
    lists = _list_languages(kept, wanted, page)
    sections = _section_languages(kept, wanted, page)
    detected = 0
    for decision in kept:
        if decision.language is not None:
            continue
        text = decision.block.text
        near = lists.get(decision.order) or sections.get(decision.section)
        around = near or page
        if around and around.code in _NOT_LATIN and text.isascii():
            around = None  # written in another script
        is_allowed = detected < _MAX_DETECTED_BLOCKS
        at_least = _threshold(decision, wanted, around) if is_allowed else None
        decision.language = around or _ASSUMED
        if at_least is not None:
            decision.language = (
                _block_language(text, wanted, at_least, is_around_target=wanted.is_target(around))
                or decision.language
            )
            detected += 1


def declared_code(declared: str | None) -> str | None:
    """Return the ISO 639-1 part of a declared language: `en` of `en-GB`."""
    code = (declared or "").strip().lower().replace("_", "-").partition("-")[0]
    return code if code.isalpha() and len(code) == 2 else None


def _detect_long(kept: Iterable[BlockDecision], target: _TargetLanguage) -> None:
    """Detect the language of the long blocks; collect the words of those in the target language."""
    known: BlockLanguage | None = None
    for decision in kept:
        text = decision.block.text
        if len(text) < _LONG or decision.block.kind == CODE:
            continue
        if known and target.threshold(text) is None:
            decision.language = known
        else:
            decision.language = (
                _confirmed(text, target)
                or _detected(text, target, at_least=target.sure)
                or _spoken(text, "block", target)
            )
        if decision.language and target.is_target(decision.language):
            known = known or replace(decision.language, source="page")
            target.words.update(text.lower().split())


def _confirmed(text: str, target: _TargetLanguage) -> BlockLanguage | None:
    """Return the target language if every tenth word is one of its common ones.

    The detector then need only confirm it among the plausible languages.
    """
    sample = text[:_SAMPLE_CHARS]
    words, common = sample.lower().split(), _COMMON_WORDS.get(target.target, frozenset())
    if sum(map(common.__contains__, words)) < _PROSE * len(words):
        return None
    best = rank_languages(sample, target.plausible)[0]
    if best.code != target.target or best.probability < target.sure:
        return None
    return BlockLanguage(best.code, best.probability, "block")


def _threshold(
    decision: BlockDecision, target: _TargetLanguage, around: BlockLanguage | None
) -> float | None:
    """Return the probability that replaces the language around, or None: do not detect."""
    text = decision.block.text
    is_ascii = text.isascii()
    # Code is not in a natural language.
    if decision.block.kind == CODE or (is_ascii and around and len(text) < _MIN_DETECTED_CHARS):
        return None
    if not is_ascii and _LETTER.search(text) and not _LATIN.search(text):
        return 0.0  # another script: accept whatever is detected
    return target.threshold(text) if target.is_target(around) else _LIKELY


def _page_language(
    kept: Sequence[BlockDecision], target: _TargetLanguage, stated: str | None
) -> BlockLanguage | None:
    declared = BlockLanguage(stated, None, "declared") if stated else None
    found = _prevailing(kept, "page")
    # Only nearly all of the long texts overrule the declared language.
    if found and stated and found.code != stated:
        return _prevailing(kept, "page", share=_AGAINST_DECLARED) or declared
    if found is None:
        beginnings = (decision.block.text[:_BEGINNING_CHARS] for decision in kept)
        text = " ".join(beginnings)[:_PAGE_CHARS]
        found = _agreed(kept, target, stated, text) or _spoken(text, "page", target)
    return found or declared


def _agreed(
    kept: Iterable[BlockDecision], target: _TargetLanguage, stated: str | None, text: str
) -> BlockLanguage | None:
    """Return the target language if the page declares it and its text confirms it.

    `_spoken` would answer the same or nothing, after the most expensive detection of the page.
    """
    if stated != target.target or not _LATIN.search(text):
        return None
    long = [found for found in (decision.language for decision in kept) if target.is_target(found)]
    if not long or _speaks(text.lower().split(), _ELSEWHERE):
        return None
    surest = max(found.probability or 0.0 for found in long if found)
    return BlockLanguage(target.target, surest, "page")


def _list_languages(
    kept: Sequence[BlockDecision], target: _TargetLanguage, page: BlockLanguage | None
) -> Mapping[int, BlockLanguage]:
    """Return the language of every list that is long enough to detect it, by its blocks."""
    found: dict[int, BlockLanguage] = {}
    for _, group in groupby(kept, key=_list_key):
        members = list(group)
        if len(members) < _LIST_ITEMS or members[0].block.kind == HEADING:
            continue
        if language := _group_language(members, target, page, source="list"):
            found.update({decision.order: language for decision in members})
    return found


def _list_key(decision: BlockDecision) -> tuple[str | None, str, int]:
    block = decision.block
    return decision.section, block.kind, id(block.container)


def _section_languages(
    kept: Iterable[BlockDecision], target: _TargetLanguage, page: BlockLanguage | None
) -> Mapping[str | None, BlockLanguage]:
    """Return the language of every section that is long enough to detect it."""
    members: dict[str | None, list[BlockDecision]] = defaultdict(list)
    for decision in kept:
        members[decision.section].append(decision)
    found = {
        key: _group_language(group, target, page, source="section")
        for key, group in members.items()
    }
    return {section: language for section, language in found.items() if language}


def _group_language(
    group: Sequence[BlockDecision],
    target: _TargetLanguage,
    page: BlockLanguage | None,
    *,
    source: str,
) -> BlockLanguage | None:
    # A group of long blocks only has nobody who would ask for its language.
    if all([decision.language for decision in group]):
        return None
    if prevailing := _prevailing(group, source):
        return prevailing
    text = " ".join(decision.block.text for decision in group)[:_PAGE_CHARS]
    if len(text) < (_LIST_CHARS if source == "list" else _SECTION_CHARS):
        return None
    if target.is_target(page) and not _may_be_foreign(text, target):
        return None
    return _spoken(text, source, target)


def _may_be_foreign(text: str, target: _TargetLanguage) -> bool:
    """Return whether a text on a page in the target language is worth the detector's time."""
    if _LATIN.search(text) and not _speaks(text.lower().split(), _ELSEWHERE):
        return target.target not in _COMMON_WORDS
    return target.threshold(text) is not None


def _spoken(text: str, source: str, target: _TargetLanguage) -> BlockLanguage | None:
    """Return the language of a joined text among the plausible ones, None if it is not sure."""
    ranked = rank_languages(text[:_PAGE_CHARS], target.plausible)
    code, probability = ranked[0].code, ranked[0].probability
    if probability < target.sure:
        return None
    if code != target.target and _LATIN.search(text):
        words = text.lower().split()
        common = _COMMON_WORDS.get(target.target, frozenset())
        if sum(map(common.__contains__, words)) > _MIXED * len(words):
            return None
        if not _speaks(words, code):
            return None
    return _found(code, probability, source, ranked, target)


def _found(
    code: str, probability: float, source: str, ranked: Iterable[Language], target: _TargetLanguage
) -> BlockLanguage:
    """Return a language; if it is another one than the target, with the target's probability."""
    if code == target.target:
        return BlockLanguage(code, probability, source)
    of_target = next((other.probability for other in ranked if other.code == target.target), 0.0)
    return BlockLanguage(code, probability, source, of_target)


def _block_language(
    text: str, target: _TargetLanguage, at_least: float, *, is_around_target: bool
) -> BlockLanguage | None:
    """Return the language of a short block, None if the one around it is as good a guess."""
    is_short_latin = len(text) < _ODD_CHARS and _LATIN.search(text)
    is_name = is_short_latin and not _speaks(text.lower().split(), _ELSEWHERE)
    if is_name and is_around_target and target.target in _COMMON_WORDS:
        return None
    found = _detected(text, target, at_least=at_least)
    if target.is_target(found) or len(text) >= _ODD_CHARS or not _LATIN.search(text):
        return found
    # "Jürgen Schneider" is a name in any language.
    if found is None or not _speaks(text.lower().split(), found.code or ""):
        return _spoken(text, "block", target)
    return found


def _prevailing(
    group: Sequence[BlockDecision], source: str, *, share: float = 0.5
) -> BlockLanguage | None:
    """Return the language of more than this share of the text, or None."""
    judged = [
        (decision.language, len(decision.block.text)) for decision in group if decision.language
    ]
    if not judged:
        return None
    chars: dict[str | None, int] = {}
    for language, size in judged:
        chars[language.code] = chars.get(language.code, 0) + size
    code = max(chars, key=chars.__getitem__)
    if chars[code] <= share * sum([len(decision.block.text) for decision in group]):
        return None
    surest = max(
        (found for found, _ in judged if found.code == code),
        key=lambda found: found.probability or 0.0,
    )
    return replace(surest, source=source)


def _detected(text: str, target: _TargetLanguage, *, at_least: float) -> BlockLanguage | None:
    """Return the language of a block among all, None if it is less sure than required."""
    sample = text[:_SAMPLE_CHARS]
    found = detect(sample)
    # A code of three letters does not name a single language.
    if found.probability < at_least or len(found.code) != 2:
        return None
    is_target = found.code == target.target
    ranked = () if is_target else rank_languages(sample, target.plausible)
    return _found(found.code, found.probability, "block", ranked, target)


# Pages share most of their words, so nearly every word is looked up instead of examined.
@lru_cache(maxsize=32_768)
def _is_spoken(word: str, code: str) -> bool:
    words, beginnings = _SPOKEN[code]
    bare = word.strip(_STRIPPED)
    return bare in words or bare.startswith(beginnings)


def _speaks(words: Iterable[str], code: str) -> bool:
    """Return whether some of these words, in lower case, are words of a language, not names.

    Of the languages other than English it is not told which one.
    """
    known = code if code in _SPOKEN else ""
    return any(map(_is_spoken, words, repeat(known)))
