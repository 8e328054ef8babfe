"""Kernels that are tried: runs that do, and what was seen of the two kernels that they compare."""

from regression.results.migrate import run_sql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0007.up.sql")


def downgrade() -> None:
    run_sql("0007.down.sql")
