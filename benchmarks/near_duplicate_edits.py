"""Texts changed as newsrooms change them: cut, reordered, reworded, given a new lead, and worse.

None of them was used to choose the detector's options. The first four are the plain ones that
everybody thinks of; the others mix several changes.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence

Edit = Callable[[str, float, random.Random, Sequence[str]], str]
_SENTENCE_END = re.compile(r"(?<=[.!?…。])\s+|\n+")


def sentences(text: str) -> list[str]:
    """Split a text roughly at the ends of sentences and lines."""
    return [part for part in _SENTENCE_END.split(text) if part]


def cut(text: str, strength: float, chance: random.Random, others: Sequence[str]) -> str:
    """Drop the last part."""
    parts = text.split(" ")
    return " ".join(parts[: max(1, round(len(parts) * (1 - strength)))])


def reorder(text: str, strength: float, chance: random.Random, others: Sequence[str]) -> str:
    """Move a share of the sentences elsewhere."""
    parts = sentences(text)
    for _ in range(round(len(parts) * strength)):
        parts.insert(chance.randrange(len(parts)), parts.pop(chance.randrange(len(parts))))
    return " ".join(parts)


def reword(text: str, strength: float, chance: random.Random, others: Sequence[str]) -> str:
    """Replace a share of the words by words of other articles."""
    foreign = chance.choice(others).split()
    words = text.split(" ")
    changed = (chance.choice(foreign) if chance.random() < strength / 3 else w for w in words)
    return " ".join(changed)


def new_lead(text: str, strength: float, chance: random.Random, others: Sequence[str]) -> str:
    """Put the beginning of another article in front."""
    foreign = chance.choice(others).split(" ")
    return " ".join(foreign[: round(len(text.split(" ")) * strength)]) + "\n" + text


def cut_inside(text: str, strength: float, chance: random.Random, others: Sequence[str]) -> str:
    """Drop sentences here and there."""
    parts = sentences(text)
    return " ".join(part for part in parts if chance.random() >= strength) or parts[0]


def replace_lead(text: str, strength: float, chance: random.Random, others: Sequence[str]) -> str:
    """Write another beginning of the same length."""
    words = text.split(" ")
    length = round(len(words) * strength / 2)
    return " ".join([*chance.choice(others).split(" ")[:length], *words[length:]])


def update(text: str, strength: float, chance: random.Random, others: Sequence[str]) -> str:
    """Correct figures, drop one sentence, add two of another article's at the end."""
    counted = re.sub(r"\d+", lambda _: str(chance.randrange(1, 5000)), text)
    parts = sentences(counted)
    if len(parts) > 3:
        parts.pop(chance.randrange(len(parts)))
    foreign = sentences(chance.choice(others))
    return " ".join([*parts, *foreign[: 1 + round(4 * strength)]])


def retype(text: str, strength: float, chance: random.Random, others: Sequence[str]) -> str:
    """Mistype a share of the words, and change case, quotes and blanks of all."""
    typed = []
    for word in text.split(" "):
        at = chance.randrange(len(word)) if word else 0
        typed.append(word[:at] + "x" + word[at:] if chance.random() < strength / 3 else word)
    styled = "  ".join(typed).replace('"', "”").replace("'", "’")
    return styled.upper() if chance.random() < 0.5 else styled


PLAIN: Mapping[str, Edit] = {
    "cut": cut,
    "reorder": reorder,
    "reword": reword,
    "new lead": new_lead,
}
MIXED: Mapping[str, Edit] = {
    "cut inside": cut_inside,
    "replaced lead": replace_lead,
    "update": update,
    "retyped": retype,
}
STRENGTHS = (0.03, 0.08, 0.15, 0.25)
