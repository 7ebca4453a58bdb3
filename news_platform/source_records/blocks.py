"""A block of a page as the walk finds it, and the containers it stands in; no decisions here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# What a block was made from. A heading or a table's column names are no records by themselves
# unless the options ask for them: they describe the blocks that follow.
PARAGRAPH = "paragraph"
HEADING = "heading"
ITEM = "item"
ROW = "row"
COLUMNS = "columns"
TABLE = "table"
TERM = "term"
DEFINITION = "definition"
CODE = "code"


@dataclass(slots=True)
class Container:
    """An element that says something about itself, with the sums of all text below it.

    `zone` is what its tag or role makes it, `widget` what its class or id speaks of.
    """

    parent: "Container | None" = None
    zone: str | None = None
    widget: str | None = None
    is_main: bool = False
    chars: int = 0
    link_chars: int = 0

    def add(self, other: "Container") -> None:
        """Count everything below `other` as below this one too."""
        self.chars += other.chars
        self.link_chars += other.link_chars

    @property
    def plain_chars(self) -> int:
        """Return how many characters are outside links."""
        return self.chars - self.link_chars


@dataclass(slots=True)
class PageBlock:
    """One piece of text in reading order, whitespace collapse_whitespace.

    `level` is 1-6 for headings, else 0. `link_chars` counts the characters inside links.
    """

    text: str
    kind: str
    container: Container
    link_chars: int = 0
    level: int = 0
    hints: dict[str, str] = field(default_factory=dict)

    @property
    def link_density(self) -> float:
        """Return the share of the text that is inside links."""
        return self.link_chars / len(self.text)


@dataclass(slots=True)
class WalkedPage:
    """A page in reading order: its blocks, and its containers, outer before inner.

    `language` is what the page declares about itself.
    """

    blocks: list[PageBlock]
    containers: list[Container]
    language: str | None = None


def collapse_whitespace(text: str) -> str:
    """Return the text with every run of whitespace as one space."""
    return " ".join(text.split())


# Not lost: the text of a heading is in the section of the blocks that follow it, the names of a
# table's columns are in the hints of its rows.
ATTACHED = "attached"


@dataclass(frozen=True, slots=True)
class BlockLanguage:
    """A language, how sure we are, and who judged: block, section, page, declared or assumed."""

    code: str | None
    probability: float | None
    source: str


@dataclass(slots=True)
class BlockDecision:
    """A block, its place in the page and its fate; `reason` is None while it is kept."""

    block: PageBlock
    order: int
    reason: str | None = None
    section: str | None = None
    language: BlockLanguage | None = None

    @property
    def is_kept(self) -> bool:
        """Tell whether the block becomes a record."""
        return self.reason is None


def iter_kept(decisions: Sequence[BlockDecision]) -> Iterator[BlockDecision]:
    """Yield what nobody has dropped yet, in reading order."""
    return (decision for decision in decisions if decision.reason is None)
