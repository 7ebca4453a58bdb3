"""What becomes of headings and column names: context of what follows, or records of their own."""

from collections.abc import Iterator, Sequence

from news_platform.source_records import blocks as kinds
from news_platform.source_records.verdicts import ATTACHED, Verdict

_DEEPEST = 6
# A short or repeated heading is no record, but a section all the same.
_OPEN = (None, "too_short", "too_long", "language", "duplicate")


def attach_headings(verdicts: Sequence[Verdict]) -> None:
    """Make every heading and row of column names the context of the blocks below it.

    A heading with nothing below it, or only crumbs, stays a block of its own: it would be lost
    otherwise. One whose text was dropped on purpose goes with it.
    """
    for verdict, has_text in _headings(verdicts):
        if has_text:
            verdict.reason = ATTACHED
    for verdict in verdicts:
        if verdict.is_kept and verdict.block.kind == kinds.COLUMNS:
            verdict.reason = ATTACHED


def _headings(verdicts: Sequence[Verdict]) -> Iterator[tuple[Verdict, bool]]:
    """Yield the headings that head a section, last first, and whether it has any text."""
    has_text = [False] * (_DEEPEST + 1)
    for verdict in reversed(verdicts):
        level = verdict.block.level
        if level and verdict.reason in _OPEN:
            yield verdict, has_text[level]
            has_text[level:] = [False] * (_DEEPEST + 1 - level)
        elif not level and verdict.section is not None and verdict.reason != "too_short":
            has_text = [True] * (_DEEPEST + 1)
