"""What a cell holds, and how Sheets shows it; formats of numbers and dates are not kept."""

Value = str | int | float | bool | None


class Formula(str):
    """A formula with its equals sign."""

    __slots__ = ()


def display(value: Value) -> str:
    """Return the text that Sheets shows in the cell: ten significant digits of a number."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return str(value).upper()
    return str(int(value)) if float(value).is_integer() else f"{value:.10g}".replace("e", "E")


def unformatted(value: Value) -> Value:
    """Return the value itself; a whole number has no decimals."""
    if value is None or isinstance(value, str | bool):
        return "" if value is None else value
    return int(value) if float(value).is_integer() else float(value)
