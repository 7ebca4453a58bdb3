"""The blocks of a page in reading order, their kinds and hints."""

import pytest

from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import PageBlock
from news_platform.source_records.html_events import parse_html, widget_of
from news_platform.source_records.walk import walk


def blocks(html: str) -> list[PageBlock]:
    return walk(parse_html(html), zone_share=0.7).blocks


def found(html: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks(html)]


def test_blocks_come_in_reading_order_with_their_kind() -> None:
    html = (
        "<h1>Title</h1>Loose text<p>Para <b>graph</b></p><pre>x = 1</pre><blockquote>Q</blockquote>"
    )
    assert found(html) == [
        (kinds.HEADING, "Title"),
        (kinds.PARAGRAPH, "Loose text"),
        (kinds.PARAGRAPH, "Para graph"),
        (kinds.CODE, "x = 1"),
        (kinds.PARAGRAPH, "Q"),
    ]


def test_scripts_styles_and_choices_are_not_seen_but_the_text_after_them_is() -> None:
    html = "<p>a<script>x()</script>b<style>p{}</style>c<select><option>d</select>e<!-- f -->g</p>"
    assert found(html) == [(kinds.PARAGRAPH, "abceg")]


def test_items_keep_their_markers_and_depth() -> None:
    html = "<ul><li>a<ol start=3><li>b</li><li>c</li></ol></li></ul>"
    assert [(block.text, block.hints) for block in blocks(html)] == [
        ("a", {"marker": "-"}),
        ("b", {"marker": "3.", "depth": "2"}),
        ("c", {"marker": "4.", "depth": "2"}),
    ]


def test_a_data_table_becomes_rows_with_the_column_names_as_hints() -> None:
    html = (
        "<table><thead><tr><th>Name</th><th>Room</th></tr></thead>"
        "<tbody><tr><td><p>Ada</p></td><td>1<br>2</td></tr><tr><td></td><td></td></tr></table>"
    )
    names, row = blocks(html)
    assert (names.kind, names.text) == (kinds.COLUMNS, "Name | Room")
    assert (row.kind, row.text) == (kinds.ROW, "Ada | 1 2")
    assert row.hints == {"table": "1", "columns": "Name | Room"}


def test_a_layout_table_is_not_a_data_table() -> None:
    html = (
        "<table><tr><td><h2>News</h2><p>Text</p></td><td><ul><li>item</li></ul></td></tr></table>"
    )
    assert [kind for kind, _ in found(html)] == [kinds.HEADING, kinds.PARAGRAPH, kinds.ITEM]


def test_a_definition_has_its_term() -> None:
    term, definition = blocks("<dl><dt>Dean</dt><dd>Ada Lovelace</dd></dl>")
    assert (term.kind, definition.kind) == (kinds.TERM, kinds.DEFINITION)
    assert definition.hints == {"term": "Dean"}


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("one<br>two", ["one two"]),
        ("one<br><br>two", ["one", "two"]),
        ("Labs:<br>• Optics<br>• Waves", ["Labs:", "Optics", "Waves"]),
        ("<br>", []),
    ],
    ids=["a line goes on", "a blank line parts", "bullets part", "nothing"],
)
def test_line_breaks(html: str, expected: list[str]) -> None:
    assert [block.text for block in blocks(f"<p>{html}</p>")] == expected


def test_a_bullet_written_by_hand_is_an_item() -> None:
    (item,) = blocks("<p>2) Second</p>")
    assert (item.kind, item.text, item.hints) == (kinds.ITEM, "Second", {"marker": "2)"})


def test_a_long_listing_is_cut_at_blank_lines_and_a_short_one_is_not() -> None:
    assert len(blocks("<pre>a = 1\n\nb = 2</pre>")) == 1
    assert len(blocks(f"<pre>{'a' * 600}\n\n{'b' * 600}</pre>")) == 2


def test_a_zone_that_holds_the_page_is_read_like_any_other_element() -> None:
    html = f"<header><h2>Groups</h2><ul><li>Optics</li></ul><p>{'word ' * 30}</p></header><p>x</p>"
    assert [(block.kind, block.hints) for block in blocks(html)[:2]] == [
        (kinds.HEADING, {}),
        (kinds.ITEM, {"marker": "-"}),
    ]


@pytest.mark.parametrize(
    ("names", "widget"),
    [
        ("site-nav", "navigation"),
        ("mainMenu open", "navigation"),
        ("COOKIE_BAR", "consent"),
        ("sr_only", "screen_reader"),
        ("unshared navy", None),
        ("row flex-1", None),
    ],
)
def test_a_class_suggests_a_widget_by_whole_words(names: str, widget: str | None) -> None:
    assert widget_of(names) == widget


def test_an_empty_cell_keeps_its_place() -> None:
    html = (
        "<table><caption>Staff of the school</caption>"
        "<tr><th>Name</th><th>Title</th><th>Room</th></tr>"
        "<tr><td>Ada Byron</td><td></td><td>Room 101</td></tr>"
        "<tr><td>Alan Turing</td><td>Reader</td><td></td></tr><tr><td></td><td> </td></tr></table>"
    )
    caption, columns, ada, alan = blocks(html)
    assert (caption.kind, caption.text) == (kinds.PARAGRAPH, "Staff of the school")
    assert (columns.kind, columns.text) == (kinds.COLUMNS, "Name | Title | Room")
    assert (ada.text, alan.text) == ("Ada Byron | | Room 101", "Alan Turing | Reader |")
    assert ada.hints["columns"] == "Name | Title | Room"


def test_cells_over_several_rows_and_columns_fill_them() -> None:
    html = (
        "<table><tr><th>Name</th><th>Day</th><th>Room</th></tr>"
        "<tr><td rowspan='2'>Ada Byron</td><td>Monday</td><td>101</td></tr>"
        "<tr><td>Friday</td><td>102</td></tr><tr><td colspan='2'>Alan Turing</td><td>7</td></tr>"
        "<tr><td colspan='3'>Emeriti</td></tr></table>"
    )
    assert [block.text for block in blocks(html)[1:]] == [
        "Ada Byron | Monday | 101",
        "Ada Byron | Friday | 102",
        "Alan Turing | | 7",
        "Emeriti",
    ]


def test_links_without_text_between_them_are_entries_of_their_own() -> None:
    html = "<div><a>Marine Biology</a><a>Port Architecture</a><a>Sea Law</a></div>"
    assert [text for _, text in found(html)] == ["Marine Biology", "Port Architecture", "Sea Law"]
    assert [text for _, text in found("<p>See <a>Biology</a><a>Physics</a>, both open.</p>")] == [
        "See Biology Physics, both open."
    ]
    assert [text for _, text in found("<pre><a>Vec</a><a>T</a></pre>")] == ["VecT"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p><span>Harbour</span><span>Clinic</span></p>", "Harbour Clinic"),
        ("<p><span>Fee</span><span><span>$20</span></span></p>", "Fee $20"),
        ("<p><span>W</span><span>ards</span></p>", "Wards"),
        ("<p>H<sub>2</sub>O and Java<b>Script</b></p>", "H2O and JavaScript"),
        ("<pre><span>get</span><span>Name</span></pre>", "getName"),
    ],
)
def test_spans_are_set_apart_where_a_name_or_a_price_begins(html: str, text: str) -> None:
    assert [block.text for block in blocks(html)] == [text]
