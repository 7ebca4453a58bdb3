"""Dates in pages and feeds: what is read as a date, and what is not."""

from datetime import UTC, datetime

import pytest

from news_platform.html.dates import find_shown_date, parse_date


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2025-11-03T10:20:30Z", datetime(2025, 11, 3, 10, 20, 30, tzinfo=UTC)),
        ("2025-11-03T10:20:30.123+01:00", datetime(2025, 11, 3, 9, 20, 30, tzinfo=UTC)),
        ("2025-11-03 10:20", datetime(2025, 11, 3, 10, 20, tzinfo=UTC)),
        ("2025-11-03", datetime(2025, 11, 3, tzinfo=UTC)),
        ("Mon, 03 Nov 2025 10:00:00 +0100", datetime(2025, 11, 3, 9, tzinfo=UTC)),
        ("Thu,28 Jul 2022 4:35:5 GMT+9", None),
        ("2025-13-45", None),
        ("0001-01-01T00:00:00Z", None),
        ("yesterday", None),
    ],
)
def test_only_what_is_clearly_a_date_is_read(written: str, moment: datetime | None) -> None:
    assert parse_date(written) == moment


@pytest.mark.parametrize(
    ("shown", "day"),
    [
        ("erstellt: 01. April 2025, 15:25", "2025-04-01"),
        ("28.04.2023", "2023-04-28"),
        ("November 3, 2025", "2025-11-03"),
        ("3 novembre 2025", "2025-11-03"),
        ("03/11/2025", None),
        ("31. Februar 2025", None),
        ("3 Quintember 2025", None),
    ],
)
def test_a_shown_date_is_read_when_it_has_one_meaning(shown: str, day: str | None) -> None:
    found = find_shown_date(shown)
    assert (found.at.date().isoformat() if found else None) == day
