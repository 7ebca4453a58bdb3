"""What was decided about each block of a page: kept, or dropped for a reason that is counted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from news_platform.source_records.blocks import Block

# Not lost: the text of a heading is in the section of the blocks that follow it, the names of a
# table's columns are in the hints of its rows.
ATTACHED = "attached"


@dataclass(frozen=True, slots=True)
class LanguageVerdict:
    """A language, how sure we are, and who judged: block, section, page, declared or assumed."""

    code: str | None
    probability: float | None
    source: str


@dataclass(slots=True)
class Verdict:
    """A block, its place in the page and its fate; `reason` is None while it is kept."""

    block: Block
    order: int
    reason: str | None = None
    section: str | None = None
    language: LanguageVerdict | None = None

    @property
    def is_kept(self) -> bool:
        """Tell whether the block becomes a record."""
        return self.reason is None


def iter_kept(verdicts: Sequence[Verdict]) -> Iterator[Verdict]:
    """Yield what nobody has dropped yet, in reading order."""
    return (verdict for verdict in verdicts if verdict.reason is None)
