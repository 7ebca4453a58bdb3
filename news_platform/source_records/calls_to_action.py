"""Tell calls to action ("Find a doctor") from names that begin like one ("Open University")."""

from collections.abc import Sequence

from news_platform.source_records.blocks import CODE, PageBlock
from news_platform.source_records.options import SectionRules

# How sure it is that a text is a call.
NONE, POSSIBLE, CERTAIN = 0, 1, 2

# Words that follow the verb of a call and hardly ever stand in a name without an "of".
_CALL_WORDS_LIST = """
a an the this that these those our your my their us me you it them all any more now here today
online free started involved touch near how what who which where why when if
"""
_CALL_WORDS = frozenset(_CALL_WORDS_LIST.split())
# Verbs that are no other part of speech: they do not begin a name.
_ONLY_VERBS_LIST = """
apply browse buy click compare continue donate download enrol enroll explore inquire join learn
log login see send sign submit subscribe unlock upgrade view
"""
_ONLY_VERBS = frozenset(_ONLY_VERBS_LIST.split())
# The last word of the name of a unit.
_UNITS_LIST = """
academy agency area association authority bank board branch bureau campus center centre chair
clinic club college commission committee company consortium corps council court department
directorate district division facility faculty federation foundation fund gallery group guild hall
hospital hub initiative institute institution lab laboratories laboratory league library ministry
museum network office organisation organization partnership practice programme project registry
school sector secretariat section service services society station studio studies taskforce team
therapies therapy trust union unit university ward workshop
"""
_UNITS = frozenset(_UNITS_LIST.split())

# A sentence with fewer words, as "Apply now.", is a call with a full stop.
_SENTENCE_WORDS = 4
# A text with a larger share of link text is a link or a button.
_LINK_SHARE = 0.8


def is_instruction(block: PageBlock) -> bool:
    """Return whether a block tells what to do rather than where to click: a sentence or code.

    "See the following example:" and "Use the End object snap." are steps of an instruction.
    """
    text = block.text
    if block.kind == CODE:
        return True
    if text[-1] not in ".:" or block.link_density >= _LINK_SHARE:
        return False
    return text[-1] == ":" or text.count(" ") + 1 >= _SENTENCE_WORDS


def call_certainty(text: str, verb: str, rules: SectionRules) -> int:
    """Return how sure it is that a text in lower case, which begins with this verb, is a call."""
    words = text.split()
    if len(words) > rules.call_words:
        return NONE
    rest = text[len(verb) :].split()
    if rest[:1] == ["of"]:
        return NONE
    is_unit = bool(rest) and rest[-1].strip(".,") in _UNITS
    is_verb = words[0] in _ONLY_VERBS
    if not rest or not _CALL_WORDS.isdisjoint(rest):
        # "Save the Harbour Trust" is a name among names, "Join our team" a call among calls.
        return POSSIBLE if is_unit and not is_verb else CERTAIN
    if is_unit and not is_verb:
        return NONE
    return CERTAIN if is_verb and not is_unit else POSSIBLE


def is_among_names(certainties: Sequence[int]) -> bool:
    """Return whether a list is one of names: a possible call in it is a name, too."""
    calls = sum(map(bool, certainties))
    return len(certainties) > 2 and calls * 2 <= len(certainties)
