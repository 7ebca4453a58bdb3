"""The word lists of the segmentation, read once from `words.toml`."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files

_LISTS = tomllib.loads((files(__package__) / "words.toml").read_text(encoding="utf-8"))


def word_list(table: str, name: str) -> tuple[str, ...]:
    """Return a list of words or phrases."""
    found = _LISTS[table][name]
    return tuple(found.split() if isinstance(found, str) else found)


def name_table(table: str, name: str) -> Mapping[str, str]:
    """Return a table of texts by name."""
    return dict(_LISTS[table][name])
