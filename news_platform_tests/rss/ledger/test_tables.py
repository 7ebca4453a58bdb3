"""A new ledger has the tables that the code defines, and a revision changes an older one."""

import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from news_platform import composition
from news_platform.domain_metadata import queue
from news_platform.rss.ledger.tables import METADATA
from news_platform.rss.sheets.outbox import SHEET_ROWS
from news_platform.storage.sql.engine import open_engine, read_revision

_NEXT_REVISION = """
import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "initial"


def upgrade() -> None:
    with op.batch_alter_table("config") as table:
        table.alter_column("value", new_column_name="text")
"""


# SQLAlchemy cannot read back the index over an expression.
@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
@pytest.mark.filterwarnings("ignore:autogenerate skipping")
def test_a_new_ledger_has_every_table_and_column(ledger: sa.Engine) -> None:
    assert SHEET_ROWS.metadata is METADATA, "the sheets add their tables to the ledger's"
    with ledger.begin() as connection:
        context = MigrationContext.configure(connection)
        found = [compare_metadata(context, one) for one in (METADATA, queue.METADATA)]
    # The tables of the other one, and Alembic's own, are known to neither.
    unknown = ("remove_table", "remove_index")
    assert [item for items in found for item in items if item[0] not in unknown] == []


def test_a_later_revision_runs_on_an_older_ledger_alone(
    sqlite_ledger: sa.Engine, tmp_path: Path
) -> None:
    scripts = tmp_path / "migrations"
    shutil.copytree(Path(composition.__path__[0]) / "migrations", scripts)
    (scripts / "versions" / "0002_next.py").write_text(_NEXT_REVISION, encoding="utf-8")
    columns = {}
    for engine in (sqlite_ledger, open_engine(f"sqlite:///{tmp_path}/new.sqlite")):
        with engine.begin() as connection:
            config = Config(attributes={"connection": connection})
            config.set_main_option("script_location", str(scripts))
            command.upgrade(config, "head")
            assert read_revision(connection) == "next"
            names = [it["name"] for it in sa.inspect(connection).get_columns("config")]
            columns[engine is sqlite_ledger] = names
        engine.dispose()
    # The code, which a new ledger follows, still says `value` here.
    assert (columns[True][1], columns[False][1]) == ("text", "value")
