"""Alembic's entry point: run the revisions on the connection that `engine.migrate` passes."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    # SQLite can alter a table only by copying it.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
