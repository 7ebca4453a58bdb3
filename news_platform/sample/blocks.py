"""Pure: content blocks (headings, paragraphs, lists, tables) as HTML and as markdown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Block:
    """One block: a text has one row of one cell, a list a row an item, a table its header first."""

    kind: str
    rows: tuple[tuple[str, ...], ...]
    language: str | None = None

    @property
    def text(self) -> str:
        """Return the first cell: the whole of a heading, paragraph or quote."""
        return self.rows[0][0]


def parse_block(entry: Mapping[str, object]) -> Block:
    """Read a block from its TOML form: one key names the kind, `lang` may stand beside it."""
    language = entry.get("lang")
    (kind, content) = next((key, value) for key, value in entry.items() if key != "lang")
    parts = content if isinstance(content, list) else [content]
    rows = tuple(
        tuple(map(str, part)) if isinstance(part, list) else (str(part),) for part in parts
    )
    return Block(kind, rows, None if language is None else str(language))


def render_html(blocks: Sequence[Block]) -> str:
    """Return the blocks as HTML, one a line."""
    return "\n".join(_html(block) for block in blocks)


def render_markdown(blocks: Sequence[Block]) -> str:
    """Return the blocks as markdown, a blank line between them."""
    return "\n\n".join(_MARKDOWN[block.kind](block) for block in blocks) + "\n"


def _html(block: Block) -> str:
    lang = f' lang="{block.language}"' if block.language else ""
    tag = "blockquote" if block.kind == "quote" else block.kind
    return f"<{tag}{lang}>{_html_content(block)}</{tag}>"


def _html_content(block: Block) -> str:
    match block.kind:
        case "ul" | "ol":
            return "".join(f"<li>{escape(row[0])}</li>" for row in block.rows)
        case "dl":
            return "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in block.rows)
        case "table":
            header, *body = block.rows
            return f"<thead>{_row(header, 'th')}</thead><tbody>{_body(body)}</tbody>"
        case _:
            return escape(block.text)


def _body(rows: Sequence[Sequence[str]]) -> str:
    return "".join(_row(row, "td") for row in rows)


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _markdown_table(block: Block) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in block.rows]
    lines.insert(1, "|" + " --- |" * len(block.rows[0]))
    return "\n".join(lines)


_MARKDOWN: dict[str, Callable[[Block], str]] = {
    "h1": lambda block: f"# {block.text}",
    "h2": lambda block: f"## {block.text}",
    "h3": lambda block: f"### {block.text}",
    "p": lambda block: block.text,
    "quote": lambda block: f"> {block.text}",
    "ul": lambda block: "\n".join(f"- {row[0]}" for row in block.rows),
    "ol": lambda block: "\n".join(f"{at}. {row[0]}" for at, row in enumerate(block.rows, 1)),
    "dl": lambda block: "\n\n".join(f"**{term}**\n{said}" for term, said in block.rows),
    "table": _markdown_table,
}
