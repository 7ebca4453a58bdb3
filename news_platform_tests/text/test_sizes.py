"""Numbers of bytes in the unit that fits."""

import pytest

from news_platform.text.sizes import bytes_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (20_500_000, "20.5 MB"),
        (1_070_000_000, "1.1 GB"),
        (10**21, "1000000.0 PB"),
    ],
)
def test_a_count_is_written_in_the_unit_that_fits(count: int, text: str) -> None:
    assert bytes_text(count) == text
