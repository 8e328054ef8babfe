-- Which kernels took the place of which: one row a baseline that ever was accepted, with the one before it of its key.
CREATE OR REPLACE VIEW kernel_lineage AS
SELECT
    baseline.workload,
    payload.name AS payload,
    device.name AS device,
    baseline.protocol,
    baseline.environment_class,
    baseline.accepted_at,
    run.kernel_variant,
    run.kernel_ptx_sha256,
    replaced.kernel_variant AS replaced_variant,
    replaced.kernel_ptx_sha256 AS replaced_ptx_sha256,
    CASE WHEN replaced.run_id IS NOT NULL THEN
        (run.kernel_variant, run.kernel_ptx_sha256)
        IS DISTINCT FROM (replaced.kernel_variant, replaced.kernel_ptx_sha256) END AS kernel_changed,
    baseline.accepted_by,
    baseline.reason,
    run.candidate AS promoted,
    run.candidate_origin ->> 'spec' AS spec,
    run.candidate_origin ->> 'commit' AS commit,
    (run.candidate_origin ->> 'modified')::boolean AS modified,
    run.pinned_variant,
    run.pinned_ptx_sha256,
    COALESCE(predictions.details ->> 'word', predictions.verdict) AS predictions_word,
    COALESCE(cuda.details ->> 'word', cuda.verdict) AS time_word,
    COALESCE(energy.details ->> 'word', energy.verdict) AS energy_word,
    (cuda.details ->> 'effect_percent')::double precision AS time_effect_percent,
    (energy.details ->> 'effect_percent')::double precision AS energy_effect_percent,
    run.adjusted_mj_median,
    replaced.adjusted_mj_median AS replaced_adjusted_mj_median,
    run.cuda_ms_median,
    replaced.cuda_ms_median AS replaced_cuda_ms_median,
    run.energy_trust,
    baseline.for_agreement,
    baseline.for_time,
    baseline.for_energy,
    baseline.retired_at,
    baseline.retired_by,
    baseline.retired_reason,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    replaced.run_id AS replaced_run_id,
    baseline.baseline_id
FROM (
    SELECT
        *,
        lag(baseline_id) OVER (
            PARTITION BY workload, payload_id, device_id, protocol, environment_class ORDER BY accepted_at, baseline_id
        ) AS replaced_baseline_id
    FROM baseline
) AS baseline
JOIN run ON run.run_id = baseline.run_id
JOIN device ON device.device_id = baseline.device_id
JOIN payload ON payload.payload_id = baseline.payload_id
LEFT JOIN baseline AS before ON before.baseline_id = baseline.replaced_baseline_id
LEFT JOIN run AS replaced ON replaced.run_id = before.run_id
LEFT JOIN check_result AS predictions
    ON predictions.run_id = run.run_id AND predictions.check_name = 'compare_predictions' AND predictions.step = 0
LEFT JOIN check_result AS cuda
    ON cuda.run_id = run.run_id AND cuda.check_name = 'compare_time' AND cuda.step = 0
LEFT JOIN check_result AS energy
    ON energy.run_id = run.run_id AND energy.check_name = 'compare_energy' AND energy.step = 0;

COMMENT ON VIEW kernel_lineage IS 'Which kernels nights are compared with since when, which they replaced, who decided it and why; ended baselines too';
COMMENT ON COLUMN kernel_lineage.workload IS 'Workload';
COMMENT ON COLUMN kernel_lineage.payload IS 'Name of the set of frozen draws';
COMMENT ON COLUMN kernel_lineage.device IS 'Model name of the device';
COMMENT ON COLUMN kernel_lineage.protocol IS 'Measurement protocol';
COMMENT ON COLUMN kernel_lineage.environment_class IS 'Versions that start a new baseline when they change';
COMMENT ON COLUMN kernel_lineage.accepted_at IS 'When the run was accepted (UTC)';
COMMENT ON COLUMN kernel_lineage.kernel_variant IS 'Variant of the kernels that nights are compared with from then on';
COMMENT ON COLUMN kernel_lineage.kernel_ptx_sha256 IS 'sha256 of their PTX; NULL where the device runs none';
COMMENT ON COLUMN kernel_lineage.replaced_variant IS 'Variant of the kernels before, under the same key; NULL: there were none';
COMMENT ON COLUMN kernel_lineage.replaced_ptx_sha256 IS 'sha256 of the PTX before, under the same key';
COMMENT ON COLUMN kernel_lineage.kernel_changed IS 'Whether these are other kernels than before; NULL: there were none';
COMMENT ON COLUMN kernel_lineage.accepted_by IS 'Who accepted it';
COMMENT ON COLUMN kernel_lineage.reason IS 'Why it was accepted';
COMMENT ON COLUMN kernel_lineage.promoted IS 'Whether the accepted run tried a kernel; else it was a night, or an imported record';
COMMENT ON COLUMN kernel_lineage.spec IS 'Of a candidate: what was tried, as it was asked for';
COMMENT ON COLUMN kernel_lineage.commit IS 'Of a candidate: its commit';
COMMENT ON COLUMN kernel_lineage.modified IS 'Whether the working tree differed from that commit: the kernel is then not its';
COMMENT ON COLUMN kernel_lineage.pinned_variant IS 'Of a candidate: variant of the kernels that it was held against';
COMMENT ON COLUMN kernel_lineage.pinned_ptx_sha256 IS 'Of a candidate: sha256 of the PTX that it was held against';
COMMENT ON COLUMN kernel_lineage.predictions_word IS 'Of a candidate: better, worse, same, inconclusive, invalid or unavailable than that; NULL: not compared';
COMMENT ON COLUMN kernel_lineage.time_word IS 'The same of its time';
COMMENT ON COLUMN kernel_lineage.energy_word IS 'The same of its energy';
COMMENT ON COLUMN kernel_lineage.time_effect_percent IS 'Of a candidate: its time against the other kernel''s, per cent';
COMMENT ON COLUMN kernel_lineage.energy_effect_percent IS 'Of a candidate: its energy against the other kernel''s, per cent';
COMMENT ON COLUMN kernel_lineage.adjusted_mj_median IS 'Median adjusted energy of the accepted run, mJ a replay';
COMMENT ON COLUMN kernel_lineage.replaced_adjusted_mj_median IS 'That of the run before';
COMMENT ON COLUMN kernel_lineage.cuda_ms_median IS 'Median CUDA-event time of the accepted run, ms a replay';
COMMENT ON COLUMN kernel_lineage.replaced_cuda_ms_median IS 'That of the run before';
COMMENT ON COLUMN kernel_lineage.energy_trust IS 'Whether the energy of the accepted run is verified';
COMMENT ON COLUMN kernel_lineage.for_agreement IS 'Whether predictions are compared with it';
COMMENT ON COLUMN kernel_lineage.for_time IS 'Whether times are compared with it';
COMMENT ON COLUMN kernel_lineage.for_energy IS 'Whether energies are compared with it';
COMMENT ON COLUMN kernel_lineage.retired_at IS 'When it stopped being current (UTC); NULL while it is';
COMMENT ON COLUMN kernel_lineage.retired_by IS 'Who ended it';
COMMENT ON COLUMN kernel_lineage.retired_reason IS 'Why it was ended';
COMMENT ON COLUMN kernel_lineage.device_kind IS 'cuda, emulated, reference or simulated';
COMMENT ON COLUMN kernel_lineage.device_uuid IS 'Identity of the board or machine';
COMMENT ON COLUMN kernel_lineage.started_at IS 'When the accepted run began (UTC)';
COMMENT ON COLUMN kernel_lineage.dag_id IS 'DAG of the accepted run';
COMMENT ON COLUMN kernel_lineage.dag_run_id IS 'DAG run of the accepted run';
COMMENT ON COLUMN kernel_lineage.run_id IS 'The accepted run';
COMMENT ON COLUMN kernel_lineage.replaced_run_id IS 'The run that was accepted before, under the same key';
COMMENT ON COLUMN kernel_lineage.baseline_id IS 'Key';
