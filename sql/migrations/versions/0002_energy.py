"""Energy that can be trusted: figures with their uncertainty, power traces, telemetry and its gates."""

from regression.results.migrate import run_sql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0002.up.sql")


def downgrade() -> None:
    run_sql("0002.down.sql")
