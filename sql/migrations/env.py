"""Alembic environment: runs on the connection that ``regression.results.migrate`` hands over, and on nothing else."""

from alembic import context

from regression.results.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
