-- Runs whose energy, or which altogether, must not be used any more, with what to use instead.
CREATE OR REPLACE VIEW withdrawn AS
SELECT
    (run.started_at AT TIME ZONE 'UTC')::date AS night,
    run.workload,
    device.name AS device,
    withdrawal.scope,
    withdrawal.reason,
    withdrawal.figures,
    withdrawal.withdrawn_by,
    withdrawal.withdrawn_at,
    run.adjusted_mj_median,
    run.energy_trust,
    (successor.started_at AT TIME ZONE 'UTC')::date AS successor_night,
    successor_device.name AS successor_device,
    successor.adjusted_mj_median AS successor_adjusted_mj_median,
    successor.energy_trust AS successor_energy_trust,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    withdrawal.successor_run_id
FROM withdrawal
JOIN run ON run.run_id = withdrawal.run_id
LEFT JOIN device ON device.device_id = run.device_id
LEFT JOIN run AS successor ON successor.run_id = withdrawal.successor_run_id
LEFT JOIN device AS successor_device ON successor_device.device_id = successor.device_id;

COMMENT ON VIEW withdrawn IS 'Withdrawn runs with the reason and what to use instead; the runs stay readable in every other view';
COMMENT ON COLUMN withdrawn.night IS 'Date in UTC on which the withdrawn run began';
COMMENT ON COLUMN withdrawn.workload IS 'What was tested';
COMMENT ON COLUMN withdrawn.device IS 'Model name of the device';
COMMENT ON COLUMN withdrawn.scope IS 'What of it must not be used any more: energy, or all of it';
COMMENT ON COLUMN withdrawn.reason IS 'Why it was withdrawn';
COMMENT ON COLUMN withdrawn.figures IS 'The figures that were published, and what holds instead';
COMMENT ON COLUMN withdrawn.withdrawn_by IS 'Who withdrew it';
COMMENT ON COLUMN withdrawn.withdrawn_at IS 'When that was recorded (UTC)';
COMMENT ON COLUMN withdrawn.adjusted_mj_median IS 'Median adjusted energy that it had, mJ a replay';
COMMENT ON COLUMN withdrawn.energy_trust IS 'verified, failed, unverified or unavailable';
COMMENT ON COLUMN withdrawn.successor_night IS 'Date in UTC of the run to be used instead; NULL: none is named';
COMMENT ON COLUMN withdrawn.successor_device IS 'Model name of its device';
COMMENT ON COLUMN withdrawn.successor_adjusted_mj_median IS 'Its median adjusted energy, mJ a replay';
COMMENT ON COLUMN withdrawn.successor_energy_trust IS 'What its energy is worth: verified, failed, unverified or unavailable';
COMMENT ON COLUMN withdrawn.trigger IS 'scheduled, manual, backfill or import';
COMMENT ON COLUMN withdrawn.device_kind IS 'cuda, emulated, reference or simulated';
COMMENT ON COLUMN withdrawn.device_uuid IS 'Identity of the board or machine';
COMMENT ON COLUMN withdrawn.started_at IS 'When the withdrawn run began (UTC)';
COMMENT ON COLUMN withdrawn.dag_id IS 'Airflow DAG';
COMMENT ON COLUMN withdrawn.dag_run_id IS 'Airflow DAG run';
COMMENT ON COLUMN withdrawn.run_id IS 'Key of the withdrawn run in every table';
COMMENT ON COLUMN withdrawn.successor_run_id IS 'Run to be used instead';
