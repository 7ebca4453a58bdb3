"""What is left of a page after length bounds, language and repetition; the order is kept."""

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


def decide_blocks(
    page: WalkedPage, options: SegmentOptions, *, declared: str | None
) -> list[BlockDecision]:
    """Decide about every block: structure, section rules, length, language, repetition."""
    reasons = boilerplate_reasons(page, options.boilerplate)
    decisions = [
        BlockDecision(block, order, reason)
        for order, (block, reason) in enumerate(zip(page.blocks, reasons, strict=True))
    ]
    if options.tables == "structure":
        merge_tables(decisions)
    _apply_sections(decisions, options)
    drop_by_length(decisions, options)
    drop_by_language(decisions, options, declared=declared)
    drop_repeated(decisions, options)
    if options.headings == "attach":
        attach_headings(decisions)
    return decisions


def _apply_sections(decisions: list[BlockDecision], options: SegmentOptions) -> None:
    """Give every block its heading path, and drop what only leads elsewhere."""
    rules, path = compile_section_rules(options.sections), HeadingPath()
    below: int | None = None
    for decision in iter_kept(decisions):
        block = decision.block
        if block.level:
            path.enter(block)
            if below is None or block.level <= below:
                below = block.level if rules.drops_section(block) else None
        decision.section = path.section
        decision.reason = "dropped_section" if below is not None else rules.reason(block)


def drop_by_length(decisions: Sequence[BlockDecision], options: SegmentOptions) -> None:
    """Drop what is too short or too long, unless the whitelist knows its section or text."""
    for decision in iter_kept(decisions):
        size = len(decision.block.text)
        if options.min_chars <= size <= options.max_chars or _is_whitelisted(decision, options):
            continue
        decision.reason = "too_short" if size < options.min_chars else "too_long"


def drop_by_language(
    decisions: Sequence[BlockDecision], options: SegmentOptions, *, declared: str | None
) -> None:
    """Drop what is in another language than the target."""
    detect_languages(
        decisions, sure=options.min_probability, target=options.language, declared=declared
    )
    for decision in iter_kept(decisions):
        if decision.language and decision.language.code not in (None, options.language):
            decision.reason = "language"


def drop_repeated(decisions: Sequence[BlockDecision], options: SegmentOptions) -> None:
    """Drop what says the same as an earlier block of the page."""
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


_DEEPEST = 6
# A short or repeated heading is no record, but a section all the same.
_OPEN = (None, "too_short", "too_long", "language", "duplicate")


def attach_headings(decisions: Sequence[BlockDecision]) -> None:
    """Make every heading and row of column names the context of the blocks below it.

    A heading with nothing below it, or only crumbs, stays a block of its own: it would be lost
    otherwise. One whose text was dropped on purpose goes with it.
    """
    for decision, has_text in _headings(decisions):
        if has_text:
            decision.reason = ATTACHED
    for decision in decisions:
        if decision.is_kept and decision.block.kind == kinds.COLUMNS:
            decision.reason = ATTACHED


def _headings(decisions: Sequence[BlockDecision]) -> Iterator[tuple[BlockDecision, bool]]:
    """Yield the headings that head a section, last first, and whether it has any text."""
    has_text = [False] * (_DEEPEST + 1)
    for decision in reversed(decisions):
        level = decision.block.level
        if level and decision.reason in _OPEN:
            yield decision, has_text[level]
            has_text[level:] = [False] * (_DEEPEST + 1 - level)
        elif not level and decision.section is not None and decision.reason != "too_short":
            has_text = [True] * (_DEEPEST + 1)


_ROWS = (kinds.ROW, kinds.COLUMNS)


def merge_tables(decisions: Sequence[BlockDecision]) -> None:
    """Make the first kept row of every table stand for the whole of it, one line a row."""
    rows = [decision for decision in decisions if decision.is_kept and decision.block.kind in _ROWS]
    for _, group in groupby(rows, key=lambda decision: decision.block.hints["table"]):
        first, *rest = group
        first.block.text = "\n".join(f"| {row.block.text} |" for row in (first, *rest))
        first.block.link_chars += sum(row.block.link_chars for row in rest)
        first.block.kind = kinds.TABLE
        for row in rest:
            row.reason = ATTACHED
