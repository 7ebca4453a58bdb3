"""Track heading paths, and recognise blocks that look like content but are navigation."""

import re
from dataclasses import dataclass
from functools import lru_cache

from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import PageBlock
from news_platform.source_records.options import SectionRules

SEPARATOR = " > "
# Characters that may surround the name of a menu item.
_EDGES = " .,:;!?*»›>|→-–—·•"


class HeadingPath:
    """The headings above the current block."""

    __slots__ = ("_levels", "_texts", "section")

    def __init__(self) -> None:
        self._levels: list[int] = []
        self._texts: list[str] = []
        # The path as one text, or None above all headings.
        self.section: str | None = None

    def enter(self, heading: PageBlock) -> None:
        """Enter the section of a heading and leave those of its level and deeper."""
        while self._levels and self._levels[-1] >= heading.level:
            self._levels.pop()
            self._texts.pop()
        self._levels.append(heading.level)
        self._texts.append(heading.text)
        self.section = SEPARATOR.join(self._texts)


@dataclass(frozen=True, slots=True)
class CompiledSectionRules:
    """Section rules as compiled patterns."""

    navigation_items: frozenset[str]
    call: re.Pattern[str]
    notice: re.Pattern[str]
    phrases: tuple[str, ...]
    section: re.Pattern[str]
    rules: SectionRules

    def reason(self, block: PageBlock) -> str | None:
        """Return why a block is navigation rather than content, or None."""
        if len(block.text) > self.rules.notice_chars:
            return None
        text = block.text.lower()
        # A heading such as "Admissions" names a section of the page.
        if block.kind != kinds.HEADING:
            if _name(text) in self.navigation_items:
                return "navigation_item"
            if text.count(" ") < self.rules.call_words and self.call.match(text):
                return "call_to_action"
        return "notice" if self.notice.match(text) or self._has_phrase(text) else None

    def _has_phrase(self, text: str) -> bool:
        # Runs for every short block: `any` with a generator takes twice as long.
        for phrase in self.phrases:  # noqa: SIM110 - see above
            if phrase in text:
                return True
        return False

    def drops_section(self, heading: PageBlock) -> bool:
        """Return whether the whole section of a heading is dropped."""
        return bool(self.section.match(heading.text.lower()))


def _name(text: str) -> str:
    # The rules spell `news & events`; this covers `news and events` as well.
    return text.strip(_EDGES).replace(" and ", " & ")


@lru_cache(maxsize=32)
def compile_section_rules(rules: SectionRules) -> CompiledSectionRules:
    """Return the compiled rules; each set of rules is compiled once."""
    return CompiledSectionRules(
        navigation_items=frozenset(rules.navigation_items),
        call=_any_of((rf"({'|'.join(rules.call_verbs)})\b",) if rules.call_verbs else ()),
        notice=_any_of(rules.notice_openings),
        phrases=rules.notice_phrases,
        section=_any_of(rules.sections),
        rules=rules,
    )


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    # Without rules nothing must match: "(?!)" never does, an empty pattern always would.
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns) or "(?!)")
