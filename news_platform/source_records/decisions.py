"""Decide for every block of a page whether it is kept, or the reason why it is dropped."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import ATTACHED, BlockDecision, WalkedPage, iter_kept
from news_platform.source_records.boilerplate import boilerplate_reasons
from news_platform.source_records.duplicates import SeenTexts
from news_platform.source_records.languages import detect_languages
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.sections import HeadingPath, compile_section_rules

_DEEPEST = 6
# A heading dropped for one of these reasons is not a record, but still heads a section.
_OPEN = (None, "too_short", "too_long", "language", "duplicate")
_ROWS = (kinds.ROW, kinds.COLUMNS)


def decide_blocks(
    page: WalkedPage, options: SegmentOptions, *, declared: str | None
) -> list[BlockDecision]:
    """Decide about every block: structure, section rules, length, language, duplicates, headings.

    The order matters: a block dropped by one step is not seen by the later ones.
    """
    reasons = boilerplate_reasons(page, options.boilerplate)
    decisions = [
        BlockDecision(block, order, reason)
        for order, (block, reason) in enumerate(zip(page.blocks, reasons, strict=True))
    ]
    # Before the length bounds: a table's rows may be short, the table is not.
    if options.tables == "structure":
        merge_tables(decisions)
    _apply_sections(decisions, options)
    drop_by_length(decisions, options)
    drop_by_language(decisions, options, declared=declared)
    drop_repeated(decisions, options)
    # Last: whether a heading has text below it is known only after all other steps.
    if options.headings == "attach":
        attach_headings(decisions)
    return decisions


def _apply_sections(decisions: list[BlockDecision], options: SegmentOptions) -> None:
    """Set the heading path of every block, and drop navigation, calls to action and notices."""
    rules, path = compile_section_rules(options.sections), HeadingPath()
    # The level of the heading whose section is being dropped, None outside of one.
    below: int | None = None
    # Headings in boilerplate are skipped: they head no section of the content.
    for decision in iter_kept(decisions):
        block = decision.block
        if block.level:
            path.enter(block)
            if below is None or block.level <= below:
                below = block.level if rules.drops_section(block) else None
        decision.section = path.section
        decision.reason = "dropped_section" if below is not None else rules.reason(block)


def drop_by_length(decisions: Sequence[BlockDecision], options: SegmentOptions) -> None:
    """Drop blocks that are too short or too long, unless their section or text is whitelisted."""
    for decision in iter_kept(decisions):
        size = len(decision.block.text)
        if options.min_chars <= size <= options.max_chars or _is_whitelisted(decision, options):
            continue
        decision.reason = "too_short" if size < options.min_chars else "too_long"


def drop_by_language(
    decisions: Sequence[BlockDecision], options: SegmentOptions, *, declared: str | None
) -> None:
    """Drop blocks in another language than the target."""
    detect_languages(
        decisions, sure=options.min_probability, target=options.language, declared=declared
    )
    for decision in iter_kept(decisions):
        if decision.language and decision.language.code not in (None, options.language):
            decision.reason = "language"


def drop_repeated(decisions: Sequence[BlockDecision], options: SegmentOptions) -> None:
    """Drop near-duplicates of earlier blocks of the page."""
    seen = SeenTexts(similarity=options.similarity, shingle_words=options.shingle_words)
    for decision in iter_kept(decisions):
        if seen.is_repeated(decision.block.text):
            decision.reason = "duplicate"


def _is_whitelisted(decision: BlockDecision, options: SegmentOptions) -> bool:
    pattern = _whitelist(options.whitelist)
    return bool(
        pattern and (pattern.search(decision.block.text) or pattern.search(decision.section or ""))
    )


@lru_cache(maxsize=32)
def _whitelist(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None


def attach_headings(decisions: Sequence[BlockDecision]) -> None:
    """Make every heading and row of column names the context of the blocks below it.

    A heading without text below it, or with too short text only, stays a block of its own;
    otherwise its text would be lost. A heading whose text was dropped for another reason is
    attached too.
    """
    for decision, has_text in _headings(decisions):
        if has_text:
            decision.reason = ATTACHED
    for decision in decisions:
        if decision.is_kept and decision.block.kind == kinds.COLUMNS:
            decision.reason = ATTACHED


def _headings(decisions: Sequence[BlockDecision]) -> Iterator[tuple[BlockDecision, bool]]:
    """Yield the headings of sections, last first, and whether each section has any text."""
    has_text = [False] * (_DEEPEST + 1)
    for decision in reversed(decisions):
        level = decision.block.level
        if level and decision.reason in _OPEN:
            yield decision, has_text[level]
            has_text[level:] = [False] * (_DEEPEST + 1 - level)
        elif not level and decision.section is not None and decision.reason != "too_short":
            has_text = [True] * (_DEEPEST + 1)


def merge_tables(decisions: Sequence[BlockDecision]) -> None:
    """Replace the rows of every table by one block, one line per row, in its first kept row."""
    rows = [decision for decision in decisions if decision.is_kept and decision.block.kind in _ROWS]
    for _, group in groupby(rows, key=lambda decision: decision.block.hints["table"]):
        first, *rest = group
        first.block.text = "\n".join(f"| {row.block.text} |" for row in (first, *rest))
        first.block.link_chars += sum(row.block.link_chars for row in rest)
        first.block.kind = kinds.TABLE
        for row in rest:
            row.reason = ATTACHED
