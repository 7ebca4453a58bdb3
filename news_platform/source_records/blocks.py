"""The blocks of a page, the containers around them, and the decision about each block."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# What a block was made from. Headings and column names describe the blocks that follow and are
# records of their own only if the options say so.
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
    """An element with a landmark tag, role or telling class, and the amount of text below it.

    `zone` follows from its tag or role, `widget` from its class or id. An element that
    `is_never_content` is a footer or a consent dialog. `detail` has the numbers behind its zone.
    """

    parent: "Container | None" = None
    zone: str | None = None
    widget: str | None = None
    is_main: bool = False
    is_never_content: bool = False
    chars: int = 0
    link_chars: int = 0
    detail: str = ""

    def add(self, other: "Container") -> None:
        """Add the text below `other` to this container."""
        self.chars += other.chars
        self.link_chars += other.link_chars

    @property
    def plain_chars(self) -> int:
        """Return the number of characters outside links."""
        return self.chars - self.link_chars


def content_chars(containers: Sequence[Container]) -> int:
    """Return the amount of text that may be content, by which the share of a zone is measured.

    Text outside links counts, and so do links outside all zones and widgets: a list of linked
    departments is content, a menu is not. Footers and consent dialogs count nothing.
    """
    found = containers[0].chars
    # Outer containers come first. The state of each: 0 free, 1 in a zone or widget, 2 in a footer.
    states: dict[int, int] = {}
    for container in containers:
        outer = states[id(container.parent)] if container.parent is not None else 0
        own = 2 if container.is_never_content else int(bool(container.zone or container.widget))
        if own > outer:
            found -= container.plain_chars if outer else container.link_chars
            found -= container.plain_chars if own == 2 and not outer else 0
        states[id(container)] = max(own, outer)
    return found


@dataclass(slots=True)
class PageBlock:
    """One piece of text in reading order, with collapsed whitespace.

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

    `language` is the language that the page declares.
    """

    blocks: list[PageBlock]
    containers: list[Container]
    language: str | None = None


def collapse_whitespace(text: str) -> str:
    """Return the text with every run of whitespace replaced by one space."""
    return " ".join(text.split())


# Nothing is lost by this reason: the text of a heading is in the section of the blocks that follow
# it, and a table's column names are in the hints of its rows.
ATTACHED = "attached"


@dataclass(frozen=True, slots=True)
class BlockLanguage:
    """The language of a block, its probability, and what it was derived from.

    `source` is block, list, section, page, declared or assumed. `target_probability` is that of the
    target language for a text that was found to be in another one.
    """

    code: str | None
    probability: float | None
    source: str
    target_probability: float | None = None


@dataclass(slots=True)
class BlockDecision:
    """A block, its position in the page and why it was dropped; `reason` is None if it is kept.

    `detail` has the numbers by which the rule decided.
    """

    block: PageBlock
    order: int
    reason: str | None = None
    detail: str = ""
    section: str | None = None
    language: BlockLanguage | None = None

    def drop(self, reason: str, detail: str) -> None:
        """Drop the block by a rule with these numbers."""
        self.reason, self.detail = reason, detail

    @property
    def is_kept(self) -> bool:
        """Return whether the block becomes a record."""
        return self.reason is None


def iter_kept(decisions: Sequence[BlockDecision]) -> Iterator[BlockDecision]:
    """Yield the blocks that are not dropped, in reading order."""
    return (decision for decision in decisions if decision.reason is None)
