"""What long questions are asked with: indexes, and the outermost readings of a round beside its figures."""

from regression.results.migrate import run_sql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0004.up.sql")


def downgrade() -> None:
    run_sql("0004.down.sql")
