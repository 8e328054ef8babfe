-- Baselines that runs are compared with now: one row a (workload, payload, device, protocol, environment class).
CREATE OR REPLACE VIEW baseline_current AS
SELECT
    baseline.workload,
    payload.name AS payload,
    device.name AS device,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    baseline.protocol,
    baseline.environment_class,
    baseline.for_agreement,
    baseline.for_time,
    baseline.for_energy,
    run.agreed,
    run.total,
    run.adjusted_mj_median,
    run.adjusted_mj_min,
    run.adjusted_mj_max,
    run.cuda_ms_median,
    run.energy_trust,
    baseline.accepted_by,
    baseline.accepted_at,
    baseline.reason,
    run.started_at AS run_started_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    baseline.baseline_id
FROM baseline
JOIN run ON run.run_id = baseline.run_id
JOIN device ON device.device_id = baseline.device_id
JOIN payload ON payload.payload_id = baseline.payload_id
WHERE baseline.retired_at IS NULL;

COMMENT ON VIEW baseline_current IS 'Baselines that runs are compared with now';
COMMENT ON COLUMN baseline_current.workload IS 'Workload';
COMMENT ON COLUMN baseline_current.payload IS 'Name of the set of frozen draws';
COMMENT ON COLUMN baseline_current.device IS 'Model name of the device';
COMMENT ON COLUMN baseline_current.device_kind IS 'cuda, emulated, reference or simulated';
COMMENT ON COLUMN baseline_current.device_uuid IS 'Identity of the board or machine';
COMMENT ON COLUMN baseline_current.protocol IS 'Measurement protocol';
COMMENT ON COLUMN baseline_current.environment_class IS 'Versions that start a new baseline when they change';
COMMENT ON COLUMN baseline_current.for_agreement IS 'Whether predictions are compared with it (on every device)';
COMMENT ON COLUMN baseline_current.for_time IS 'Whether times are compared with it (same device only)';
COMMENT ON COLUMN baseline_current.for_energy IS 'Whether energies are compared with it (same device only)';
COMMENT ON COLUMN baseline_current.agreed IS 'Predictions of the accepted run equal to the frozen ones';
COMMENT ON COLUMN baseline_current.total IS 'Predictions of the accepted run';
COMMENT ON COLUMN baseline_current.adjusted_mj_median IS 'Median adjusted energy of the accepted run, mJ a replay';
COMMENT ON COLUMN baseline_current.adjusted_mj_min IS 'Lower edge of its round spread, mJ a replay';
COMMENT ON COLUMN baseline_current.adjusted_mj_max IS 'Upper edge of its round spread, mJ a replay';
COMMENT ON COLUMN baseline_current.cuda_ms_median IS 'Median CUDA-event time of the accepted run, ms a replay';
COMMENT ON COLUMN baseline_current.energy_trust IS 'Whether the energy of the accepted run is verified';
COMMENT ON COLUMN baseline_current.accepted_by IS 'Who accepted it';
COMMENT ON COLUMN baseline_current.accepted_at IS 'When it was accepted (UTC)';
COMMENT ON COLUMN baseline_current.reason IS 'Why it was accepted';
COMMENT ON COLUMN baseline_current.run_started_at IS 'When the accepted run was made (UTC)';
COMMENT ON COLUMN baseline_current.dag_id IS 'DAG of the accepted run';
COMMENT ON COLUMN baseline_current.dag_run_id IS 'DAG run of the accepted run';
COMMENT ON COLUMN baseline_current.run_id IS 'The accepted run';
COMMENT ON COLUMN baseline_current.baseline_id IS 'Key';
