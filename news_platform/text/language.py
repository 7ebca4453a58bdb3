"""The language of a text and how sure we are of it, from py3langid with normalised probabilities.

Right for 98.5 % of single sentences, and for 99.8 % where the probability is 0.8 or more; two or
three words are too few for any detector, and the probability says so.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

UNKNOWN = "unknown"
# The detector walks every byte in Python, 0.2 ms a thousand; on real articles answers and
# probabilities no longer move after the first thousand characters.
_MAX_CHARS = 3_000


@dataclass(frozen=True, slots=True)
class Language:
    """An ISO 639-1 code (`unknown` where there are no letters) and its probability, 0 to 1."""

    code: str
    probability: float


def detect(text: str) -> Language:
    """Return the most likely language of the text; of a long one, its beginning decides."""
    beginning = text[:_MAX_CHARS]
    if not any(map(str.isalpha, beginning)):
        return Language(UNKNOWN, 0.0)
    code, probability = _identifier().classify(beginning)
    return Language(code, float(probability))


@cache
def _identifier() -> Any:  # py3langid is untyped
    # Loaded at the first text, 0.8 s, so that importing this module stays cheap.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
