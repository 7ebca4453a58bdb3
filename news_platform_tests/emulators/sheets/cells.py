"""What a cell holds: how a typed text becomes a value, and how Sheets shows a value.

Recognised while typing, as in a spreadsheet of locale en_US: formulas, TRUE and FALSE, numbers with
thousands separators, exponents and percent signs, dates and times. An apostrophe keeps a text as it
is. Currencies, fractions and times without a date stay text, unlike in Sheets.
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

Value = str | int | float | bool | None

# Day 0 of Sheets' serial numbers.
_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001  # a cell's time has no zone
_NUMBER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)?(\.\d*)?(e[+-]?\d+)?(%)?", re.I)
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{2})(?::(\d{2}))?)?")
_AMERICAN_DAY = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
# From here on Sheets shows whole numbers with an exponent.
_LARGE = 1e15


class Formula(str):
    """A formula with its equals sign."""

    __slots__ = ()


class FormattedNumber(float):
    """A number and the format that its cell got when it was typed."""

    pattern: str

    def __new__(cls, number: float, pattern: str) -> "FormattedNumber":
        """Attach the pattern to the number."""
        made = super().__new__(cls, number)
        made.pattern = pattern
        return made

    @property
    def is_date(self) -> bool:
        """Return whether the number is shown as a date."""
        return "yy" in self.pattern


def typed(text: str) -> Value:
    """Return what a cell holds after a person typed this text."""
    if text.startswith("'"):
        return text[1:]
    if text.startswith("=") and len(text) > 1:
        return Formula(text)
    if text.upper() in ("TRUE", "FALSE"):
        return text.upper() == "TRUE"
    found = _number(text)
    if found is None:
        found = _date(text)
    if found is None and text.startswith("+"):
        return Formula(f"={text}")
    return text if found is None else found


def display(value: Value) -> str:
    """Return the text that Sheets shows in the cell."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, FormattedNumber):
        return _PATTERNS[value.pattern](value)
    return _general(value)


def unformatted(value: Value, *, dates_as_text: bool = False) -> Value:
    """Return the value itself; a date is its serial number unless it is wanted as shown."""
    if isinstance(value, FormattedNumber) and value.is_date and dates_as_text:
        return display(value)
    if value is None or isinstance(value, str | bool):
        return "" if value is None else value
    return int(value) if float(value).is_integer() else float(value)


def _number(text: str) -> float | None:
    found = _NUMBER.fullmatch(text.strip())
    if found is None or not any(letter.isdigit() for letter in text.partition("e")[0]):
        return None
    decimals, exponent, percent = found.groups()
    number = float(text.strip().removesuffix("%").replace(",", ""))
    if not math.isfinite(number):
        return None
    if percent:
        return FormattedNumber(number / 100, "0.00%" if decimals else "0%")
    if exponent:
        return FormattedNumber(number, "0.00E+00")
    if "," in text:
        return FormattedNumber(number, "#,##0.00" if decimals else "#,##0")
    return number


def _date(text: str) -> FormattedNumber | None:
    if found := _DAY.fullmatch(text):
        parts = [int(part or 0) for part in found.groups()]
        pattern = "yyyy-mm-dd hh:mm:ss" if found[4] else "yyyy-mm-dd"
    elif found := _AMERICAN_DAY.fullmatch(text):
        parts = [int(found[3]), int(found[1]), int(found[2]), 0, 0, 0]
        pattern = "m/d/yyyy"
    else:
        return None
    year, month, day, *clock = parts
    try:
        since = datetime(year, month, day, *clock) - _EPOCH  # type: ignore[arg-type]  # noqa: DTZ001  # three numbers at most
    except ValueError:
        return None
    return FormattedNumber(since / timedelta(days=1), pattern)


def _general(number: float) -> str:
    """Show a number in the automatic format: ten significant digits."""
    if float(number).is_integer() and abs(number) < _LARGE:
        return str(int(number))
    return f"{number:.10g}".replace("e", "E")


def _moment(serial: float) -> datetime:
    return _EPOCH + timedelta(seconds=round(serial * 86_400))


_PATTERNS: Mapping[str, Callable[[float], str]] = {
    "yyyy-mm-dd": lambda serial: f"{_moment(serial):%Y-%m-%d}",
    "yyyy-mm-dd hh:mm:ss": lambda serial: f"{_moment(serial):%Y-%m-%d %H:%M:%S}",
    "m/d/yyyy": lambda serial: f"{_moment(serial):%-m/%-d/%Y}",
    "#,##0": lambda number: f"{number:,.0f}",
    "#,##0.00": lambda number: f"{number:,.2f}",
    "0%": lambda number: f"{number:.0%}",
    "0.00%": lambda number: f"{number:.2%}",
    "0.00E+00": lambda number: f"{number:.2E}",
}
