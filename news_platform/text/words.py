"""Count the words of a text in any language."""

import re

_WORD = re.compile(r"\w+")
# Han and kana are written without spaces; a word has two characters on average.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_UNSPACED_LETTERS_PER_WORD = 2


def count_words(text: str) -> int:
    """Return the number of words; Chinese and Japanese count half their characters."""
    if text.isascii():
        return len(_WORD.findall(text))
    unspaced = len(_UNSPACED.findall(text))
    others = _UNSPACED.sub(" ", text) if unspaced else text
    return len(_WORD.findall(others)) + unspaced // _UNSPACED_LETTERS_PER_WORD
