"""Conversion of ledger values to cells."""

from datetime import UTC, datetime

import pytest

from news_platform.rss.sheets.tabs import CUT_MARK, TABS, Cell, CellLimits, to_cell, truncate


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        pytest.param(None, "", id="nothing is an empty text"),
        pytest.param(True, True, id="a truth stays one"),
        pytest.param(7, 7, id="a number stays one"),
        pytest.param(0.5, 0.5, id="a fraction stays one"),
        pytest.param("=1+1", "=1+1", id="a formula is only a text"),
        pytest.param("a\x00b\x1fc\td\n", "abc\td\n", id="control characters go"),
        pytest.param("a\ud800b", "ab", id="half a character goes"),
        pytest.param("مرحبا 😀", "مرحبا 😀", id="any script stays"),
        pytest.param(("Ann", "Bo"), '["Ann", "Bo"]', id="a list is a JSON array"),
        pytest.param((), "", id="an empty list is an empty text"),
        pytest.param(
            datetime(2025, 11, 3, 20, tzinfo=UTC), "2025-11-03T20:00:00Z", id="a moment is UTC"
        ),
    ],
)
def test_a_value_becomes_a_cell(value: object, cell: Cell) -> None:
    shown = to_cell("title", value, CellLimits(100))
    assert (shown, type(shown)) == (cell, type(cell))


@pytest.mark.parametrize("length", [49_999, 50_000])
def test_a_text_within_the_limit_is_left_alone(length: int) -> None:
    assert truncate("x" * length, 50_000) == "x" * length


def test_a_longer_text_is_cut_to_the_limit_and_marked() -> None:
    shown = truncate("x" * 60_000, 50_000)
    assert len(shown) == 50_000 and shown.endswith(CUT_MARK)


def test_a_cut_counts_as_sheets_do_and_splits_no_character() -> None:
    shown = truncate("😀" * 60, 100)
    assert len(shown.encode("utf-16-le")) // 2 <= 100
    assert shown.removesuffix(CUT_MARK) == "😀" * 46


def test_every_key_column_is_a_column_of_its_tab() -> None:
    assert [tab.name for tab in TABS] == [
        "Feeds",
        "Raw",
        "ArticlesIndex",
        "Diagnostics",
        "Config",
        "Analyses",
    ]
    for tab in TABS:
        assert set(tab.columns) <= set(tab.table.c.keys())
        assert tab.is_keyed == (tab.name != "Diagnostics")
