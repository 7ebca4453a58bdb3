"""Create the domain queue and the table of accepted research files."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "domain_queue",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("batch", sa.Text, nullable=False),
        sa.Column("domain", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("accepted_at", sa.Double, nullable=False),
        sa.Column("due_at", sa.Double, nullable=False),
        sa.Column("worker", sa.Text),
        sa.Column("lease_until", sa.Double),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.Column("finished_at", sa.Double),
        sa.UniqueConstraint("batch", "domain", name="domain_queue_batch_domain"),
    )
    op.create_index("domain_queue_due", "domain_queue", ["batch", "state", "due_at", "id"])
    op.create_index("domain_queue_domain", "domain_queue", ["domain"])
    op.create_table(
        "research_files",
        sa.Column("path", sa.Text, primary_key=True),
        sa.Column("batch", sa.Text, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("records", sa.Integer, nullable=False),
        sa.Column("messages", sa.Integer, nullable=False),
        sa.Column("dropped", sa.Integer, nullable=False),
        sa.Column("accepted_at", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """Drop both tables."""
    op.drop_table("research_files")
    op.drop_table("domain_queue")
