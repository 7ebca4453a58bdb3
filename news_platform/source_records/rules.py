"""A rule file in, the options with its rules in place of the defaults out.

The file is TOML with the tables [boilerplate] and [sections], whose keys are the fields of
`BoilerplateRules` and `SectionRules`; what it does not name keeps its default.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TypeVar

from news_platform.errors import ConfigError
from news_platform.source_records.options import BoilerplateRules, SectionRules, SegmentOptions
from news_platform.source_records.sections import compile_section_rules

Rules = TypeVar("Rules", BoilerplateRules, SectionRules)


def with_rules(options: SegmentOptions, toml: str) -> SegmentOptions:
    """Return the options with the rules of a file; a wrong one is a ConfigError that names it."""
    try:
        document = tomllib.loads(toml)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"rule file is not TOML: {error}") from error
    unknown = document.keys() - {"boilerplate", "sections"}
    if unknown:
        raise ConfigError(f"rule file has no table {min(unknown)!r}, only boilerplate, sections")
    sections = _replaced(options.sections, document.get("sections", {}))
    try:
        compile_section_rules(sections)
    except re.error as error:
        raise ConfigError(f"rule file has a wrong regular expression: {error}") from error
    boilerplate = _replaced(options.boilerplate, document.get("boilerplate", {}))
    return replace(options, boilerplate=boilerplate, sections=sections)


def _replaced(rules: Rules, given: Mapping[str, object]) -> Rules:
    known = {field.name: type(getattr(rules, field.name)) for field in fields(rules)}
    for name, value in given.items():
        if name not in known:
            raise ConfigError(f"rule file has no rule {name!r}, only {', '.join(sorted(known))}")
        if not _fits(value, known[name]):
            raise ConfigError(f"rule {name!r} must be {known[name].__name__}, not {value!r}")
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
    return replace(rules, **values)  # type: ignore[arg-type]  # each value was checked above


def _fits(value: object, wanted: type) -> bool:
    if wanted is tuple:
        return isinstance(value, list) and all(isinstance(member, str) for member in value)
    return isinstance(value, (int, float) if wanted is float else wanted)
