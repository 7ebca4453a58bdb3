"""`news-platform sql "select …"`: query all datasets of a root."""

import click
import polars as pl

from news_platform.api import open_root
from news_platform.cli.options import emit, json_option, resources_for, root_option


@click.command()
@click.argument("query")
@click.option(
    "--unsafe", is_flag=True, help="Let QUERY also use files, the network and DuckDB's settings."
)
@root_option
@json_option
def sql(query: str, unsafe: bool, root: str, as_json: bool) -> None:
    """Run QUERY over all datasets with DuckDB; the QUERY `show` lists them."""
    resources_for(root)  # refuses a root that does not exist
    news = open_root(root)
    if query.strip().lower() == "show":
        rows = [
            {"dataset": table.name, "what": table.description} for table in news.tables.values()
        ]
        answer = pl.DataFrame(rows)
    else:
        answer = news.sql(query, unsafe=unsafe)
    with pl.Config(tbl_rows=200, tbl_cols=-1, fmt_str_lengths=60, tbl_hide_dataframe_shape=True):
        text = str(answer)
    emit(answer.to_dicts(), as_json=as_json, text=text)
