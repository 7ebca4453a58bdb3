"""Parse Markdown or plain text into blocks in reading order: headings, items, rows, paragraphs."""

import re

from news_platform.errors import InputError
from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import (
    Container,
    PageBlock,
    WalkedPage,
    collapse_whitespace,
    join_cells,
)

MAX_TEXT_CHARS = 4_000_000
MAX_LINES = 50_000
# Far longer than any block that is kept, so its inline markup is not removed.
_MAX_STYLED_CHARS = 20_000

_TAG = re.compile(r"<(?:[a-zA-Z][a-zA-Z0-9]*[\s/>]|!doctype|!--|/[a-zA-Z])", re.IGNORECASE)
_HEADING = re.compile(r"(#{1,6})\s+(?=\S)")
_BULLET = re.compile(r"(\s*)([-*+•·▪◦‣–]|\d{1,3}[.)])\s+(?=\S)")
# Every repetition is bounded, so that a hostile line cannot make a search quadratic.
_IMAGE = re.compile(r"!\[[^\[\]]{0,500}\]\([^()]{0,2000}\)")
_LINK = re.compile(
    r"\[([^\[\]]{0,2000})\]\((?:[^()\s]|\([^()]{0,500}\)){0,2000}(?:\s\"[^\"]{0,500}\")?\)"
)
_EMPHASIS = re.compile(r"(?<!\\)(\*\*|__|\*|`)(?=\S)(.{1,500}?)(?<![\s\\])\1")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|>-])")
_INLINE_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,2000}>")
_FENCES = ("```", "~~~")


def is_markup(text: str) -> bool:
    """Return whether a text contains an HTML tag."""
    return _TAG.search(text) is not None


def read_markdown(text: str) -> WalkedPage:
    """Return the blocks of a text; blank lines separate paragraphs, every bullet starts an item.

    Raise InputError for a text that is too long to be a page.
    """
    lines = text.splitlines() if len(text) <= MAX_TEXT_CHARS else []
    if len(text) > MAX_TEXT_CHARS or len(lines) > MAX_LINES:
        raise InputError(f"the text has {len(text)} characters in {len(lines)} lines, too many")
    reader = _MarkdownReader()
    for line in lines:
        reader.read(line)
    reader.close_run()
    return WalkedPage(reader.blocks, reader.containers)


class _MarkdownReader:
    """The state of parsing: the open paragraph or item, and the list or table (run) around it."""

    def __init__(self) -> None:
        self.blocks: list[PageBlock] = []
        self.root = Container()
        self.containers = [self.root]
        self.run = self.root
        self.lines: list[str] = []
        self.kind = kinds.PARAGRAPH
        self.hints: dict[str, str] = {}
        self.columns = ""
        self.is_code = False

    def read(self, line: str) -> None:
        """Parse one line."""
        text = line.strip()
        if text.startswith(_FENCES):
            self.close()
            self.is_code = not self.is_code
            self.kind = kinds.CODE if self.is_code else kinds.PARAGRAPH
        elif self.is_code:
            self.lines.append(line)
        elif not text:
            self.close()
        elif not (self.read_heading(text) or self.read_row(text) or self.read_item(line)):
            self.read_text(line)

    def read_heading(self, text: str) -> bool:
        """Parse a `# Heading`, or a line that underlines the line before; return whether it is."""
        if heading := _HEADING.match(text):
            self.close_run()
            title = text[heading.end() :].rstrip("#")
            self.add(title, kind=kinds.HEADING, level=len(heading.group(1)))
            return True
        if len(self.lines) == 1 and self.kind == kinds.PARAGRAPH and set(text) in ({"="}, {"-"}):
            title, self.lines = self.lines[0], []
            self.close_run()
            self.add(title, kind=kinds.HEADING, level=1 if text[0] == "=" else 2)
            return True
        return False

    def read_row(self, text: str) -> bool:
        """Parse a table row, or the rule below its column names; return whether it is one."""
        if set(text) <= set("|:-=*_ ") and len(text) > 2:
            self.close()
            self.name_columns()
            return True
        if len(text) < 2 or text[0] != "|" or text[-1] != "|":
            return False
        self.open_run()
        cells = [_plain(cell)[0] for cell in text[1:-1].split("|")]
        hints = {"table": str(len(self.containers))}
        if self.columns:
            hints["columns"] = self.columns
        self.add(join_cells(cells), kind=kinds.ROW, hints=hints)
        return True

    def name_columns(self) -> None:
        """Use the row above a rule as the column names."""
        last = self.blocks[-1] if self.blocks else None
        if last and last.kind == kinds.ROW and last.container is self.run and not self.columns:
            last.kind, self.columns = kinds.COLUMNS, last.text

    def read_item(self, line: str) -> bool:
        """Parse the first line of a list item; return whether it is one."""
        bullet = _BULLET.match(line)
        if not bullet:
            return False
        self.open_run()
        # Two blanks are one level; a tab counts as four blanks.
        depth = len(bullet.group(1).expandtabs(4)) // 2 + 1
        self.kind, self.hints = kinds.ITEM, {"marker": bullet.group(2)}
        if depth > 1:
            self.hints["depth"] = str(depth)
        self.lines = [line[bullet.end() :]]
        return True

    def read_text(self, line: str) -> None:
        """Add a line to the open paragraph or item, or start a paragraph."""
        # An indented line after a blank one still belongs to the list item above.
        if not self.lines and not line[0].isspace():
            self.close_run()
        self.lines.append(line.lstrip("> "))

    def open_run(self) -> None:
        """Start a list or table unless one is open."""
        self.close()
        if self.run is self.root:
            self.run = Container(self.root)
            self.containers.append(self.run)

    def close_run(self) -> None:
        """End the open list or table."""
        self.close()
        if self.run is not self.root:
            self.root.add(self.run)
            self.run, self.columns = self.root, ""

    def close(self) -> None:
        """Turn the open paragraph or item into a block."""
        if self.lines:
            self.add(" ".join(self.lines), kind=self.kind, hints=self.hints)
        self.lines, self.kind, self.hints = [], kinds.PARAGRAPH, {}

    def add(
        self, source: str, *, kind: str, level: int = 0, hints: dict[str, str] | None = None
    ) -> None:
        """Add a block without its markup."""
        text, links = (collapse_whitespace(source), 0) if kind == kinds.CODE else _plain(source)
        if text:
            self.blocks.append(PageBlock(text, kind, self.run, links, level, hints or {}))
            self.run.chars += len(text)
            self.run.link_chars += links


def _plain(source: str) -> tuple[str, int]:
    """Return a text without markup, and the number of its characters inside links."""
    links = 0
    if len(source) > _MAX_STYLED_CHARS:
        return collapse_whitespace(source), links

    def label(match: re.Match[str]) -> str:
        nonlocal links
        links += len(match.group(1).strip())
        return match.group(1)

    text = _LINK.sub(label, _IMAGE.sub("", source))
    text = _EMPHASIS.sub(r"\2", _INLINE_TAG.sub(" ", text))
    text = collapse_whitespace(_ESCAPE.sub(r"\1", text))
    return text, min(links, len(text))
