"""How reports and tables are shown in the Dagster UI."""

from collections.abc import Iterable, Mapping, Sequence

import dagster as dg

from news_platform.datasets.table import Table


def column_schema(table: Table) -> dg.TableSchema:
    """Return the columns of a dataset, those in the path included, with what they mean."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(column.name, str(column.dtype), description=column.description)
            for column in (*table.columns, *table.partition_columns)
        ]
    )


def table_metadata(table: Table) -> Mapping[str, object]:
    """Return the metadata that every asset kept as a table carries in its definition."""
    return {"dagster/column_schema": column_schema(table), "path": table.path}


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> dg.MarkdownMetadataValue:
    """Return rows as a small table; cells are cut to one short line."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return dg.MetadataValue.md("\n".join(lines))


def _cell(value: object, longest: int = 80) -> str:
    text = " ".join(str("" if value is None else value).split()).replace("|", "\\|")
    return text if len(text) <= longest else text[: longest - 1] + "…"
