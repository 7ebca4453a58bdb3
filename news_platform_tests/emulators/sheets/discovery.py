"""Validate JSON against Google's discovery documents, as shipped in google-api-python-client."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

_PLAIN: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


class NotAsDocumented(AssertionError):
    """A message does not match its schema."""


@cache
def document(name: str) -> dict[str, Any]:
    """Return a discovery document by its name, such as `sheets.v4`."""
    folder = files("googleapiclient") / "discovery_cache" / "documents"
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return found


def check(name: str, schema: str, message: object) -> None:
    """Raise NotAsDocumented unless the message matches the schema; unknown fields are errors."""
    _check(name, {"$ref": schema}, message, where=schema)


def _check(name: str, schema: dict[str, Any], message: object, *, where: str) -> None:
    if "$ref" in schema:
        schema = document(name)["schemas"][schema["$ref"]]
    kind = schema.get("type", "any")
    if kind == "object":
        _check_object(name, schema, message, where=where)
    elif kind == "array":
        _expect(isinstance(message, list), where, message)
        assert isinstance(message, list)
        for place, item in enumerate(message):
            _check(name, schema["items"], item, where=f"{where}[{place}]")
    elif kind != "any":
        _check_plain(schema, message, where=where)


def _check_object(name: str, schema: dict[str, Any], message: object, *, where: str) -> None:
    _expect(isinstance(message, dict), where, message)
    assert isinstance(message, dict)
    known = schema.get("properties", {})
    other = schema.get("additionalProperties")
    for field, value in message.items():
        inner = known.get(field, other)
        _expect(inner is not None, f"{where}.{field}", "unknown field")
        assert inner is not None
        _check(name, inner, value, where=f"{where}.{field}")


def _check_plain(schema: dict[str, Any], message: object, *, where: str) -> None:
    kind = schema["type"]
    _expect(isinstance(message, _PLAIN[kind]), where, message)
    _expect(kind == "boolean" or not isinstance(message, bool), where, message)
    if "enum" in schema:
        _expect(message in schema["enum"], where, message)


def _expect(holds: bool, where: str, found: object) -> None:
    if not holds:
        raise NotAsDocumented(f"{where}: found {found!r:.200}")
