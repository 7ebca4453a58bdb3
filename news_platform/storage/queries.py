"""Run a user's SQL over LazyFrames with DuckDB, which reaches nothing but these frames.

A query that could open files would read this process's secrets from /proc, or overwrite a root.
"""

from collections.abc import Mapping

import duckdb
import polars as pl

from news_platform.errors import InputError

# In this order: after the last line no query can change any of them. The folder for spilled data
# goes first, because DuckDB lets every query write there.
_RESTRICTIONS = (
    "SET enable_progress_bar = false",
    "SET temp_directory = ''",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_CURE = "only a query run with --unsafe (in Python: unsafe=True) may use files and the network"


def run_query(
    query: str,
    frames: Mapping[str, pl.LazyFrame],
    *,
    unsafe: bool = False,
    max_rows: int | None = None,
) -> pl.DataFrame:
    """Run the query over these tables; raise InputError if it fails or returns nothing.

    With `unsafe` it may also read and write files, load extensions and change settings. Rows above
    `max_rows` are left out.
    """
    # Without this, DuckDB would look up an unknown table among the variables of this program.
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        # Frames and not views over `read_parquet`: Polars opens their files, DuckDB may not.
        for name, frame in frames.items():
            connection.register(name, frame)
        for restriction in () if unsafe else _RESTRICTIONS:
            connection.execute(restriction)
        try:
            # None for an empty query or one that is only a comment.
            relation: duckdb.DuckDBPyRelation | None = connection.sql(query)
            if relation is not None and max_rows is not None:
                relation = relation.limit(max_rows)
            answer: pl.DataFrame | None = relation.pl() if relation is not None else None
        except duckdb.Error as error:
            raise InputError(f"cannot run the query: {_cause(error)}", thing=query) from error
        except pl.exceptions.PolarsError as error:
            # Such as an interval of months.
            cure = "cast the column of that type to VARCHAR"
            message = f"cannot read the answer: {str(error).splitlines()[0]}; {cure}"
            raise InputError(message, thing=query) from error
    if answer is None:
        raise InputError(f"{query!r} returns nothing: expected a SELECT", thing=query)
    return answer


def _cause(error: duckdb.Error) -> str:
    is_refused = isinstance(error, duckdb.PermissionException) or "has been locked" in str(error)
    # Sorting and grouping spill to the disk, which a restricted query may not touch.
    is_refused |= isinstance(error, duckdb.OutOfMemoryException)
    return f"{error}; {_CURE}" if is_refused else str(error)
