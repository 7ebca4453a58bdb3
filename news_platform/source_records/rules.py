"""Read a rule file and return the options with its rules in place of the defaults.

The file is TOML. Its keys are the fields of `SegmentOptions`, such as `language = "de"`; the tables
[boilerplate] and [sections] have the fields of `BoilerplateRules` and `SectionRules`. Rules that it
does not name keep their default.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TypeVar

from news_platform.errors import ConfigError
from news_platform.source_records.options import BoilerplateRules, SectionRules, SegmentOptions
from news_platform.source_records.sections import compile_section_rules

Rules = TypeVar("Rules", BoilerplateRules, SectionRules, SegmentOptions)

_TOML_NAMES = {
    str: "a string",
    tuple: "a list of strings",
    int: "an integer",
    float: "a number",
}


def with_rules(options: SegmentOptions, toml: str) -> SegmentOptions:
    """Return the options with the rules of a TOML text; raise ConfigError for an invalid rule."""
    try:
        document = tomllib.loads(toml)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the rule file is not valid TOML: {error}") from error
    sections = _replaced(options.sections, document.pop("sections", {}))
    try:
        compile_section_rules(sections)
    except re.error as error:
        raise ConfigError(f"invalid regular expression in the rule file: {error}") from error
    boilerplate = _replaced(options.boilerplate, document.pop("boilerplate", {}))
    return replace(_replaced(options, document), boilerplate=boilerplate, sections=sections)


def _replaced(rules: Rules, given: Mapping[str, object]) -> Rules:
    if not isinstance(given, Mapping):
        raise ConfigError(f"invalid rule {given!r} in the rule file: expected a table")
    known = {field.name: type(getattr(rules, field.name)) for field in fields(rules)}
    for name, value in given.items():
        if name not in known:
            expected = f"expected one of {', '.join(sorted(known))}"
            raise ConfigError(f"unknown rule {name!r} in the rule file: {expected}")
        if not _fits(value, known[name]):
            expected = f"expected {_TOML_NAMES[known[name]]}, found {value!r}"
            raise ConfigError(f"invalid rule {name!r} in the rule file: {expected}")
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
    return replace(rules, **values)  # type: ignore[arg-type]  # each value was checked above


def _fits(value: object, wanted: type) -> bool:
    if wanted is tuple:
        return isinstance(value, list) and all(isinstance(member, str) for member in value)
    return isinstance(value, (int, float) if wanted is float else wanted)
