"""Create the tables of the sheet outbox: rows shown, batches to send, tabs and writers."""

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
        sa.Column("intent_id", sa.Integer),
        sa.Column("sending_seq", sa.BigInteger),
        sa.Column("sending", sa.Text),
    )
    op.create_index("sheet_rows_intent", "sheet_rows", ["intent_id"])
    op.create_table(
        "sheet_intents",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("book", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("applied_at", sa.DateTime(timezone=True)),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "sheet_tabs",
        _key("book"),
        _key("tab"),
        sa.Column("sheet_id", sa.Integer, nullable=False),
        sa.Column("header", sa.Text, nullable=False),
    )
    op.create_table(
        "sheet_writers",
        _key("book"),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("sheet_writers", "sheet_tabs", "sheet_intents", "sheet_rows"):
        op.drop_table(table)
