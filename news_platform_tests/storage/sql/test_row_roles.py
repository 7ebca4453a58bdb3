"""Rows of SQL tables are found and deleted by the roles of their columns."""

import sqlite3

import sqlalchemy as sa

from news_platform.datasets.dataset import Role
from news_platform.storage.sql.row_roles import count_rows, delete_rows, find_values
from news_platform_tests.takedowns.asked import target

PAGES = sa.Table(
    "pages",
    sa.MetaData(),
    sa.Column("url", sa.Text, info={"role": Role.url}),
    sa.Column("canonical", sa.Text, info={"role": Role.url}),
    sa.Column("origin", sa.Text, info={"role": Role.url, "path": "/robots.txt"}),
    sa.Column("link", sa.Text, info={"role": Role.links}),
)
GONE = "https://gone.example"
# More than the parameters that older versions of SQLite accept in one statement.
ROWS, MAX_PARAMETERS = 1_200, 999


def test_rows_go_by_any_address_and_in_statements_of_bounded_size() -> None:
    engine = sa.create_engine("sqlite://")
    stays = {"url": "https://o.example/", "canonical": None, "origin": "https://o.example"}
    gone = [
        {**stays, "url": f"{GONE}/{n}", "canonical": f"{GONE}/{n}", "link": ""} for n in range(ROWS)
    ]
    with engine.begin() as connection:
        database = connection.connection.driver_connection
        assert isinstance(database, sqlite3.Connection)
        database.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, MAX_PARAMETERS)
        PAGES.create(connection)
        connection.execute(sa.insert(PAGES), [*gone, {**stays, "link": f"{GONE}/1"}])
        connection.execute(sa.insert(PAGES), [{**stays, "origin": GONE, "link": ""}])
        down = target("domain", "gone.example")
        found = find_values(connection, [PAGES], down)
        assert {column.name for column in found} == {"url", "canonical", "origin"}
        assert count_rows(connection, found) == ROWS
        assert delete_rows(connection, found) == ROWS + 1
        assert connection.execute(sa.select(PAGES.c.link)).scalars().all() == [f"{GONE}/1"]
        # One page does not take the robots.txt of its host with it.
        connection.execute(sa.insert(PAGES), [{**stays, "origin": GONE, "link": ""}])
        assert find_values(connection, [PAGES], target("url", f"{GONE}/")) == {}
