"""The options of the segmentation, with the specification's defaults, and rule files for them.

A rule file is TOML with the tables [boilerplate] and [sections], whose keys are the fields of
`BoilerplateRules` and `SectionRules`. Rules that it does not name keep their default.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal, TypeVar

from news_platform.errors import ConfigError
from news_platform.source_records.words import word_list
from news_platform.text.language import LANGUAGES

HEADINGS = ("attach", "records")
TABLES = ("rows", "structure")


def _require(options: object, name: str, is_valid: bool, expected: str) -> None:
    if not is_valid:
        found = getattr(options, name)
        raise ConfigError(f"invalid {name} {found!r}: expected {expected}", thing=name)


def _require_patterns(patterns: tuple[str, ...], place: str) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            message = f"invalid regular expression {pattern!r} in {place}: {error}"
            raise ConfigError(message, thing=pattern) from error


@dataclass(frozen=True, slots=True)
class BoilerplateRules:
    """Thresholds of the boilerplate rules; shares refer to the page's text outside links.

    A navigation, header, footer or aside with more than `zone_share` of the text is content in the
    wrong element, and an element whose class suggests a widget is none if it holds more than
    `widget_share`. <main> counts as the content if it holds more than `main_share` of the text
    outside all zones. Texts shorter than `lead_chars` characters above the first <h1> are dropped
    if there are at most `lead_blocks` of them. A paragraph is dropped if it consists of links (by
    `link_density`) with at most `link_words` words, or is a row of links.
    """

    zone_share: float = 0.7
    widget_share: float = 0.4
    main_share: float = 0.4
    lead_chars: int = 200
    lead_blocks: int = 30
    link_density: float = 0.8
    link_words: int = 2
    link_run: int = 3
    prose_chars: int = 200

    def __post_init__(self) -> None:
        """Raise ConfigError for a share that is not between 0 and 1, or a negative number."""
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(entry.default, float):
                _require(self, entry.name, 0 <= value <= 1, "0 to 1")
            else:
                _require(self, entry.name, value >= 0, "at least 0")


@dataclass(frozen=True, slots=True)
class SectionRules:
    """Words and phrases of blocks that look like content but are navigation; all in lower case.

    `navigation_items` match whole blocks. `call_verbs` start a call to action of at most
    `call_words` words. `notice_openings` are regular expressions for the start of a notice,
    `notice_phrases` are found anywhere in one; a notice has at most `notice_chars` characters.
    `sections` are regular expressions for the start of a heading whose whole section is dropped.
    """

    navigation_items: tuple[str, ...] = word_list("sections", "navigation_items")
    call_words: int = 7
    call_verbs: tuple[str, ...] = word_list("sections", "call_verbs")
    notice_chars: int = 250
    notice_openings: tuple[str, ...] = word_list("sections", "notice_openings")
    notice_phrases: tuple[str, ...] = word_list("sections", "notice_phrases")
    sections: tuple[str, ...] = word_list("sections", "sections")


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """How a page is segmented.

    Blocks shorter than `min_chars` or longer than `max_chars` characters are dropped unless a
    regular expression of `whitelist` matches in their section or text. `headings` are the section
    of the blocks that follow ("attach"), or also records of their own ("records"). `tables` become
    one record per row ("rows"), or one record with all rows and columns ("structure").
    """

    language: str = "en"
    min_probability: float = 0.8
    min_chars: int = 12
    max_chars: int = 2000
    whitelist: tuple[str, ...] = ()
    similarity: float = 0.95
    shingle_words: int = 3
    headings: Literal["attach", "records"] = "attach"
    tables: Literal["rows", "structure"] = "rows"
    boilerplate: BoilerplateRules = BoilerplateRules()
    sections: SectionRules = SectionRules()

    def __post_init__(self) -> None:
        """Raise ConfigError for a value out of its range or an invalid regular expression."""
        known = self.language in LANGUAGES
        _require(self, "language", known, "a two-letter ISO 639-1 code, such as en or es")
        for name, choices in (("headings", HEADINGS), ("tables", TABLES)):
            _require(self, name, getattr(self, name) in choices, f"one of {', '.join(choices)}")
        for name in ("min_probability", "similarity"):
            _require(self, name, 0 < getattr(self, name) <= 1, "more than 0 and at most 1")
        _require(self, "shingle_words", self.shingle_words > 0, "at least 1")
        _require(self, "min_chars", self.min_chars >= 0, "at least 0")
        bound = f"at least min_chars, which is {self.min_chars}"
        _require(self, "max_chars", self.max_chars >= self.min_chars, bound)
        _require_patterns(self.whitelist, "the whitelist")


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
    _require_patterns(
        (*sections.call_verbs, *sections.notice_openings, *sections.sections), "the rule file"
    )
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
