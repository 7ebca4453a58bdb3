"""The column type of text that strangers wrote: what one database accepts, both accept."""

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from news_platform.text.normalize import scrub_text


class ScrubbedText(TypeDecorator[str]):
    """Text without lone surrogates, NUL and control characters, in values and in conditions.

    PostgreSQL refuses NUL, SQLite stores it; neither takes a lone surrogate. Scrubbed here, no
    writer can forget it, and both ledgers hold the same text.
    """

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text as every database stores it."""
        return None if value is None else scrub_text(value)
