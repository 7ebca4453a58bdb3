"""Write a number of bytes for people to read."""

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def bytes_text(count: int) -> str:
    """Return the count in the largest unit that leaves a number of at least 1: `12.3 MB`."""
    value, unit = float(count), 0
    while value >= 999.95 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{count} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"
