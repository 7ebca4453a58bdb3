"""Headers that people changed, column letters, and keys as a spreadsheet returns them."""

import pytest

from news_platform.errors import InputError
from news_platform.rss.sheets.tabs import (
    TABS,
    Cell,
    column_letter,
    key_text,
    parse_header,
    quote_title,
)

CONFIG = TABS[4]


def test_a_full_header_gives_every_column_its_place() -> None:
    layout = parse_header(CONFIG, ["mine", "value", "key", "updated_at"])
    assert layout.positions == {"key": 2, "value": 1, "updated_at": 3}
    assert (layout.missing, layout.width) == ((), 4)


def test_an_empty_tab_lacks_all_columns() -> None:
    assert parse_header(CONFIG, []).missing == CONFIG.columns


def test_a_missing_column_is_to_be_added() -> None:
    assert parse_header(CONFIG, ["key", "value"]).missing == ("updated_at",)


def test_a_foreign_column_that_was_there_before_hides_no_loss() -> None:
    before = ("key", "value", "updated_at", "mine")
    assert parse_header(CONFIG, ["key", "value", "mine"], before=before).missing == ("updated_at",)


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


@pytest.mark.parametrize(
    ("place", "letters"), [(0, "A"), (25, "Z"), (26, "AA"), (32, "AG"), (701, "ZZ"), (702, "AAA")]
)
def test_columns_are_lettered_as_in_sheets(place: int, letters: str) -> None:
    assert column_letter(place) == letters


@pytest.mark.parametrize(("cell", "key"), [(7, "7"), (7.0, "7"), (" a ", "a"), ("", "")])
def test_a_key_is_read_as_the_ledger_writes_it(cell: Cell, key: str) -> None:
    assert key_text(cell) == key


def test_a_title_with_a_quote_is_quoted() -> None:
    assert quote_title("Editor's pick") == "'Editor''s pick'"
