"""Add the states that each article had; what happened before has no rows in it."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "article_states",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("row_id", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text, nullable=False, server_default=""),
        sqlite_autoincrement=True,
    )
    op.create_index("article_states_row", "article_states", ["row_id", "id"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("article_states")
