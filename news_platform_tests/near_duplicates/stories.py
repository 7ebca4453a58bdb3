"""Generated stories and their variants, long enough to be compared."""

import random

_NOUNS = """
council bridge river mayor harbour vote budget school winter train station museum farmer market
storm doctor engine island forest paper engineer village library teacher garden coast summer valley
factory festival court judge player stadium victory minister report figure
"""
_WORDS = _NOUNS.split()


def story(seed: int, *, words: int = 300) -> str:
    """Return a story: the same for the same seed, different from all others."""
    chance = random.Random(seed)
    return " ".join(f"{chance.choice(_WORDS)}{chance.randrange(30)}" for _ in range(words))


def variant(seed: int, *, changed: int) -> str:
    """Return the story with some words replaced, evenly spread."""
    words = story(seed).split()
    for number in range(changed):
        words[number * len(words) // changed] = f"changed{number}"
    return " ".join(words)


# Two texts that are too different to be copies, and one that is like both.
_HALVES = story(1, words=600).split()
LEFT = " ".join([*_HALVES[:540], *story(7, words=60).split()])
RIGHT = " ".join([*story(8, words=60).split(), *_HALVES[60:]])
BOTH = " ".join(_HALVES)
