"""Days, sizes and time spans as people write and read them."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from news_platform.errors import InputError
from news_platform.text.readable import (
    age_text,
    as_day,
    bytes_text,
    number_of,
    plain_cell,
    spreadsheet_cell,
)

_EAST = timezone(timedelta(hours=5))


@pytest.mark.parametrize(
    "given",
    [
        "2025-11-01",
        date(2025, 11, 1),
        datetime(2025, 11, 1, 23, 59, tzinfo=UTC).replace(tzinfo=None),
        datetime(2025, 11, 2, 4, tzinfo=_EAST),
    ],
)
def test_text_dates_and_datetimes_give_the_day_in_utc(given: str | date) -> None:
    assert as_day(given) == date(2025, 11, 1)
    assert type(as_day(given)) is date


@pytest.mark.parametrize("given", ["", "2025-13-01", "2025-11-01T00:00"])
def test_text_that_is_not_a_date_is_rejected(given: str) -> None:
    with pytest.raises(InputError, match=r"invalid day .*expected YYYY-MM-DD"):
        as_day(given)


def test_one_thing_is_not_plural() -> None:
    assert [number_of(n, "feed") for n in (0, 1, 1_200)] == ["0 feeds", "1 feed", "1,200 feeds"]
    assert number_of(1, "entry is", "entries are") == "1 entry is"
    assert number_of(2, "entry is", "entries are") == "2 entries are"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (999, "999 bytes"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (1_070_000_000, "1.1 GB"),
        (10**21, "1000000.0 PB"),
    ],
)
def test_a_count_is_written_in_the_unit_that_fits(count: int, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(119, "119 s"), (180, "3 min"), (86_400 * 9, "9 days")]
)
def test_spans_are_written_in_the_largest_fitting_unit(seconds: float, text: str) -> None:
    assert age_text(seconds) == text


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_a_cell_is_never_a_formula_and_can_be_read_back(text: str) -> None:
    assert spreadsheet_cell(text) == f"'{text}"
    assert plain_cell(f"'{text}") == text


@pytest.mark.parametrize("value", ["", "plain", "'quoted'", "1+1", -1, None])
def test_other_cells_are_written_as_they_are(value: object) -> None:
    assert spreadsheet_cell(value) == value
    assert plain_cell(str(value)) == str(value)
