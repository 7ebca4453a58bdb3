"""An article in, its most telling sentences and words out, without a model.

Words count by how often they occur, more in the title, and not at all if they are among the most
frequent of their language. Sentences count by their words, and by how early they are: news tells
the main thing first.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pkgutil import get_data

MODEL = "extractive-1"
MAX_KEYWORDS = 8
MAX_SENTENCES = 3
MAX_SUMMARY_CHARACTERS = 500
# Beyond it, an article repeats itself or is a list.
_READ_CHARACTERS = 20_000
_TITLE_WEIGHT = 3
_SHORTEST_WORD = 3
_STOPWORDS = 300
_ENOUGH_KEYWORDS = 3
_SHORTEST_SENTENCE, _LONGEST_SENTENCE = 40, 400
# The first sentence counts twice as much as one in the distance.
_LEAD_SENTENCES = 5

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# A full stop ends a sentence if a space follows; those of Chinese and Japanese need none.
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’»)]*\s+|(?<=[。！？])|\n+")
# Names that end with a full stop and do not end a sentence.
_ABBREVIATION = re.compile(r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|vs|Inc|Ltd|Co|Jr|Sr|Gen))\.\Z")
_UNSPACED = frozenset(("zh", "ja", "th", "lo", "km", "my"))
_STOPLISTS = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi",
    "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ko": "Korean",
    "lt": "Lithuanian", "lv": "Latvian", "nb": "Norwegian_Bokmal", "nl": "Dutch",
    "no": "Norwegian_Bokmal", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish",
    "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnalysedText:
    """What is known of an article before it is analysed."""

    title: str
    text: str
    language: str = ""
    section: str = ""
    tags: tuple[str, ...] = ()
    category: str = ""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the Analyses tab shows of an article; `sentiment` is empty unless a model gave it."""

    summary: str
    keywords: tuple[str, ...]
    topics: tuple[str, ...]
    sentiment: str = ""
    model: str = MODEL


def analyse(article: AnalysedText) -> Analysis:
    """Return the summary, keywords and topics of an article."""
    weights = _word_weights(article)
    return Analysis(
        summary=_summary(article.text, weights, article.language),
        keywords=_keywords(article, weights),
        topics=topics_of(article),
    )


def topics_of(article: AnalysedText) -> tuple[str, ...]:
    """Return what the page and our guess say the article is about."""
    guessed = article.category if article.category != "other" else ""
    named = (guessed, article.section, *article.tags)
    return tuple(dict.fromkeys(text.strip() for text in named if text.strip()))[:MAX_KEYWORDS]


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text in order."""
    sentences: list[str] = []
    for part in (found.strip() for found in _SENTENCE.split(text)):
        if sentences and _ABBREVIATION.search(sentences[-1]):
            sentences[-1] = f"{sentences[-1]} {part}"
        elif part:
            sentences.append(part)
    return sentences


@lru_cache(maxsize=64)
def _stopwords(language: str) -> frozenset[str]:
    name = _STOPLISTS.get(language)
    if name is None:
        return frozenset()
    words = (get_data("justext", f"stoplists/{name}.txt") or b"").decode("utf-8").split()
    # The lists are in the order of frequency. Names, and what comes after, tell something.
    return frozenset(word for word in words[:_STOPWORDS] if word.islower() and word.isalpha())


def _word_weights(article: AnalysedText) -> dict[str, float]:
    """Return how telling each word is; words of unspaced scripts cannot be told apart."""
    if article.language in _UNSPACED:
        return {}
    stopwords = _stopwords(article.language)
    counts = Counter(_words(article.text[:_READ_CHARACTERS]))
    for word in _words(article.title):
        counts[word] += _TITLE_WEIGHT
    return {
        word: float(count)
        for word, count in counts.items()
        if len(word) >= _SHORTEST_WORD and word not in stopwords
    }


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _keywords(article: AnalysedText, weights: dict[str, float]) -> tuple[str, ...]:
    """Return the most telling words as they are written; tags where words cannot be counted."""
    if not weights:
        return tuple(tag.strip() for tag in article.tags if tag.strip())[:MAX_KEYWORDS]
    spellings: dict[str, str] = {}
    for word in _WORD.findall(f"{article.text[:_READ_CHARACTERS]} {article.title}"):
        # The lower-case spelling, where a word is not always written as a name.
        known = spellings.get(word.casefold())
        if known is None or word.islower():
            spellings[word.casefold()] = word
    # A word that occurs once says little, unless there is hardly anything else.
    ranked = sorted(weights, key=lambda word: (-weights[word], word))
    telling = [word for word in ranked if weights[word] > 1]
    chosen = telling if len(telling) >= _ENOUGH_KEYWORDS else ranked
    return tuple(spellings[word] for word in chosen[:MAX_KEYWORDS])


def _summary(text: str, weights: dict[str, float], language: str) -> str:
    """Return the best sentences, in the order of the article."""
    sentences = split_sentences(text[:_READ_CHARACTERS])
    fit = [
        n
        for n, sentence in enumerate(sentences)
        if _SHORTEST_SENTENCE <= len(sentence) <= _LONGEST_SENTENCE or language in _UNSPACED
    ]
    best = sorted(fit, key=lambda n: (-_score(sentences[n], n, weights), n))
    chosen = _within_limit(sentences, best)
    joint = "" if language in _UNSPACED else " "
    return joint.join(sentences[n] for n in sorted(chosen)) or _beginning(text)


def _score(sentence: str, place: int, weights: dict[str, float]) -> float:
    words = set(_words(sentence))
    # By the root of its length: else long sentences, or short ones, would always win.
    weight = sum(weights.get(word, 0.0) for word in words) / math.sqrt(len(words) or 1)
    return (weight + 1.0) * (1.0 + 1.0 / (1.0 + place / _LEAD_SENTENCES))


def _within_limit(sentences: Sequence[str], best: Sequence[int]) -> list[int]:
    chosen: list[int] = []
    room = MAX_SUMMARY_CHARACTERS
    for n in best[: MAX_SENTENCES * 2]:
        if len(chosen) < MAX_SENTENCES and len(sentences[n]) <= room:
            chosen.append(n)
            room -= len(sentences[n]) + 1
    return chosen


def _beginning(text: str) -> str:
    return " ".join(text[: MAX_SUMMARY_CHARACTERS * 2].split())[:MAX_SUMMARY_CHARACTERS]
