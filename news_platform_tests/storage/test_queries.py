"""A user's SQL reads the given frames and nothing else, unless the user asks for more."""

from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from news_platform.errors import InputError
from news_platform.storage.queries import run_query

NUMBERS = pl.LazyFrame({"n": [1, 2, 3]})
# Each opens a file, an address, the environment or the settings; FOLDER is a folder of the test.
REFUSED = (
    "COPY numbers TO 'FOLDER/out.csv'",
    "COPY (SELECT 1) TO '.tmp/out.csv'",  # where DuckDB spills to, unless told otherwise
    "CREATE TABLE t (a VARCHAR); COPY t FROM 'FOLDER/secret.txt'",
    "SELECT 1; COPY numbers TO 'FOLDER/out.csv'",
    "ATTACH 'FOLDER/other.db'",
    "EXPORT DATABASE 'FOLDER/export'",
    "INSTALL httpfs",
    "LOAD 'FOLDER/evil.duckdb_extension'",
    "SELECT * FROM read_text('FOLDER/secret.txt')",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM read_parquet('FOLDER/data.parquet')",
    "SELECT * FROM glob('FOLDER/*')",
    "SELECT * FROM 'FOLDER/data.parquet'",
    "SELECT * FROM 'http://127.0.0.1:9/data.parquet'",
    "SELECT getenv('HOME')",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET temp_directory = 'FOLDER'",
    "PRAGMA profiling_output = 'FOLDER/profile.json'",
    "CALL enable_logging(storage = 'file', storage_config = {'path': 'FOLDER'})",
    "CREATE PERSISTENT SECRET kept (TYPE http, BEARER_TOKEN 'x')",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a file that no query may read."""
    (tmp_path / "secret.txt").write_text("planted,1\n")
    NUMBERS.collect().write_parquet(tmp_path / "data.parquet")
    (tmp_path / ".tmp").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("query", REFUSED)
def test_a_query_reaches_nothing_outside_its_frames(query: str, folder: Path) -> None:
    before = _contents(folder)
    with pytest.raises(InputError, match="cannot run the query") as caught:
        run_query(query.replace("FOLDER", str(folder)), {"numbers": NUMBERS})
    assert "planted" not in str(caught.value)
    assert _contents(folder) == before


def test_a_refusal_names_the_option_that_lifts_it(folder: Path) -> None:
    with pytest.raises(InputError, match="disabled by configuration; only a query run with --unsa"):
        run_query("SELECT * FROM read_text('secret.txt')", {})


def test_no_folder_is_open_to_a_query() -> None:
    names = "'allowed_directories', 'allowed_paths', 'temp_directory'"
    found = run_query(f"SELECT value FROM duckdb_settings() WHERE name IN ({names})", {})
    assert found["value"].to_list() == ["[]", "[]", ""]


def test_an_unsafe_query_may_write_a_file(folder: Path) -> None:
    run_query("COPY numbers TO 'out.csv' (HEADER)", {"numbers": NUMBERS}, unsafe=True)
    assert (folder / "out.csv").read_text().split() == ["n", "1", "2", "3"]


def test_tables_of_the_query_itself_are_allowed() -> None:
    query = "CREATE TABLE t AS SELECT n * 2 AS m FROM numbers; SELECT sum(m)::INT AS m FROM t"
    assert run_query(query, {"numbers": NUMBERS})["m"].to_list() == [12]


def test_a_filter_reads_only_the_row_groups_that_can_match(tmp_path: Path) -> None:
    file = tmp_path / "data.parquet"
    pl.DataFrame({"n": range(10_000), "word": ["x"] * 10_000}).write_parquet(
        file, row_group_size=1_000
    )
    _damage(file, groups=range(9))
    frames = {"numbers": pl.scan_parquet(file)}
    found = run_query("SELECT count(word) AS c FROM numbers WHERE n >= 9500", frames)
    assert found["c"].to_list() == [500]
    with pytest.raises(InputError, match="cannot run the query"):
        run_query("SELECT count(word) FROM numbers WHERE n >= 500", frames)


def test_a_filter_opens_only_the_partitions_that_can_match(tmp_path: Path) -> None:
    for day in ("01", "02"):
        (tmp_path / f"day={day}").mkdir()
        pl.DataFrame({"n": [int(day)]}).write_parquet(tmp_path / f"day={day}" / "part-0.parquet")
    frame = pl.scan_parquet(tmp_path, hive_schema={"day": pl.String})
    frame.collect_schema()
    _damage(tmp_path / "day=02" / "part-0.parquet", groups=range(1))
    found = run_query("SELECT n FROM days WHERE day = '01'", {"days": frame})
    assert found["n"].to_list() == [1]
    with pytest.raises(InputError, match="cannot run the query"):
        run_query("SELECT n FROM days", {"days": frame})


def _damage(file: Path, *, groups: range) -> None:
    """Overwrite the column chunks of these row groups; the footer stays readable."""
    metadata = pq.ParquetFile(file).metadata
    body = bytearray(file.read_bytes())
    for chunk in (metadata.row_group(at).column(i) for at in groups for i in range(_width(file))):
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        size = chunk.total_compressed_size
        body[start : start + size] = b"\xff" * size
    file.write_bytes(body)


def _width(file: Path) -> int:
    return int(pq.ParquetFile(file).metadata.num_columns)
