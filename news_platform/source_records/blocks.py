"""The blocks of a page, the containers, lists and tables around them, and what is decided."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from news_platform.source_records.html_events import BREAK
from news_platform.text.normalize import UNSPACED

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
    `prose_chars` counts texts of a sentence or more outside links. A toggle is a button that shows
    or hides the panel after it.
    """

    parent: "Container | None" = None
    zone: str | None = None
    widget: str | None = None
    is_main: bool = False
    is_never_content: bool = False
    chars: int = 0
    link_chars: int = 0
    detail: str = ""
    prose_chars: int = 0
    has_heading: bool = False
    has_form: bool = False
    is_toggle: bool = False

    def add(self, other: "Container") -> None:
        """Add the text below `other` to this container."""
        self.chars += other.chars
        self.link_chars += other.link_chars
        self.prose_chars += other.prose_chars
        self.has_heading = self.has_heading or other.has_heading
        self.has_form = self.has_form or other.has_form or other.zone == "control"

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

    `level` is 1-6 for headings, else 0. `link_chars` counts the characters inside links, whose
    targets are `links`. `element` is the number of the innermost element around the text.
    """

    text: str
    kind: str
    container: Container
    link_chars: int = 0
    level: int = 0
    hints: dict[str, str] = field(default_factory=dict)
    element: int = 0
    links: tuple[str, ...] = ()

    @property
    def link_density(self) -> float:
        """Return the share of the text that is inside links."""
        return self.link_chars / len(self.text)


# A text of this length with few links is a sentence.
PROSE_CHARS = 80


def is_prose(block: PageBlock) -> bool:
    """Return whether a block is a sentence or more outside links."""
    return len(block.text) >= PROSE_CHARS and block.link_chars * 2 < len(block.text)


@dataclass(slots=True)
class WalkedPage:
    """A page in reading order: its blocks, and its containers, outer before inner.

    `language` is the language that the page declares. `parents` and `tags` are those of the
    page's block elements, by number; the first is its own parent.
    """

    blocks: list[PageBlock]
    containers: list[Container]
    language: str | None = None
    parents: list[int] = field(default_factory=lambda: [0])
    tags: list[str] = field(default_factory=lambda: ["html"])


# "数学系", a department of mathematics, says as much as twelve letters.
_WIDE = re.compile(rf"[{UNSPACED}\uac00-\ud7af]")
_WIDE_CHARS = 4


def weighted_chars(text: str) -> int:
    """Return the length of a text in letters; each Chinese, Japanese or Korean one counts more."""
    return len(text) if text.isascii() else len(text) + (_WIDE_CHARS - 1) * len(_WIDE.findall(text))


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

    `detail` has the numbers by which the rule decided. `path` are the headings above the block,
    `section` is the same as one text; `also_in` are the sections of later blocks with this text.
    """

    block: PageBlock
    order: int
    reason: str | None = None
    detail: str = ""
    section: str | None = None
    language: BlockLanguage | None = None
    path: tuple[str, ...] = ()
    also_in: list[str] = field(default_factory=list)

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


_MAX_SPAN = 50


class ListState:
    """An open list: its kind and the number of its current item."""

    def __init__(self, tag: str, start: str) -> None:
        self._is_ordered = tag == "ol"
        # `start` is untrusted: int() raises for very long numbers.
        self._number = int(start) - 1 if start.isdecimal() and len(start) < 9 else 0
        self._hints: dict[str, str] = {}

    def open_item(self) -> None:
        """Count one more item."""
        self._number += 1
        self._hints = {}

    def hints(self, depth: int) -> dict[str, str]:
        """Return the marker of the current item, and its depth if the list is nested.

        All blocks of one item share this dictionary, by which they are known to belong together.
        """
        if not self._hints:
            self._hints["marker"] = f"{self._number}." if self._is_ordered else "-"
            if depth > 1:
                self._hints["depth"] = str(depth)
        return self._hints


class TableState:
    """An open data table: its column names and the current row."""

    def __init__(self, number: int) -> None:
        self._hints = {"table": str(number)}
        self._rows = 0
        # Cells that reach down into the next rows, by column: their text and the rows left.
        self._above: dict[int, tuple[str, int]] = {}
        self.open_row()
        self.is_in_row = False

    def open_row(self) -> None:
        """Start a row."""
        self._cells: list[str] = []
        self._names = 0
        # How many cells the row itself has, however many columns they fill.
        self._given = 0
        self.link_chars = 0
        self.is_in_row = True

    def add_cell(
        self, text: str, attributes: Mapping[str, str], *, is_name: bool, link_chars: int
    ) -> None:
        """Add the text of one cell; a cell over several columns or rows fills all of them."""
        self._fill_from_above()
        self._given += 1
        found = collapse_whitespace(text.replace(BREAK, " "))
        rows = _span(attributes.get("rowspan"))
        for column in range(_span(attributes.get("colspan"))):
            if rows > 1:
                self._above[len(self._cells)] = found if not column else "", rows - 1
            self._cells.append("" if column else found)
            self._names += is_name
        self.link_chars += link_chars

    def _fill_from_above(self) -> None:
        while left := self._above.pop(len(self._cells), None):
            text, rows = left
            if rows > 1:
                self._above[len(self._cells)] = text, rows - 1
            self._cells.append(text)

    def close_row(self) -> tuple[str, str, dict[str, str]]:
        """Return the row's text, kind and hints; the text of an empty row is empty."""
        self.is_in_row = False
        own = len(self._cells)
        self._fill_from_above()
        # A title over the whole width has no columns.
        is_title = self._given < 2 and sum(map(bool, self._cells)) < 2
        text = "".join(self._cells) if is_title else join_cells(self._cells)
        # Only the first row can hold the column names, and only if all its cells are <th>.
        if text and self._names == own and not self._rows:
            hints = self._hints
            self._hints = {**hints, "columns": " | ".join(self._cells)}
            return text, COLUMNS, hints
        self._rows += 1
        return text, ROW, dict(self._hints)


def join_cells(cells: Sequence[str]) -> str:
    """Return the text of a row: an empty cell keeps its place, a row without text is empty."""
    return collapse_whitespace(" | ".join(cells)) if any(cells) else ""


def _span(given: str | None) -> int:
    # Untrusted: a table of a thousand columns is not one.
    return min(int(given), _MAX_SPAN) or 1 if given and given.isdecimal() and len(given) < 5 else 1
