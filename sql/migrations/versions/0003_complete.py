"""The schema complete: withdrawals, alerts and their life cycle, constraints that make wrong states impossible."""

from regression.results.migrate import run_sql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0003.up.sql")


def downgrade() -> None:
    run_sql("0003.down.sql")
