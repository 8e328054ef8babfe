-- One row a run that looked at the memory of a task, imported ones too, beside the latest one before on the same device
-- and set of draws.
CREATE OR REPLACE VIEW memory_history AS
SELECT
    (run.started_at AT TIME ZONE 'UTC')::date AS night,
    run.workload,
    device.name AS device,
    payload.name AS payload,
    task_memory.draw,
    task_memory.prepare_and_invoke_peak_allocated_bytes AS peak_allocated_bytes,
    task_memory.prepare_and_invoke_peak_reserved_bytes AS peak_reserved_bytes,
    task_memory.named_storage_bytes,
    task_memory.unassigned_bytes,
    before.prepare_and_invoke_peak_allocated_bytes AS previous_peak_allocated_bytes,
    before.prepare_and_invoke_peak_reserved_bytes AS previous_peak_reserved_bytes,
    before.named_storage_bytes AS previous_named_storage_bytes,
    before.unassigned_bytes AS previous_unassigned_bytes,
    task_memory.allocated_before_prepare_bytes,
    task_memory.reserved_before_prepare_bytes,
    task_memory.allocated_after_prepare_bytes,
    task_memory.allocated_after_invoke_bytes,
    task_memory.reserved_after_invoke_bytes,
    task_memory.added_peak_over_entry_allocated_bytes,
    task_memory.allocator_allocated_bytes,
    task_memory.cache_bytes,
    (
        SELECT count(*)::integer FROM memory_tensor WHERE memory_tensor.run_id = run.run_id
    ) AS tensors,
    (
        SELECT count(*)::integer FROM memory_storage WHERE memory_storage.run_id = run.run_id
    ) AS storages,
    task_memory.invocations,
    (
        SELECT array_agg(name ORDER BY name)
        FROM jsonb_object_keys(task_memory.state_hashes) AS name
        WHERE NOT name = ANY (task_memory.hashes_matched)
    ) AS unmatched_states,
    task_memory.agreed,
    task_memory.total,
    task_memory.predictions_sha256,
    before.predictions_sha256 <> task_memory.predictions_sha256 AS predictions_changed,
    task_memory.outcome,
    task_memory.reason_code,
    task_memory.reason_message,
    task_memory.memory_reason_code,
    task_memory.profile IS NOT NULL AS profiled,
    task_memory.duration_s,
    (
        SELECT CASE WHEN bool_or(withdrawal.scope = 'all') THEN 'all' ELSE max(withdrawal.scope) END
        FROM withdrawal
        WHERE withdrawal.run_id = run.run_id
    ) AS withdrawn,
    environment.environment_class,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    before.run_id AS previous_run_id,
    run.dag_id,
    run.dag_run_id,
    run.run_id
FROM run
JOIN task_memory ON task_memory.run_id = run.run_id
LEFT JOIN payload ON payload.payload_id = run.payload_id
LEFT JOIN device ON device.device_id = run.device_id
LEFT JOIN environment ON environment.environment_id = run.environment_id
LEFT JOIN LATERAL (
    -- Of at most one row, and over one, so that it is left out where none of it is asked for.
    SELECT
        (array_agg(latest.run_id))[1] AS run_id,
        max(latest.prepare_and_invoke_peak_allocated_bytes) AS prepare_and_invoke_peak_allocated_bytes,
        max(latest.prepare_and_invoke_peak_reserved_bytes) AS prepare_and_invoke_peak_reserved_bytes,
        max(latest.named_storage_bytes) AS named_storage_bytes,
        max(latest.unassigned_bytes) AS unassigned_bytes,
        max(latest.predictions_sha256) AS predictions_sha256
    FROM (
        SELECT earlier.*
        FROM run AS known
        JOIN task_memory AS earlier ON earlier.run_id = known.run_id AND earlier.named_storage_bytes IS NOT NULL
        WHERE known.workload = run.workload AND known.device_id = run.device_id
            AND known.payload_id = run.payload_id AND earlier.draw IS NOT DISTINCT FROM task_memory.draw
            AND NOT known.candidate
            AND (known.started_at, known.run_id) < (run.started_at, run.run_id)
        ORDER BY known.started_at DESC, known.run_id DESC
        LIMIT 1
    ) AS latest
) AS before ON TRUE
WHERE NOT run.candidate;

COMMENT ON VIEW memory_history IS 'One row a run that looked at the memory of a task, imported ones too, but not of candidates, beside the one before on the same device';
COMMENT ON COLUMN memory_history.night IS 'Date in UTC on which the run began';
COMMENT ON COLUMN memory_history.workload IS 'What was looked at';
COMMENT ON COLUMN memory_history.device IS 'Model name of the device';
COMMENT ON COLUMN memory_history.payload IS 'Name of the set of frozen draws';
COMMENT ON COLUMN memory_history.draw IS 'Number of the draw';
COMMENT ON COLUMN memory_history.peak_allocated_bytes IS 'Most allocated while the task was made and run, bytes; NULL: nothing counts it';
COMMENT ON COLUMN memory_history.peak_reserved_bytes IS 'Most reserved meanwhile, bytes';
COMMENT ON COLUMN memory_history.named_storage_bytes IS 'All storages behind named tensors, each counted once, bytes';
COMMENT ON COLUMN memory_history.unassigned_bytes IS 'Allocated behind no named tensor, bytes';
COMMENT ON COLUMN memory_history.previous_peak_allocated_bytes IS 'Most allocated, in the run before, bytes';
COMMENT ON COLUMN memory_history.previous_peak_reserved_bytes IS 'Most reserved, in the run before, bytes';
COMMENT ON COLUMN memory_history.previous_named_storage_bytes IS 'Named storages in the run before, bytes';
COMMENT ON COLUMN memory_history.previous_unassigned_bytes IS 'Behind no named tensor in the run before, bytes';
COMMENT ON COLUMN memory_history.allocated_before_prepare_bytes IS 'Allocated before the task was made, bytes';
COMMENT ON COLUMN memory_history.reserved_before_prepare_bytes IS 'Reserved before the task was made, bytes';
COMMENT ON COLUMN memory_history.allocated_after_prepare_bytes IS 'Allocated after the task was made, bytes';
COMMENT ON COLUMN memory_history.allocated_after_invoke_bytes IS 'Allocated after the first run, bytes';
COMMENT ON COLUMN memory_history.reserved_after_invoke_bytes IS 'Reserved after the first run, bytes';
COMMENT ON COLUMN memory_history.added_peak_over_entry_allocated_bytes IS 'Most allocated, less what was allocated before, bytes';
COMMENT ON COLUMN memory_history.allocator_allocated_bytes IS 'Allocated when the tensors were counted, bytes';
COMMENT ON COLUMN memory_history.cache_bytes IS 'Size of the device''s L2 cache, bytes; nothing says what stays in it';
COMMENT ON COLUMN memory_history.tensors IS 'Named tensors';
COMMENT ON COLUMN memory_history.storages IS 'Storages behind them';
COMMENT ON COLUMN memory_history.invocations IS 'How often the task ran';
COMMENT ON COLUMN memory_history.unmatched_states IS 'Names of the hashes that were others after the last run; NULL: none, or none made';
COMMENT ON COLUMN memory_history.agreed IS 'Predictions equal to the frozen ones';
COMMENT ON COLUMN memory_history.total IS 'Predictions made';
COMMENT ON COLUMN memory_history.predictions_sha256 IS 'sha256 of the predictions as a file of int64 in the format of NumPy';
COMMENT ON COLUMN memory_history.predictions_changed IS 'Whether that is another than in the run before; NULL: nothing to compare';
COMMENT ON COLUMN memory_history.outcome IS 'Class of outcome: regression when the task does not repeat itself';
COMMENT ON COLUMN memory_history.reason_code IS 'Word for why the outcome is not ok';
COMMENT ON COLUMN memory_history.reason_message IS 'Line for why the outcome is not ok';
COMMENT ON COLUMN memory_history.memory_reason_code IS 'Word for why the allocator counts nothing';
COMMENT ON COLUMN memory_history.profiled IS 'Whether there is a profile by kernel';
COMMENT ON COLUMN memory_history.duration_s IS 'Time it took, s';
COMMENT ON COLUMN memory_history.withdrawn IS 'energy or all, where that was withdrawn of the run: see the view withdrawn; NULL: nothing was';
COMMENT ON COLUMN memory_history.environment_class IS 'Versions that start a new baseline when they change';
COMMENT ON COLUMN memory_history.trigger IS 'scheduled, manual, backfill or import';
COMMENT ON COLUMN memory_history.device_kind IS 'cuda, emulated, reference or simulated';
COMMENT ON COLUMN memory_history.device_uuid IS 'Identity of the board or machine';
COMMENT ON COLUMN memory_history.started_at IS 'When the run began (UTC)';
COMMENT ON COLUMN memory_history.previous_run_id IS 'Latest earlier run of the same workload, payload, draw and device that has an inventory';
COMMENT ON COLUMN memory_history.dag_id IS 'Airflow DAG';
COMMENT ON COLUMN memory_history.dag_run_id IS 'Airflow DAG run';
COMMENT ON COLUMN memory_history.run_id IS 'Key of the run in every table';
