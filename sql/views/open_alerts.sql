-- Alerts that somebody has yet to resolve: open, acknowledged, and muted ones.
CREATE OR REPLACE VIEW open_alerts AS
SELECT
    alert.workload,
    device.name AS device,
    alert.metric,
    alert.direction,
    alert.outcome,
    alert.state,
    alert.state = 'muted' AND alert.muted_until > now() AS is_muted,
    alert.value,
    alert.baseline_value,
    alert.unit,
    100 * (alert.value - alert.baseline_value) / NULLIF(abs(alert.baseline_value), 0) AS change_percent,
    alert.text,
    alert.occurrences,
    (first.started_at AT TIME ZONE 'UTC')::date AS first_night,
    (last.started_at AT TIME ZONE 'UTC')::date AS last_night,
    alert.opened_at,
    alert.last_seen_at,
    alert.acknowledged_by,
    alert.acknowledged_at,
    alert.acknowledged_reason,
    alert.muted_until,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    alert.first_run_id,
    alert.last_run_id,
    last.dag_id AS last_dag_id,
    last.dag_run_id AS last_dag_run_id,
    alert.baseline_id,
    alert.alert_id
FROM alert
LEFT JOIN device ON device.device_id = alert.device_id
LEFT JOIN run AS first ON first.run_id = alert.first_run_id
LEFT JOIN run AS last ON last.run_id = alert.last_run_id
WHERE alert.state <> 'resolved';

COMMENT ON VIEW open_alerts IS 'Alerts that are not resolved: at most one a workload, device, metric and direction';
COMMENT ON COLUMN open_alerts.workload IS 'Workload';
COMMENT ON COLUMN open_alerts.device IS 'Model name of the device; NULL where there was none, as of a missing night';
COMMENT ON COLUMN open_alerts.metric IS 'What went wrong: the metric of a check, or night for one that is missing';
COMMENT ON COLUMN open_alerts.direction IS 'Where the figure went: lower, higher, changed, or missing';
COMMENT ON COLUMN open_alerts.outcome IS 'Class of outcome: regression, invalid_measurement, infrastructure_failure, ...';
COMMENT ON COLUMN open_alerts.state IS 'open, acknowledged or muted';
COMMENT ON COLUMN open_alerts.is_muted IS 'Whether it is muted now: a mute ends at muted_until';
COMMENT ON COLUMN open_alerts.value IS 'Latest figure';
COMMENT ON COLUMN open_alerts.baseline_value IS 'Figure of the baseline';
COMMENT ON COLUMN open_alerts.unit IS 'Unit of the two figures';
COMMENT ON COLUMN open_alerts.change_percent IS 'How far the figure is from that of the baseline, per cent';
COMMENT ON COLUMN open_alerts.text IS 'What people are told, in one line, as it was last told';
COMMENT ON COLUMN open_alerts.occurrences IS 'Nights that showed it';
COMMENT ON COLUMN open_alerts.first_night IS 'Date in UTC of the run that opened it; NULL: no run did';
COMMENT ON COLUMN open_alerts.last_night IS 'Date in UTC of the latest run that showed it';
COMMENT ON COLUMN open_alerts.opened_at IS 'When it was opened (UTC)';
COMMENT ON COLUMN open_alerts.last_seen_at IS 'When it was last seen (UTC)';
COMMENT ON COLUMN open_alerts.acknowledged_by IS 'Who has seen it';
COMMENT ON COLUMN open_alerts.acknowledged_at IS 'When it was acknowledged (UTC)';
COMMENT ON COLUMN open_alerts.acknowledged_reason IS 'What is known of its cause';
COMMENT ON COLUMN open_alerts.muted_until IS 'When its mute ends or ended (UTC)';
COMMENT ON COLUMN open_alerts.device_kind IS 'cuda, emulated, reference or simulated';
COMMENT ON COLUMN open_alerts.device_uuid IS 'Identity of the board or machine';
COMMENT ON COLUMN open_alerts.first_run_id IS 'Run that opened it';
COMMENT ON COLUMN open_alerts.last_run_id IS 'Latest run that showed it';
COMMENT ON COLUMN open_alerts.last_dag_id IS 'Airflow DAG of that run';
COMMENT ON COLUMN open_alerts.last_dag_run_id IS 'Airflow DAG run of that run';
COMMENT ON COLUMN open_alerts.baseline_id IS 'Baseline compared with';
COMMENT ON COLUMN open_alerts.alert_id IS 'Key; its events are in alert_event';
