"""Track heading paths, and recognise blocks that look like content but are navigation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import BlockDecision, PageBlock
from news_platform.source_records.calls_to_action import NONE, call_certainty, is_instruction
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

    def phrases_in(self, decisions: Sequence[BlockDecision]) -> Sequence[str]:
        """Return the phrases of notices that occur anywhere in the page: few or none."""
        page = "\n".join([decision.block.text for decision in decisions]).lower()
        return [phrase for phrase in self.phrases if phrase in page]

    def judge(self, decision: BlockDecision, phrases: Sequence[str]) -> int:
        """Drop a block that is navigation rather than content; return how sure it is a call.

        `phrases` are those that occur in the page.
        """
        block, rules = decision.block, self.rules
        size = len(block.text)
        if size > rules.notice_chars:
            return NONE
        text = block.text.lower()
        # A heading such as "Admissions" names a section of the page.
        if block.kind != kinds.HEADING:
            if _name(text) in self.navigation_items:
                decision.drop("navigation_item", f"{_name(text)!r} is in navigation_items")
                return NONE
            is_short = text.count(" ") < rules.call_words and not is_instruction(block)
            verb = self.call.match(text) if is_short else None
            certainty = call_certainty(text, verb[0], rules) if verb else NONE
            if certainty:
                return certainty
        found = self.notice.match(text)
        if phrase := found[0] if found else _first_in(text, phrases):
            numbers = f"{size} characters, at most {rules.notice_chars}"
            decision.drop("notice", f"has {phrase!r}; {numbers}")
        return NONE

    def drop_call(self, decision: BlockDecision) -> None:
        """Drop a call to action."""
        words = decision.block.text.count(" ") + 1
        decision.drop("call_to_action", f"{words} words, at most {self.rules.call_words}")

    def drops_section(self, heading: PageBlock) -> bool:
        """Return whether the whole section of a heading is dropped."""
        return bool(self.section.match(heading.text.lower()))


def _first_in(text: str, phrases: Sequence[str]) -> str | None:
    for phrase in phrases:
        if phrase in text:
            return phrase
    return None


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
