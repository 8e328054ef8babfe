"""Confirmation rounds: which rounds are, how many were planned, and why."""

from regression.results.migrate import run_sql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0005.up.sql")


def downgrade() -> None:
    run_sql("0005.down.sql")
