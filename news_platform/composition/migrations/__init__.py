"""The history of the ledger's schema: one linear row of Alembic revisions."""
