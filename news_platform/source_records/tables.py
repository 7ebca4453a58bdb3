"""Tables kept whole: the rows of one table joined to one block with its lines and columns."""

from collections.abc import Sequence
from itertools import groupby

from news_platform.source_records import blocks as kinds
from news_platform.source_records.verdicts import ATTACHED, Verdict

_ROWS = (kinds.ROW, kinds.COLUMNS)


def merge_tables(verdicts: Sequence[Verdict]) -> None:
    """Make the first kept row of every table stand for the whole of it, one line a row."""
    rows = [verdict for verdict in verdicts if verdict.is_kept and verdict.block.kind in _ROWS]
    for _, group in groupby(rows, key=lambda verdict: verdict.block.hints["table"]):
        first, *rest = group
        first.block.text = "\n".join(f"| {row.block.text} |" for row in (first, *rest))
        first.block.link_chars += sum(row.block.link_chars for row in rest)
        first.block.kind = kinds.TABLE
        for row in rest:
            row.reason = ATTACHED
