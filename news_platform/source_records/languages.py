"""Detect the language of every block, although most blocks are too short for a detector.

A detector needs a sentence or two. Blocks of at least `_LONG` characters are detected on their own;
shorter ones inherit the language of their section, then of their page, then the declared one. A
short block that is clearly in another language is still recognised.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from news_platform.source_records.blocks import CODE, BlockDecision, BlockLanguage, iter_kept
from news_platform.text.language import detect

# Words that hardly any other language has and that occur in most sentences of the language.
_ENGLISH = """
about after and any are because been before between but can could did does each every from get had
has have help here how if into its just know learn like made make many may more must need new now of
only other our out over people should since some such than that the their them then there these they
this those through time until up upon use used using very want was well were what when where which
while who whose why will with within without work would year years you your
"""
COMMON_WORDS = {"en": frozenset(_ENGLISH.split())}

# Articles, prepositions and the like of languages in Latin script that are not English words. One
# of them is a reason to run the detector, not proof: they occur in names too.
_FOREIGN = """
aan ako alla als ang au auf aus aux avec bei bij bir bu cette che chez como cu dalam dan dans dari
das de degli dei del della delle dem den dengan der des det di dla dos du een egy ein eine einer el
els em en es et ett fra für fuer gan gli het hogy ikke il ile im ini ist itu ja kami kwa la las
le les lo los med mga na nad nel nella ng nicht nie niet noi nos nostra nostro notre nous nuestra
nuestro och og op oraz où para på pada pe por prin qui que quel ses sie sind sobre sont sowie
su sua sur sus sy te tidak till til um un una und une uno unser untuk van ve voor vom von vos votre
vous wir y ya yang yn yr za zijn zu zum zur
"""
FOREIGN_WORDS = frozenset(_FOREIGN.split())

_LONG = 200
# More text does not change the result; the detector takes 0.1 ms plus 1 ms per 1,000 characters.
_SAMPLE_CHARS = 160
_PAGE_CHARS = 500
# At most this much of each block, so that the first block does not decide alone.
_BEGINNING_CHARS = 100
_SECTION_CHARS = 80
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

# Languages not written in Latin script: ASCII text on such a page is in another language.
_NOT_LATIN_CODES = """
am ar be bg bn el fa gu he hi hy ja ka kk km kn ko ky lo mk ml mn mr my ne or pa ps ru sa si sr ta
te tg th ug uk ur yi zh
"""
_NOT_LATIN = frozenset(_NOT_LATIN_CODES.split())
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[a-zA-ZÀ-ɏ]")
# Letters beyond ASCII, without quotes, dashes, arrows and symbols.
_FOREIGN_LETTER = re.compile(r"[À-ÖØ-öø-ɏͰ-\u1fff\u3040-\ud7ff]")
_ASSUMED = BlockLanguage(None, None, "assumed")

Languages = Mapping[str | None, BlockLanguage]


@dataclass(slots=True)
class _TargetLanguage:
    """The target language, the required probability, and the target's words seen so far."""

    target: str
    sure: float
    words: set[str] = field(default_factory=set)

    def is_target(self, language: BlockLanguage | None) -> bool:
        return language is not None and language.code == self.target

    def threshold(self, text: str) -> float | None:
        """Return the probability from which another language is accepted, or None: do not detect.

        The detector runs for texts with a foreign word or letter, and for unusual ones.
        """
        own = text.lower().split()
        has_word = self.target not in COMMON_WORDS or not FOREIGN_WORDS.isdisjoint(own)
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
    wanted = _TargetLanguage(target, sure, set(COMMON_WORDS.get(target, ())))
    _detect_long(kept, wanted)
    page = _page_language(kept, sure=sure, declared=declared)
    sections = _section_languages(kept, wanted, page)
    detected = 0
    for decision in kept:
        if decision.language is not None:
            continue
        text = decision.block.text
        around = _in_script(sections.get(decision.section) or page, text)
        is_allowed = detected < _MAX_DETECTED_BLOCKS
        at_least = _threshold(decision, wanted, around) if is_allowed else None
        decision.language = around or _ASSUMED
        if at_least is not None:
            decision.language = _detected(text, "block", at_least=at_least) or decision.language
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
            decision.language = _detected(text, "block", at_least=target.sure)
        if decision.language and target.is_target(decision.language):
            known = known or replace(decision.language, source="page")
            target.words.update(text.lower().split())


def _in_script(around: BlockLanguage | None, text: str) -> BlockLanguage | None:
    """Return the language around a text unless it is written in another script."""
    return None if around and around.code in _NOT_LATIN and text.isascii() else around


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
    kept: Sequence[BlockDecision], *, sure: float, declared: str | None
) -> BlockLanguage | None:
    code = declared_code(declared)
    stated = BlockLanguage(code, None, "declared") if code else None
    found = _prevailing(kept, "page")
    if found is None:
        beginnings = (decision.block.text[:_BEGINNING_CHARS] for decision in kept)
        found = _detected(_beginning(beginnings), "page", at_least=sure)
    # Only nearly all of the text overrules the declared language.
    if found and stated and found.code != code:
        found = _prevailing(kept, "page", share=_AGAINST_DECLARED)
    return found or stated


def _section_languages(
    kept: Iterable[BlockDecision], target: _TargetLanguage, page: BlockLanguage | None
) -> Languages:
    """Return the language of every section that is long enough to detect it."""
    members: dict[str | None, list[BlockDecision]] = defaultdict(list)
    for decision in kept:
        members[decision.section].append(decision)
    found = {key: _section_language(group, target, page) for key, group in members.items()}
    return {section: language for section, language in found.items() if language}


def _section_language(
    group: Sequence[BlockDecision], target: _TargetLanguage, page: BlockLanguage | None
) -> BlockLanguage | None:
    if prevailing := _prevailing(group, "section"):
        return prevailing
    text = _beginning(decision.block.text for decision in group)
    if len(text) < _SECTION_CHARS:
        return None
    if target.is_target(page) and target.threshold(text) is None:
        return None
    return _detected(text, "section", at_least=target.sure)


def _beginning(texts: Iterable[str]) -> str:
    """Return the first texts, joined until they are long enough for the detector."""
    found: list[str] = []
    missing = _PAGE_CHARS
    for text in texts:
        found.append(text)
        missing -= len(text) + 1
        if missing < 0:
            break
    return " ".join(found)[:_PAGE_CHARS]


def _prevailing(
    group: Sequence[BlockDecision], source: str, *, share: float = 0.5
) -> BlockLanguage | None:
    """Return the language of more than this share of the text, or None."""
    chars: dict[str | None, int] = {}
    total = 0
    for decision in group:
        size, language = len(decision.block.text), decision.language
        total += size
        if language:
            chars[language.code] = chars.get(language.code, 0) + size
    code = max(chars, key=chars.__getitem__, default=None)
    if code is None or chars[code] <= share * total:
        return None
    judged = (decision.language for decision in group if decision.language)
    surest = max(found.probability or 0.0 for found in judged if found.code == code)
    return BlockLanguage(code, surest, source)


def _detected(text: str, source: str, *, at_least: float) -> BlockLanguage | None:
    found = detect(text[: _PAGE_CHARS if source == "page" else _SAMPLE_CHARS])
    # A code of three letters does not name a single language.
    if found.probability < at_least or len(found.code) != 2:
        return None
    return BlockLanguage(found.code, found.probability, source)
