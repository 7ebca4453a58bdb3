"""Add to Raw how an article was extracted: version, confidence, and the source of its date."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; articles extracted before have no version and no confidence."""
    op.add_column("raw", sa.Column("extractor_version", sa.Text, nullable=False, server_default=""))
    op.add_column("raw", sa.Column("confidence", sa.Float))
    op.add_column(
        "raw", sa.Column("published_at_source", sa.Text, nullable=False, server_default="")
    )


def downgrade() -> None:
    """Drop the columns."""
    for name in ("published_at_source", "confidence", "extractor_version"):
        op.drop_column("raw", name)
