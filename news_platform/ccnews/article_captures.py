"""Add `is_article` to captures for readers: whether the corpus has the record as an article.

The corpus decides that downstream, by the day, so it is joined when somebody asks for it: a query
that does not name the column reads no article.
"""

from collections.abc import Iterator
from functools import partial

import polars as pl
from polars.io.plugins import register_io_source

from news_platform.datasets.captures import CAPTURE_INDEX, CAPTURES

CAPTURE_TABLES = frozenset({CAPTURES.name, CAPTURE_INDEX.name})
_IS_ARTICLE = "is_article"


def with_is_article(captures: pl.LazyFrame, articles: pl.LazyFrame) -> pl.LazyFrame:
    """Return captures with a last column that says whether each is in `articles`."""
    schema = {**captures.collect_schema(), _IS_ARTICLE: pl.Boolean()}
    return register_io_source(partial(_iter_batches, captures, articles), schema=schema)


def _iter_batches(
    captures: pl.LazyFrame,
    articles: pl.LazyFrame,
    columns: list[str] | None,
    predicate: pl.Expr | None,
    rows: int | None,
    _batch_rows: int | None,
) -> Iterator[pl.DataFrame]:
    """Yield the captures that a filter lets through; Polars calls it."""
    named = predicate.meta.root_names() if predicate is not None else []
    is_joined = columns is None or _IS_ARTICLE in (*columns, *named)
    frame = captures
    if predicate is not None and _IS_ARTICLE not in named:
        frame, predicate = frame.filter(predicate), None
    if not is_joined:
        frame = frame.select(columns)
    if rows is not None and predicate is None:
        frame = frame.head(rows)
    for found in frame.collect_batches():
        batch = _joined(found, articles) if is_joined else found
        batch = batch.filter(predicate) if predicate is not None else batch
        batch = batch.select(columns) if columns is not None else batch
        yield batch if rows is None else batch.head(rows)
        rows = None if rows is None else max(0, rows - batch.height)
        if rows == 0:
            return


def _joined(batch: pl.DataFrame, articles: pl.LazyFrame) -> pl.DataFrame:
    parts = ["date"] if "date" in batch.columns else ["year", "month", "day"]
    days = batch.select(pl.concat_str(parts, separator="-")).to_series().unique().to_list()
    known = (
        articles.filter(pl.col("day").is_in(days))
        .select(
            warc="warc",
            warc_record_offset=pl.col("record_offset").cast(pl.Int32),
            url="url",
            is_article=pl.lit(value=True),
        )
        .unique()
        .collect()
    )
    name = pl.col("warc_filename").str.split("/").list.last().alias("warc")
    joined = batch.with_columns(name).join(
        known,
        on=["warc", "warc_record_offset", "url"],
        how="left",
        maintain_order="left",
    )
    return joined.drop("warc").with_columns(pl.col(_IS_ARTICLE).fill_null(value=False))
