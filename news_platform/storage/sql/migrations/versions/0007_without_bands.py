"""Drop the band table of near-duplicates: clusters of articles are files of near_duplicates now."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop both tables, whose rows were derived from articles."""
    op.drop_table("near_duplicate_bands")
    op.drop_table("near_duplicate_texts")


def downgrade() -> None:
    """Create both tables without rows; the articles are then compared again."""
    serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "near_duplicate_texts",
        sa.Column("sequence", serial, primary_key=True, autoincrement=True),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("document_id", sa.Text, nullable=False),
        sa.Column("sketch", sa.Text, nullable=False),
        sa.Column("text_key", sa.Text, nullable=False),
        sa.Column("cluster_id", sa.Text, nullable=False),
        sa.Column("jaccard", sa.Double),
        sa.Column("shingle_hashes", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("collection", "document_id", name="near_duplicate_texts_document"),
    )
    op.create_table(
        "near_duplicate_bands",
        sa.Column("key", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("sequence", serial, primary_key=True, autoincrement=False),
    )
