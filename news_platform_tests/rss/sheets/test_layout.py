"""Headers that people changed, and keys as a spreadsheet returns them."""

import pytest

from news_platform.errors import InputError
from news_platform.rss.sheets.layout import key_text, parse_header
from news_platform.rss.sheets.tabs import TABS, Cell

CONFIG = TABS[4]


def test_a_header_may_have_its_columns_in_any_order_with_others_between() -> None:
    header = ["mine", " value ", "key", "updated_at"]
    assert parse_header(CONFIG, header) == ("mine", "value", "key", "updated_at")


def test_a_foreign_column_that_was_there_before_hides_no_loss() -> None:
    before = ("key", "value", "updated_at", "mine")
    header = parse_header(CONFIG, ["key", "value", "mine"], before=before)
    assert header == ("key", "value", "mine")


@pytest.mark.parametrize(
    ("header", "before", "message"),
    [
        pytest.param(["key", "wert", "updated_at"], CONFIG.columns, "is new", id="renamed"),
        pytest.param(["key", "key"], (), "2 columns", id="doubled"),
        pytest.param(["value", "updated_at"], (), "no column 'key'", id="without its key"),
    ],
)
def test_a_header_that_cannot_be_trusted_is_an_error(
    header: list[Cell], before: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        parse_header(CONFIG, header, before=before)


@pytest.mark.parametrize(("cell", "key"), [(7, "7"), (7.0, "7"), (" a ", "a"), ("", "")])
def test_a_key_is_read_as_the_ledger_writes_it(cell: Cell, key: str) -> None:
    assert key_text(cell) == key
