"""Days given as text, date or datetime."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from news_platform.errors import InputError
from news_platform.text.days import as_day

_EAST = timezone(timedelta(hours=5))


@pytest.mark.parametrize(
    "given",
    [
        "2025-11-01",
        date(2025, 11, 1),
        datetime(2025, 11, 1, 23, 59, tzinfo=UTC).replace(tzinfo=None),
        datetime(2025, 11, 1, tzinfo=UTC),
        datetime(2025, 11, 2, 4, tzinfo=_EAST),
    ],
)
def test_text_dates_and_datetimes_give_the_day_in_utc(given: str | date) -> None:
    assert as_day(given) == date(2025, 11, 1)
    assert type(as_day(given)) is date


@pytest.mark.parametrize("given", ["", "1 November", "2025-13-01", "2025-11-01T00:00"])
def test_text_that_is_not_a_date_is_rejected(given: str) -> None:
    with pytest.raises(InputError, match=r"invalid day .*expected YYYY-MM-DD"):
        as_day(given)
