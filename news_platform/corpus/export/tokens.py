"""Count the tokens of texts with the tokenizer of the extra `tokens`, if it is installed."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

VOCABULARY = "cl100k_base"
_PACKAGE = "bpe_openai"


def load_tokenizer() -> Callable[[str], int] | None:
    """Return the function that counts the tokens of a text; None without the extra."""
    if find_spec(_PACKAGE) is None:
        return None
    encoding = import_module(_PACKAGE).get_encoding(VOCABULARY)

    def count_tokens(text: str) -> int:
        # `ordinary`: a text that quotes a special token is text.
        return len(encoding.encode_ordinary(text))

    return count_tokens
