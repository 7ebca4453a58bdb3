"""Give blocks their heading path, and drop what looks like content but is navigation.

Calls to action ("Find a doctor") are told from names that begin like one ("Open University") by
their words, and by the list that they stand in.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from news_platform.source_records.blocks import (
    CODE,
    HEADING,
    PARAGRAPH,
    ROW,
    BlockDecision,
    PageBlock,
    is_prose,
    iter_kept,
)
from news_platform.source_records.options import SectionRules
from news_platform.source_records.words import word_list

# Characters that may surround the name of a menu item.
_EDGES = " .,:;!?*»›>|→-–—·•"

# How sure it is that a text is a call.
_NONE, _POSSIBLE, _CERTAIN = 0, 1, 2
_CALL_WORDS = frozenset(word_list("calls", "following"))
_ONLY_VERBS = frozenset(word_list("calls", "only_verbs"))
_UNITS = frozenset(word_list("calls", "units"))
# A sentence with fewer words, as "Apply now.", is a call with a full stop.
_SENTENCE_WORDS = 4
# A text with a larger share of link text is a link or a button, or an entry of a list.
_LINK_SHARE = 0.8


def apply_sections(decisions: Sequence[BlockDecision], rules: SectionRules) -> None:
    """Set the heading path of every block, and drop navigation, calls to action and notices."""
    compiled = _compile_rules(rules)
    path: list[PageBlock] = []
    names: tuple[str, ...] = ()
    section: str | None = None
    # The heading whose section is being dropped, None outside of one.
    below: PageBlock | None = None
    calls: dict[int, int] = {}
    # Headings in boilerplate are skipped: they head no section of the content.
    for decision in list(iter_kept(decisions)):
        block = decision.block
        if block.level:
            path = [outer for outer in path if outer.level < block.level]
            decision.path = tuple(heading.text for heading in path)
            decision.section = " > ".join(decision.path) or None
            path.append(block)
            names = (*decision.path, block.text)
            section = " > ".join(names)
            if below is None or block.level <= below.level:
                below = block if compiled.section.match(block.text.lower()) else None
        elif below is not None and is_prose(block):
            below = None  # a section of searches or links ends where text begins
        else:
            decision.section, decision.path = section, names
        if below is not None:
            decision.drop("dropped_section", f"below {below.text!r}")
        elif certainty := _judge(decision, compiled):
            calls[decision.order] = certainty
    for decision in _calls(decisions, calls):
        words = decision.block.text.count(" ") + 1
        decision.drop("call_to_action", f"{words} words, at most {rules.call_words}")


@dataclass(frozen=True, slots=True)
class _CompiledRules:
    """Section rules as compiled patterns."""

    rules: SectionRules
    navigation_items: frozenset[str]
    call: re.Pattern[str]
    notice: re.Pattern[str]
    section: re.Pattern[str]


@lru_cache(maxsize=32)
def _compile_rules(rules: SectionRules) -> _CompiledRules:
    return _CompiledRules(
        rules,
        navigation_items=frozenset(rules.navigation_items),
        call=_any_of((rf"({'|'.join(rules.call_verbs)})\b",) if rules.call_verbs else ()),
        notice=_any_of(rules.notice_openings),
        section=_any_of(rules.sections),
    )


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    # Without rules nothing must match: "(?!)" never does, an empty pattern always would.
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns) or "(?!)")


def _judge(decision: BlockDecision, compiled: _CompiledRules) -> int:
    """Drop a menu item or a notice; of another block return how sure it is that it is a call."""
    block, rules = decision.block, compiled.rules
    size = len(block.text)
    if size > rules.notice_chars:
        return _NONE
    text = block.text.lower()
    certainty = _NONE
    # A heading such as "Admissions" names a section of the page.
    if block.kind != HEADING:
        # The rules spell `news & events`; this covers `news and events` as well.
        name = text.strip(_EDGES).replace(" and ", " & ")
        if name in compiled.navigation_items:
            decision.drop("navigation_item", f"{name!r} is in navigation_items")
            return _NONE
        is_short = text.count(" ") < rules.call_words and not _is_instruction(block)
        verb = compiled.call.match(text) if is_short and not _CONTACT.search(text) else None
        certainty = _call_certainty(text, verb[0], rules) if verb else _NONE
        if certainty == _CERTAIN:
            return certainty
    found = compiled.notice.match(text)
    phrase = found[0] if found else _first_in(text, rules.notice_phrases)
    # A row of a data table is one entry of it, whatever a cell says.
    if phrase and block.kind != ROW and not _names_unit(block.text, phrase):
        numbers = f"{size} characters, at most {rules.notice_chars}"
        decision.drop("notice", f"has {phrase!r}; {numbers}")
        return _NONE
    return certainty


# A call has no address, number or e-mail address: "Contact: Jane Doe, room 12" is content.
_CONTACT = re.compile(r"[@\d]|:\s")


# What stands between the name of a unit and its address, and the words that open what it is for.
_BETWEEN_FIELDS = re.compile(r"[\n|,;·•]")
_UNIT_FOR = frozenset(("for", "of", "on"))


def _names_unit(text: str, phrase: str) -> bool:
    """Return whether a phrase, in lower case, is in a unit's name: "Centre for Privacy Policy"."""
    field = next((it for it in _BETWEEN_FIELDS.split(text) if phrase in it.lower()), text)
    found = field.split()
    lowered = [word.strip(".,").lower() for word in found]
    units = [at for at, word in enumerate(lowered) if word in _UNITS]
    # A person may stand before the unit: "Wei Zhang Centre for Privacy Policy".
    is_named = any(
        at in (0, len(found) - 1)
        or (lowered[at + 1] in _UNIT_FOR and phrase in " ".join(lowered[at:]))
        for at in units
    )
    return is_named and all(word[0].isupper() for word in found if len(word) > 3)


def _first_in(text: str, phrases: Sequence[str]) -> str | None:
    for phrase in phrases:
        if phrase in text:
            return phrase
    return None


def _is_instruction(block: PageBlock) -> bool:
    """Return whether a block tells what to do rather than where to click: a sentence or code.

    "See the following example:" and "Use the End object snap." are steps of an instruction.
    """
    text = block.text
    if block.kind == CODE:
        return True
    if text[-1] not in ".:" or block.link_density >= _LINK_SHARE:
        return False
    return text[-1] == ":" or text.count(" ") + 1 >= _SENTENCE_WORDS


def _call_certainty(text: str, verb: str, rules: SectionRules) -> int:
    """Return how sure it is that a text in lower case, which begins with this verb, is a call."""
    words = text.split()
    if len(words) > rules.call_words:
        return _NONE
    rest = text[len(verb) :].split()
    # "Order of Physicians", "Open University of the Netherlands".
    if rest[:1] == ["of"] or (rest[1:2] == ["of"] and rest[0] in _UNITS):
        return _NONE
    is_unit = bool(rest) and rest[-1].strip(".,") in _UNITS
    is_verb = words[0] in _ONLY_VERBS
    if not rest or not _CALL_WORDS.isdisjoint(rest):
        # "Save the Harbour Trust" is a name among names, "Join our team" a call among calls.
        return _POSSIBLE if is_unit and not is_verb else _CERTAIN
    if is_unit and not is_verb:
        return _NONE
    return _CERTAIN if is_verb and not is_unit else _POSSIBLE


def _calls(decisions: Sequence[BlockDecision], calls: Mapping[int, int]) -> Iterator[BlockDecision]:
    """Yield the calls to action; what may be one is a name among names, and if it is no link."""
    for order, certainty in calls.items():
        near = [calls.get(other, _NONE) for other in _list_around(decisions, order)]
        is_list, most = len(near) > 2, sum(map(bool, near)) * 2 > len(near)
        is_link = decisions[order].block.link_density > _LINK_SHARE
        if certainty == _CERTAIN or (most if is_list else is_link):
            yield decisions[order]


def _list_around(decisions: Sequence[BlockDecision], order: int) -> Iterator[int]:
    """Yield the positions of the list entries, or link-only paragraphs, around a block."""
    wanted = decisions[order].block
    for step in (-1, 1):
        near = order if step == 1 else order - 1
        while 0 <= near < len(decisions) and _is_sibling(wanted, decisions[near].block):
            yield near
            near += step


def _is_sibling(block: PageBlock, other: PageBlock) -> bool:
    is_alike = block.kind == other.kind and block.container is other.container
    if block.kind == PARAGRAPH:
        return is_alike and min(block.link_density, other.link_density) > _LINK_SHARE
    return is_alike
