"""The first revision: the tables that a new ledger gets from `env.py`."""

revision = "initial"
down_revision = None


def upgrade() -> None:
    """Change nothing: no ledger is older."""
