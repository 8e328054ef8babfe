"""Tables of alerts: one row a thing that somebody has to look at, and everything that ever happened to it."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import UUID

from regression.results.columns import (
    ALERT_CHANNELS,
    ALERT_DIRECTIONS,
    ALERT_EVENTS,
    ALERT_OUTCOMES,
    ALERT_STATES,
    DOUBLE,
    TIMESTAMP,
    UNITS,
    key,
    metadata,
    not_blank,
    one_of,
    optional,
    required,
    together,
)

ACKNOWLEDGED = ("acknowledged_by", "acknowledged_at", "acknowledged_reason")

alert = Table(
    "alert",
    metadata,
    key("alert_id", "Key"),
    required("workload", Text, "Workload"),
    optional(
        "device_id", Integer, "Device; NULL where there was none, as of a missing night", ForeignKey("device.device_id")
    ),
    required("metric", Text, "What went wrong: the metric of a check, or night for one that is missing"),
    required("direction", Text, "Where the figure went: lower, higher, changed, or missing"),
    required("outcome", Text, "Class of outcome: regression, invalid_measurement, infrastructure_failure, ..."),
    required("state", Text, "open, acknowledged, muted (until muted_until) or resolved"),
    optional("first_run_id", UUID(as_uuid=False), "Run that opened it; NULL: no run did", ForeignKey("run.run_id")),
    optional("last_run_id", UUID(as_uuid=False), "Latest run that showed it again", ForeignKey("run.run_id")),
    required("occurrences", Integer, "Nights that showed it"),
    optional("value", DOUBLE, "Latest figure"),
    optional("baseline_value", DOUBLE, "Figure of the baseline"),
    optional("unit", Text, "Unit of the two figures"),
    optional("baseline_id", Integer, "Baseline compared with", ForeignKey("baseline.baseline_id")),
    required("text", Text, "What people are told, in one line, as it was last told"),
    required("opened_at", TIMESTAMP, "When it was opened (UTC)", server_default=text("now()")),
    required("last_seen_at", TIMESTAMP, "When it was last seen (UTC)", server_default=text("now()")),
    optional("acknowledged_by", Text, "Who has seen it"),
    optional("acknowledged_at", TIMESTAMP, "When it was acknowledged (UTC)"),
    optional("acknowledged_reason", Text, "What is known of its cause"),
    optional("muted_until", TIMESTAMP, "When its mute ends or ended (UTC)"),
    optional("resolved_at", TIMESTAMP, "When it was resolved (UTC); NULL while it is not"),
    optional("message", Text, "The message that goes with that line; NULL: none"),
    optional(
        "tell_since",
        TIMESTAMP,
        "Since when a channel without a later event notified has something to tell, while the alert is open (UTC); "
        "NULL: none has",
    ),
    Index(
        "alert_unresolved_key",
        *("workload", text("coalesce(device_id, 0)"), "metric", "direction"),
        unique=True,
        postgresql_where=text("state <> 'resolved'"),
    ),
    one_of("direction", ALERT_DIRECTIONS),
    one_of("outcome", ALERT_OUTCOMES),
    one_of("state", ALERT_STATES),
    one_of("unit", UNITS),
    not_blank("text", "workload", "metric", "text", "message"),
    CheckConstraint("occurrences > 0", name="occurrences"),
    CheckConstraint("device_id > 0", name="device_id"),
    CheckConstraint("num_nonnulls(value, baseline_value) = 0 OR unit IS NOT NULL", name="figures"),
    CheckConstraint("first_run_id IS NULL OR last_run_id IS NOT NULL", name="runs"),
    CheckConstraint("last_seen_at >= opened_at", name="last_seen_at"),
    CheckConstraint("tell_since >= opened_at", name="tell_since"),
    together("acknowledged", *ACKNOWLEDGED),
    not_blank("acknowledged_reason", "acknowledged_by", "acknowledged_reason"),
    CheckConstraint("acknowledged_at >= opened_at AND acknowledged_at <= muted_until", name="acknowledged_at"),
    CheckConstraint(
        "(state = 'resolved') = (resolved_at IS NOT NULL) AND resolved_at >= opened_at", name="resolved_at"
    ),
    CheckConstraint(
        "CASE state WHEN 'open' THEN acknowledged_at IS NULL AND muted_until IS NULL"
        " WHEN 'acknowledged' THEN acknowledged_at IS NOT NULL AND muted_until IS NULL"
        " WHEN 'muted' THEN acknowledged_at IS NOT NULL AND muted_until IS NOT NULL"
        " ELSE muted_until IS NULL OR acknowledged_at IS NOT NULL END",
        name="life_cycle",
    ),
    comment="Alerts: at most one that is not resolved a workload, device, metric and direction",
)

alert_event = Table(
    "alert_event",
    metadata,
    key("alert_event_id", "Key, in the order of what happened"),
    required("alert_id", Integer, "Alert", ForeignKey("alert.alert_id")),
    required("at", TIMESTAMP, "When it happened (UTC)", server_default=text("now()")),
    required("event", Text, "opened, seen_again, acknowledged, muted, mute_ended, resolved, reopened, notified, ..."),
    required("author", Text, "Who did it, a person or a part of this system"),
    required("text", Text, "What was said, sent, or given as a reason"),
    optional("run_id", UUID(as_uuid=False), "Run that caused it", ForeignKey("run.run_id")),
    optional("night", TIMESTAMP, "Planned time of the night that caused it, where no run did (UTC)"),
    optional("channel", Text, "Of a delivery: smtp, slack or webhook"),
    Index(None, "alert_id", "alert_event_id"),
    one_of("event", ALERT_EVENTS),
    not_blank("author", "author"),
    one_of("channel", ALERT_CHANNELS),
    CheckConstraint("channel IS NULL OR event IN ('notified', 'notification_failed')", name="delivery"),
    CheckConstraint("num_nonnulls(run_id, night) <= 1", name="night"),
    comment="Everything that happened to alerts; rows are added and never changed",
)

__all__ = ["alert", "alert_event"]
