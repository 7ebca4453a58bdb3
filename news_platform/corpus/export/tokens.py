"""Count the tokens of texts with the tokenizer of the extra `tokens`, if it is installed."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

VOCABULARY = "cl100k_base"
_PACKAGE = "bpe_openai"


def load_tokenizer() -> Callable[[str], int] | None:
    """Return the function that counts the tokens of a text; None without the extra.

    A text that quotes a special token is text.
    """
    if find_spec(_PACKAGE) is None:
        return None
    # The package's `Encoding` refuses texts of a million characters, and lists every token.
    count: Callable[[str], int] = (
        import_module(f"{_PACKAGE}._bindings").tokenizer_for_encoding(VOCABULARY).count
    )
    return count
