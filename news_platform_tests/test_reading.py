"""The snippets of docs/reading.md and the notebook, run as they stand, and the traps they avoid."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from news_platform.domain_store.lookup import DomainStore
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_store.pages import build, collect, stage
from news_platform_tests.servers.demo import Demo

PAGE = Path(__file__).parent.parent / "docs" / "reading.md"
DAYS = {"2025-11-01": ["org.a", "org.b", "org.a"], "2025-11-02": ["org.a"]}
COLUMNS = ["uri", "day", "main_lang", "filename"]


@pytest.fixture
def root(local_store: ObjectStore) -> ObjectStore:
    collect(local_store, DAYS)
    stage(local_store, DAYS)
    build(local_store)
    return local_store


def _found(name: str, root: ObjectStore) -> Any:
    (code,) = re.findall(rf"```python {name}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {"root": root.url}
    exec(code.replace("{root}", root.url), names)
    return names["found"]


@pytest.mark.parametrize("tool", ["polars", "duckdb", "pyarrow", "spark"])
def test_each_tool_reads_a_day_with_its_partition_columns_as_strings(
    tool: str, root: ObjectStore
) -> None:
    if tool == "spark":
        pytest.importorskip("pyspark", reason="docs/reading.md labels this snippet as untested")
    found = _found(tool, root)
    rows = pl.DataFrame(pl.from_arrow(found) if tool in ("pyarrow", "spark") else found)
    assert rows.columns == COLUMNS
    assert set(rows.schema.values()) == {pl.String()}
    assert rows.height == len(DAYS["2025-11-01"])
    assert set(rows["day"]) == {"01"}
    assert set(rows["main_lang"]) == {"en", "de", "fr"}


def test_the_records_of_a_domain_are_found_by_the_index_alone(root: ObjectStore) -> None:
    expected = [row["uri"] for row in DomainStore(root).records("a.org")]
    assert sorted(_found("store", root)) == sorted(map(str, expected))
    assert len(expected) == 3


def test_the_notebook_answers_ten_questions_on_the_demo(finished_demo: Demo) -> None:
    cells = json.loads(PAGE.with_name("analyst.ipynb").read_text("utf-8"))["cells"]
    names: dict[str, Any] = {}
    answers = []
    for cell in cells:
        if cell["cell_type"] == "code":
            code = "".join(cell["source"]).replace('"data-demo"', repr(str(finished_demo.root)))
            # As a notebook does: run all, and show the value of the last line.
            *before, last = ast.parse(code).body
            assert isinstance(last, ast.Expr)
            exec(compile(ast.Module(before, []), "cell", "exec"), names)
            answers.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    first, *tables = answers
    assert "raw_news" in repr(first) and "2025-11-01" in repr(first)
    assert [table.height > 0 for table in tables] == [True] * 10


def test_the_traps_are_still_there(root: ObjectStore) -> None:
    globbed = pl.scan_parquet(f"{root.url}/news/raw/**/*.parquet").collect_schema()
    assert not {"year", "month", "day", "main_lang", "filename"} & set(globbed)
    with duckdb.connect() as connection, pytest.raises(duckdb.BinderException):
        connection.execute(
            f"from read_parquet('{root.url}/news/raw/**/*.parquet', filename=true)"
        ).fetchall()
