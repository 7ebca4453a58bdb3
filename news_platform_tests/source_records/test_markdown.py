"""Markdown and plain text."""

import pytest

from news_platform.errors import InputError
from news_platform.source_records import blocks as kinds
from news_platform.source_records.markdown import MAX_LINES, is_markup, read_markdown

PAGE = """# Faculty of **Engineering**

The faculty has [nine departments](https://u1.edu/d) in
four ![logo](x.png) buildings.

Departments
-----------

- Computer Science
  and Informatics
* [Civil Engineering](/civil "Civil")
  1. Bridges \\*of\\* stone

| Name | Room |
|------|:----:|
| Ada  | 12   |

> Quoted words

```python
x = [1](2)
```
"""


def found(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in read_markdown(text).blocks]


def test_blocks_of_markdown_come_in_order_without_markup() -> None:
    assert found(PAGE) == [
        (kinds.HEADING, "Faculty of Engineering"),
        (kinds.PARAGRAPH, "The faculty has nine departments in four buildings."),
        (kinds.HEADING, "Departments"),
        (kinds.ITEM, "Computer Science and Informatics"),
        (kinds.ITEM, "Civil Engineering"),
        (kinds.ITEM, "Bridges *of* stone"),
        (kinds.COLUMNS, "Name | Room"),
        (kinds.ROW, "Ada | 12"),
        (kinds.PARAGRAPH, "Quoted words"),
        (kinds.CODE, "x = [1](2)"),
    ]


def test_levels_markers_columns_and_links_are_kept_as_hints() -> None:
    blocks = {block.text: block for block in read_markdown(PAGE).blocks}
    assert [block.level for block in blocks.values() if block.level] == [1, 2]
    assert blocks["Civil Engineering"].hints == {"marker": "*"}
    assert blocks["Bridges *of* stone"].hints == {"marker": "1.", "depth": "2"}
    assert blocks["Ada | 12"].hints["columns"] == "Name | Room"
    assert blocks["Civil Engineering"].link_density == 1.0


def test_plain_text_is_paragraphs_and_bullet_lines() -> None:
    text = "Our schools:\n• School of Law\n• School of Art\n\nThat is all."
    assert found(text) == [
        (kinds.PARAGRAPH, "Our schools:"),
        (kinds.ITEM, "School of Law"),
        (kinds.ITEM, "School of Art"),
        (kinds.PARAGRAPH, "That is all."),
    ]


def test_a_rule_is_neither_a_block_nor_a_heading_after_a_list() -> None:
    assert found("- one item\n---\ntext") == [(kinds.ITEM, "one item"), (kinds.PARAGRAPH, "text")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p>x", True),
        ("a <br/> b", True),
        ("<!DOCTYPE html>", True),
        ("1 < 2 and 3 > 2", False),
        ("a <- b", False),
    ],
)
def test_markup_is_distinguished_from_text(text: str, expected: bool) -> None:
    assert is_markup(text) is expected


@pytest.mark.parametrize(
    "text", ["- x\n" * (MAX_LINES + 1), "word " * 1_000_000], ids=["lines", "characters"]
)
def test_a_text_that_is_too_long_for_a_page_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_markdown(text)
