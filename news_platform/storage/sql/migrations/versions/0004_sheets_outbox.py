"""Create the tables of the sheet outbox: rows shown, batches to send, spreadsheets and writers."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=True)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "sheet_rows",
        _key("book"),
        _key("tab"),
        _key("key"),
        sa.Column("seq", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("shown", sa.Text, nullable=False, server_default=""),
    )
    op.create_index("sheet_rows_seq", "sheet_rows", ["seq", "book"])
    op.create_table(
        "sheet_intents",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("book", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("rows", sa.Text, nullable=False),
    )
    op.create_table(
        "sheet_books",
        _key("book"),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("tabs", sa.Text, nullable=False, server_default="{}"),
        sa.Column("shown_up_to", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("closed_at", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "sheet_writers",
        _key("name"),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("sheet_writers", "sheet_books", "sheet_intents", "sheet_rows"):
        op.drop_table(table)
