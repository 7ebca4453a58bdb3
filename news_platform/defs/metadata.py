"""What runs report to Dagster: counts, small tables and column lineage, without pages' content.

Dagster keeps events for good and takedowns do not reach them. So all metadata passes this module:
previews show the columns whose role is not an address, a title or a text; other texts lose the
addresses in them; and foreign text is escaped, because the UI renders Markdown.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg
import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.registry import column_sources
from news_platform.errors import hide_addresses

_SHOWN_ROWS = 20
# An underscore inside a word means nothing in Markdown.
_MARKDOWN = re.compile(r"([\\`*\[\]|!~#]|(?<!\w)_|_(?!\w))")


def column_schema(dataset: Dataset) -> dg.TableSchema:
    """Return the columns of a dataset with their descriptions, including those in the path."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(column.name, str(column.dtype), description=column.description)
            for column in dataset.all_columns
        ]
    )


def run_metadata(dataset: Dataset, values: Mapping[str, object]) -> dict[str, Any]:
    """Return what a run reports about a dataset: these values, and where its columns come from."""
    shown = {
        name: hide_addresses(value) if isinstance(value, str) else value
        for name, value in values.items()
    }
    return {**shown, **column_lineage(dataset)}


def preview(
    dataset: Dataset, rows: pl.DataFrame, *, columns: Iterable[str] = ()
) -> dg.MarkdownMetadataValue:
    """Return the first rows with the columns that may be shown outside the root.

    `columns` chooses some of them; columns that the dataset does not have are computed ones.
    """
    hidden = {column.name for column in dataset.all_columns if not column.is_shown}
    names = [name for name in columns or rows.columns if name in rows.columns]
    shown = [name for name in names if name not in hidden]
    return markdown_table(shown, rows.select(shown).head(_SHOWN_ROWS).iter_rows())


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, longest: int = 80
) -> dg.MarkdownMetadataValue:
    """Return rows as a Markdown table; each cell is one line of at most `longest` characters."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(value, longest) for value in row) + " |" for row in rows]
    return dg.MetadataValue.md("\n".join(lines))


def _cell(value: object, longest: int) -> str:
    text = hide_addresses(" ".join(str("" if value is None else value).split()))
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return _MARKDOWN.sub(r"\\\1", html.escape(cut, quote=False))


def column_lineage(dataset: Dataset) -> Mapping[str, dg.MetadataValue]:
    """Return the lineage as Dagster's own metadata and as a Markdown table.

    Dagster's open-source UI stores column lineage but does not show it.
    """
    sources = column_sources(dataset)
    if not sources:
        return {}
    deps = {column: [_dep(source) for source in given] for column, given in sources.items()}
    rows = [(column, ", ".join(given)) for column, given in sources.items()]
    return {
        "dagster/column_lineage": dg.MetadataValue.column_lineage(
            dg.TableColumnLineage(deps_by_column=deps)
        ),
        "column_sources": markdown_table(("column", "sources"), rows),
    }


def _dep(source: str) -> dg.TableColumnDep:
    asset, _, column = source.partition(".")
    return dg.TableColumnDep(asset_key=dg.AssetKey(asset), column_name=column)
