"""An HTML tree in, its blocks in reading order out, each in the container it stands in.

The walk keeps everything a reader could see; what is boilerplate is decided later, from the zones
and marks noted here and from the sums of text and link text in every container.
"""

from lxml import etree

from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import Block, Container, Walked, normalised
from news_platform.source_records.marks import LANDMARKS, mark_of, zone_of
from news_platform.source_records.structures import (
    BREAK,
    BULLET,
    ListReading,
    TableReading,
    is_data_table,
    lines_of,
    parts_of_code,
)

_INVISIBLE_TAGS = """
script style noscript template svg iframe select option datalist input textarea head object canvas
video audio map math link meta title
"""
_PARTING_TAGS = """
address article aside blockquote body button caption center dd details dialog dir div dl dt fieldset
figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html label legend li main menu nav
ol p pre section summary table tbody td tfoot th thead tr ul
"""
_INLINE_TAGS = """
abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd mark nobr picture q rp rt
ruby s samp small source span strike strong sub sup time tt u var wbr
"""
_INVISIBLE = tuple(_INVISIBLE_TAGS.split())
_INLINE = tuple(_INLINE_TAGS.split())
_PARTING = frozenset(_PARTING_TAGS.split())
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_KINDS = {
    "li": kinds.ITEM,
    "dt": kinds.TERM,
    "dd": kinds.DEFINITION,
    "pre": kinds.CODE,
    **dict.fromkeys(_LEVELS, kinds.HEADING),
}
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
# Zones that are hardly ever content; a form may hold a whole page.
_SKIMMED = frozenset(("navigation", "header", "footer", "aside", "dialog"))
_STRUCTURES = frozenset((*_KINDS, *_LISTS, "table", "tr", "td", "th"))


def walk(root: etree._Element, *, zone_share: float) -> Walked:
    """Return the blocks below `root` in reading order.

    Inside navigation and the like only the texts are looked at, unless such a zone holds more than
    `zone_share` of the page's plain text: then it is none, and is read like the rest.
    """
    # Both in C: what nobody sees goes, and what only styles a text melts into it.
    etree.strip_elements(root, *_INVISIBLE, with_tail=False)
    etree.strip_tags(root, *_INLINE)
    walker = _Walker(_SKIMMED)
    walker.run(root)
    if walker.has_skimmed(zone_share):
        walker = _Walker(frozenset())
        walker.run(root)
    return Walked(walker.blocks, walker.containers, root.get("lang"))


class _Walker:
    """The state of one walk; iterative, since pages nest deeper than Python recurses."""

    def __init__(self, skims: frozenset[str]) -> None:
        self.skims = skims
        self.blocks: list[Block] = []
        self.container = Container()
        self.containers = [self.container]
        self.opened: list[etree._Element | None] = [None]
        self.skimmed: etree._Element | None = None
        self.parts: list[str] = []
        self.link_chars = 0
        self.links = 0
        self.kinds = [kinds.PARAGRAPH]
        self.level = 0
        self.lists: list[ListReading] = []
        self.tables: list[TableReading | None] = []
        self.tables_seen = 0
        self.term = ""

    def run(self, root: etree._Element) -> None:
        """Visit every element, entering and leaving it; what is called here is called often."""
        parts = self.parts
        for event, element in etree.iterwalk(root, events=("start", "end")):
            if event == "start":
                self.start(element, element.tag)
                text = element.text
            else:
                self.end(element, element.tag)
                text = element.tail
            if text and (parts or not text.isspace()):
                parts.append(text)
                if self.links:
                    self.link_chars += len(text.strip())

    def start(self, element: etree._Element, tag: str) -> None:
        """Take the beginning of an element."""
        if tag in _PARTING:
            if self.parts:
                self.flush()
            if self.skimmed is None:
                self.enter(element, tag)
        elif tag == "a":
            self.links += 1
        elif tag == "br":
            self.parts.append(BREAK)

    def end(self, element: etree._Element, tag: str) -> None:
        """Take the end of an element."""
        if tag in _PARTING:
            if self.parts:
                self.flush()
            if self.skimmed is element:
                self.skimmed = None
            if self.skimmed is None:
                if tag in _STRUCTURES:
                    self.close_structure(tag)
                if self.opened[-1] is element:
                    self.leave()
        elif tag == "a":
            self.links -= 1

    def enter(self, element: etree._Element, tag: str) -> None:
        """Note what an element is; most say nothing and count to what is around."""
        classes, name, role = element.get("class"), element.get("id"), element.get("role")
        mark = (mark_of(classes) if classes else None) or (mark_of(name) if name else None)
        if mark or role or tag in LANDMARKS:
            zone = zone_of(element, tag)
            is_main = tag == "main" or role == "main"
            self.container = Container(self.container, zone, mark, is_main)
            self.containers.append(self.container)
            self.opened.append(element)
            if zone in self.skims:
                self.skimmed = element
        if tag in _STRUCTURES:
            self.open_structure(element, tag)

    def leave(self) -> None:
        """Count the text of an element that said something to what is around."""
        self.opened.pop()
        inner, self.container = self.container, self.container.parent or self.container
        self.container.add(inner)

    def has_skimmed(self, share: float) -> bool:
        """Tell whether a zone was skimmed that holds more than this share of the plain text."""
        most = share * self.containers[0].plain_chars
        return any(c.plain_chars > most for c in self.containers if c.zone in self.skims)

    def open_structure(self, element: etree._Element, tag: str) -> None:
        if tag in _KINDS:
            self.kinds.append(_KINDS[tag])
            if tag in _LEVELS:
                self.level = _LEVELS[tag]
            elif tag == "li" and self.lists:
                self.lists[-1].open_item()
        elif tag in _LISTS:
            self.lists.append(ListReading(element))
        elif tag == "table":
            self.tables_seen += 1
            self.tables.append(TableReading(self.tables_seen) if is_data_table(element) else None)
        elif tag == "tr" and (table := self.table):
            table.open_row()

    def close_structure(self, tag: str) -> None:
        if tag in _KINDS:
            self.kinds.pop()
        elif tag in _LISTS:
            self.lists.pop()
        elif tag == "table":
            self.tables.pop()
        elif table := self.table:
            if tag == "tr":
                self.close_row(table)
            else:
                self.close_cell(table, is_name=tag == "th")

    @property
    def table(self) -> TableReading | None:
        return self.tables[-1] if self.tables else None

    def close_cell(self, table: TableReading, *, is_name: bool) -> None:
        table.add_cell("".join(self.parts), is_name=is_name, link_chars=self.link_chars)
        self.parts.clear()
        self.link_chars = 0

    def close_row(self, table: TableReading) -> None:
        text, kind, hints = table.close_row()
        if text:
            self.emit(text, kind, table.link_chars, hints)

    def flush(self) -> None:
        """Make a block of the text so far; inside the row of a table, a blank."""
        if self.tables and (table := self.table) and table.is_in_row:
            self.parts.append(" ")
            return
        text, links = "".join(self.parts), self.link_chars
        self.parts.clear()
        self.link_chars = 0
        is_code = self.kinds[-1] == kinds.CODE
        if BREAK not in text and not is_code:
            self.emit_line(normalised(text), links)
            return
        lines = parts_of_code(text) if is_code else lines_of(text)
        size = sum(map(len, lines)) or 1
        for line in lines:
            self.emit_line(line, links * len(line) // size)

    def emit_line(self, text: str, link_chars: int) -> None:
        """Add a block of the kind that the elements around it say."""
        kind, hints = self.kinds[-1], {}
        if not text:
            return
        if kind == kinds.PARAGRAPH:
            if not text[0].isalpha() and (bullet := BULLET.match(text)):
                kind, hints, text = kinds.ITEM, {"marker": bullet.group(1)}, text[bullet.end() :]
        elif kind == kinds.ITEM and self.lists:
            hints = self.lists[-1].hints(len(self.lists))
        elif kind == kinds.TERM:
            self.term = text
        elif kind == kinds.DEFINITION and self.term:
            hints = {"term": self.term}
        self.emit(text, kind, link_chars, hints)

    def emit(self, text: str, kind: str, link_chars: int, hints: dict[str, str]) -> None:
        size = len(text)
        links = link_chars if link_chars < size else size
        level = self.level if kind == kinds.HEADING else 0
        container = self.container
        self.blocks.append(Block(text, kind, container, links, level, hints))
        container.chars += size
        container.link_chars += links
