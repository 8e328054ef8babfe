"""Tables of the first night: devices, environments, sources, payloads, runs, results, checks and baselines."""

from regression.results.migrate import run_sql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0001.up.sql")


def downgrade() -> None:
    run_sql("0001.down.sql")
