"""Alerts that are sent: what is told, since when, on which channel, and of which night where there was no run."""

from regression.results.migrate import run_sql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0006.up.sql")


def downgrade() -> None:
    run_sql("0006.down.sql")
