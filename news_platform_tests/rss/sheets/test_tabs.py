"""Conversion of ledger values to cells, and headers and keys as people leave them."""

from datetime import UTC, datetime

import pytest

from news_platform.rss.sheets.books import (
    CUT_MARK,
    TABS,
    Cell,
    CellLimits,
    key_text,
    to_cell,
    truncate,
)
from news_platform.rss.sheets.layout import parse_header

CONFIG = TABS[5]


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


def test_a_longer_text_is_cut_to_the_limit_and_marked() -> None:
    assert truncate("x" * 50_000, 50_000) == "x" * 50_000
    shown = truncate("x" * 60_000, 50_000)
    assert len(shown) == 50_000 and shown.endswith(CUT_MARK)


def test_a_cut_counts_as_sheets_do_and_splits_no_character() -> None:
    shown = truncate("😀" * 60, 100)
    assert len(shown.encode("utf-16-le")) // 2 <= 100
    assert shown.removesuffix(CUT_MARK) == "😀" * 46


def test_a_header_may_have_its_columns_in_any_order_with_others_between() -> None:
    header = ["mine", " value ", "key", "updated_at"]
    assert parse_header(CONFIG, header) == ("mine", "value", "key", "updated_at")


def test_a_foreign_column_that_was_there_before_hides_no_loss() -> None:
    before = ("key", "value", "updated_at", "mine")
    header = parse_header(CONFIG, ["key", "value", "mine"], before=before)
    assert header == ("key", "value", "mine")


@pytest.mark.parametrize(("cell", "key"), [(7, "7"), (7.0, "7"), (" a ", "a"), ("", "")])
def test_a_key_is_read_as_the_ledger_writes_it(cell: Cell, key: str) -> None:
    assert key_text(cell) == key
