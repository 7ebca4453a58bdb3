"""A section of settings: a frozen dataclass whose fields know their environment variables."""

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from news_platform.errors import ConfigError

Section = TypeVar("Section")

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One row of the settings table in the docs."""

    section: str
    env: str
    default: str
    help: str


def setting(env: str, default: Any, text: str, *, secret: bool = False) -> Any:
    """Return a field of a section; a secret one never shows in the section's text."""
    meta = {"env": env, "help": text, "secret": secret}
    return field(default=default, metadata=meta, repr=not secret)


def section_infos(name: str, kind: type[Any]) -> Iterator[SettingInfo]:
    """Describe the settings of one section, those of sections inside it left out."""
    for item in dataclasses.fields(kind):
        if item.metadata:
            default = "" if item.default is None else str(item.default)
            yield SettingInfo(name, item.metadata["env"], default, item.metadata["help"])


def load_section(kind: type[Section], environ: Mapping[str, str]) -> Section:
    """Read one section; what is unset or empty keeps its default."""
    hints = typing.get_type_hints(kind)
    given = {
        item.name: _parse(environ[item.metadata["env"]], hints[item.name], item.metadata["env"])
        for item in dataclasses.fields(kind)  # type: ignore[arg-type]
        if item.metadata and environ.get(item.metadata["env"], "") != ""
    }
    return kind(**given)


def _parse(text: str, hint: Any, env: str) -> object:
    kind = _plain_type(hint)
    try:
        if kind is bool:
            return _parse_bool(text)
        if typing.get_origin(kind) is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        return kind(text)
    except ValueError as error:
        wanted = getattr(kind, "__name__", str(kind))
        raise ConfigError(f"{env}={text!r} is not of type {wanted}", thing=env) from error


def _plain_type(hint: Any) -> Any:
    """Strip `| None` from an annotation."""
    if isinstance(hint, types.UnionType):
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint


def _parse_bool(text: str) -> bool:
    folded = text.strip().lower()
    if folded not in _TRUE + _FALSE:
        raise ValueError(text)
    return folded in _TRUE
