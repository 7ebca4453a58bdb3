"""Find the covered rows of tables by their column of URLs."""

from collections.abc import Iterable

import polars as pl

from news_platform.takedowns.match import Takedowns

# A host that may be spelled otherwise than in punycode and lower case.
_ODD_HOST = r"^[^/]*//[^/]*[%\x{80}-\x{10FFFF}]"


def covered_urls(urls: Iterable[str | None], takedowns: Takedowns) -> frozenset[str]:
    """Return those of the URLs that are taken down."""
    return frozenset(url for url in set(urls) if url and takedowns.covers_url(url))


def is_covered(urls: pl.Series, takedowns: Takedowns) -> pl.Series:
    """Return for each URL of a column whether it is taken down."""
    likely = urls.to_frame("url").filter(may_be_covered("url", takedowns))["url"]
    found = covered_urls(likely, takedowns)
    return urls.is_in(list(found)).fill_null(False)


def may_be_covered(column: str, takedowns: Takedowns) -> pl.Expr:
    """Return an expression that is true for every covered URL and false for nearly all others.

    It runs inside the scan, so that only few addresses become Python objects.
    """
    domains = sorted(takedowns.registrable_domains)
    if not domains:
        return pl.lit(False)
    text = pl.col(column).fill_null("")
    return text.str.contains_any(domains, ascii_case_insensitive=True) | text.str.contains(
        _ODD_HOST
    )
