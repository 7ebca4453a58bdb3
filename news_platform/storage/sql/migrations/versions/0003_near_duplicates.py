"""Create the band table of near-duplicates: texts with their clusters, and their band keys."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create both tables."""
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
    for name, column in (("cluster", "cluster_id"), ("text", "text_key")):
        op.create_index(
            f"near_duplicate_texts_{name}", "near_duplicate_texts", ["collection", column]
        )
    op.create_table(
        "near_duplicate_bands",
        sa.Column("key", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column(
            "sequence",
            serial,
            sa.ForeignKey("near_duplicate_texts.sequence", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("near_duplicate_bands_sequence", "near_duplicate_bands", ["sequence"])


def downgrade() -> None:
    """Drop both tables."""
    op.drop_table("near_duplicate_bands")
    op.drop_table("near_duplicate_texts")
