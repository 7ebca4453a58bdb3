"""What Alembic runs: the revisions, on the connection that `storage.sql.migrate` hands over."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    # SQLite alters a table by copying it.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
