"""The types of the options of `news-platform ccnews`: days and versions."""

import re
from datetime import date, timedelta

import click

from news_platform.ccnews.options import EXTRACTOR_VERSION

# Ten years and more: each day costs a look at its listing and its markers.
_MOST_DAYS = 4_000


class DaysParam(click.ParamType[list[date]]):
    """A day or a range of days: `2025-11-01` or `2025-11-01..2025-11-07`, both ends included."""

    name = "day[..day]"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[date]:
        """Return every day of the range."""
        first, _, last = value.partition("..")
        try:
            start, end = date.fromisoformat(first), date.fromisoformat(last or first)
        except ValueError:
            self.fail(f"invalid day {value!r}: expected YYYY-MM-DD or YYYY-MM-DD..YYYY-MM-DD")
        if end < start:
            self.fail(f"invalid range {value!r}: it ends before it starts")
        if (end - start).days >= _MOST_DAYS:
            self.fail(f"invalid range {value!r}: expected at most {_MOST_DAYS} days at once")
        return [start + timedelta(days=count) for count in range((end - start).days + 1)]


class VersionParam(click.ParamType[str]):
    """A version of the extractor: `2` or `2.1`."""

    name = "version"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the version unchanged if it is valid."""
        if not re.fullmatch(r"\d+(\.\d+)*", value, re.ASCII):
            self.fail(f"invalid version {value!r}: expected a number such as {EXTRACTOR_VERSION}")
        return value
