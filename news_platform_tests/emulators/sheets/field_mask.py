"""Field masks: which fields of an answer are returned, and which of a change are set."""

import re
from typing import Any

from news_platform_tests.emulators.sheets.grid import Invalid

_Tree = dict[str, "_Tree"]
_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|[*(),./])\s*")


def masked(document: Any, mask: str) -> Any:
    """Return the fields that a mask such as `sheets(properties.title,data),spreadsheetId` names."""
    return _kept(document, _parse(mask))


def mask_leaves(mask: str, given: dict[str, Any]) -> set[str]:
    """Return the dotted names of all fields to set; `*` names those that are given."""
    if not mask:
        raise Invalid("At least one field must be listed in 'fields'.")
    tree = _parse(mask)
    return _leaves(_given(given) if "*" in tree else tree)


def _leaves(tree: _Tree) -> set[str]:
    found = set()
    for name, inner in tree.items():
        found |= {f"{name}.{leaf}" for leaf in _leaves(inner)} if inner else {name}
    return found


def _given(fields: dict[str, Any]) -> _Tree:
    return {
        name: _given(value) if isinstance(value, dict) else {} for name, value in fields.items()
    }


def _kept(document: Any, tree: _Tree) -> Any:
    if not tree or "*" in tree:
        return document
    if isinstance(document, list):
        return [_kept(item, tree) for item in document]
    if not isinstance(document, dict):
        return document
    return {name: _kept(document[name], inner) for name, inner in tree.items() if name in document}


def _parse(mask: str) -> _Tree:
    tokens = _TOKEN.findall(mask)
    if "".join(tokens) != re.sub(r"\s", "", mask):
        raise Invalid(f"Invalid field mask: {mask!r}")
    tokens.reverse()
    tree = _list(tokens, mask)
    if tokens:
        raise Invalid(f"Invalid field mask: {mask!r}")
    return tree


def _list(tokens: list[str], mask: str) -> _Tree:
    tree: _Tree = {}
    while tokens:
        _path(tokens, tree, mask)
        if not tokens or tokens[-1] != ",":
            break
        tokens.pop()
    return tree


def _path(tokens: list[str], tree: _Tree, mask: str) -> None:
    name = tokens.pop()
    if name in "(),./":
        raise Invalid(f"Invalid field mask: {mask!r}")
    inner = tree.setdefault(name, {})
    if tokens and tokens[-1] in "./":
        tokens.pop()
        if not tokens:
            raise Invalid(f"Invalid field mask: {mask!r}")
        _path(tokens, inner, mask)
    elif tokens and tokens[-1] == "(":
        tokens.pop()
        inner.update(_list(tokens, mask))
        if not tokens or tokens.pop() != ")":
            raise Invalid(f"Invalid field mask: {mask!r}")
