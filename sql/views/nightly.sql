-- One row a night: runs of this system (imported records are not nights, nor are runs that try a kernel), newest first
-- when ordered by started_at.
CREATE OR REPLACE VIEW nightly AS
SELECT
    (run.started_at AT TIME ZONE 'UTC')::date AS night,
    run.workload,
    device.name AS device,
    COALESCE(run.verdict, 'not judged') AS verdict,
    run.agreed,
    run.total,
    run.adjusted_mj_median,
    run.adjusted_mj_min,
    run.adjusted_mj_max,
    run.cuda_ms_median,
    run.wall_ms_median,
    run.rounds_valid,
    run.rounds_expected,
    run.draws_validated,
    run.draws_expected,
    (
        SELECT check_result.verdict
        FROM check_result
        WHERE check_result.run_id = run.run_id AND check_result.check_name = 'agreement'
        ORDER BY check_result.step DESC
        LIMIT 1
    ) AS agreement_verdict,
    (
        SELECT check_result.verdict
        FROM check_result
        WHERE check_result.run_id = run.run_id AND check_result.check_name = 'energy'
        ORDER BY check_result.step DESC
        LIMIT 1
    ) AS energy_verdict,
    run.energy_trust,
    run.outcome,
    run.reason_code,
    run.reason_message,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    payload.name AS payload,
    run.protocol,
    run.kernel_variant,
    environment.environment_class,
    run.label,
    run.note,
    run.exit_code,
    EXTRACT(EPOCH FROM run.completed_at - run.started_at)::double precision AS duration_s,
    run.started_at,
    run.completed_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    aligned.median_mj AS aligned_mj_median,
    run.reference_joules_per_1e12_operations,
    ARRAY(
        SELECT DISTINCT telemetry_gate.gate
        FROM telemetry_gate
        WHERE telemetry_gate.run_id = run.run_id AND telemetry_gate.passed IS FALSE
        ORDER BY telemetry_gate.gate
    ) AS failed_gates,
    run.inject,
    (
        SELECT CASE WHEN bool_or(withdrawal.scope = 'all') THEN 'all' ELSE max(withdrawal.scope) END
        FROM withdrawal
        WHERE withdrawal.run_id = run.run_id
    ) AS withdrawn,
    (
        SELECT check_result.verdict
        FROM check_result
        WHERE check_result.run_id = run.run_id AND check_result.check_name = 'time'
        ORDER BY check_result.step DESC
        LIMIT 1
    ) AS time_verdict,
    run.confirmation_rounds,
    run.confirmation_reason_message AS confirmation_reason,
    qualification.passed AS qualified,
    task_memory.prepare_and_invoke_peak_allocated_bytes AS peak_allocated_bytes,
    task_memory.named_storage_bytes
FROM run
LEFT JOIN device ON device.device_id = run.device_id
LEFT JOIN environment ON environment.environment_id = run.environment_id
LEFT JOIN payload ON payload.payload_id = run.payload_id
LEFT JOIN run_energy AS aligned
    ON aligned.run_id = run.run_id AND aligned.figure = 'aligned' AND aligned.subject = 'candidate'
LEFT JOIN qualification ON qualification.run_id = run.run_id
LEFT JOIN task_memory ON task_memory.run_id = run.run_id
WHERE run.trigger <> 'import' AND NOT run.candidate;

COMMENT ON VIEW nightly IS 'One row a night: scheduled, manual and backfill runs with their figures and verdicts; candidates are in candidate_runs';
COMMENT ON COLUMN nightly.night IS 'Date in UTC on which the run began';
COMMENT ON COLUMN nightly.workload IS 'What was tested';
COMMENT ON COLUMN nightly.device IS 'Model name of the device; NULL when none could be chosen';
COMMENT ON COLUMN nightly.verdict IS 'Verdict of the run, or "not judged" for a run that ended before its report';
COMMENT ON COLUMN nightly.agreed IS 'Predictions equal to the frozen ones, over all draws';
COMMENT ON COLUMN nightly.total IS 'Predictions made, over all draws';
COMMENT ON COLUMN nightly.adjusted_mj_median IS 'Median energy a replay without idle energy over valid rounds, mJ';
COMMENT ON COLUMN nightly.adjusted_mj_min IS 'Smallest adjusted energy of a valid round, mJ a replay';
COMMENT ON COLUMN nightly.adjusted_mj_max IS 'Largest adjusted energy of a valid round, mJ a replay';
COMMENT ON COLUMN nightly.cuda_ms_median IS 'Median CUDA-event time a replay over valid rounds, ms';
COMMENT ON COLUMN nightly.wall_ms_median IS 'Median wall time a replay over valid rounds, ms';
COMMENT ON COLUMN nightly.rounds_valid IS 'Rounds whose figures may be used';
COMMENT ON COLUMN nightly.rounds_expected IS 'Rounds asked for, and the confirmation rounds that were planned';
COMMENT ON COLUMN nightly.draws_validated IS 'Draws with a result';
COMMENT ON COLUMN nightly.draws_expected IS 'Draws asked for';
COMMENT ON COLUMN nightly.agreement_verdict IS 'Last verdict of the agreement check; NULL when it did not run';
COMMENT ON COLUMN nightly.energy_verdict IS 'Last verdict of the energy check; NULL when it did not run';
COMMENT ON COLUMN nightly.energy_trust IS 'verified (every telemetry gate passed), failed, unverified or unavailable (no counter)';
COMMENT ON COLUMN nightly.outcome IS 'Worst outcome of the tasks, before any comparison with a baseline';
COMMENT ON COLUMN nightly.reason_code IS 'Word for why the outcome is not ok';
COMMENT ON COLUMN nightly.reason_message IS 'Line for why the outcome is not ok';
COMMENT ON COLUMN nightly.trigger IS 'scheduled, manual or backfill';
COMMENT ON COLUMN nightly.device_kind IS 'cuda, emulated, reference or simulated';
COMMENT ON COLUMN nightly.device_uuid IS 'Identity of the board or machine';
COMMENT ON COLUMN nightly.payload IS 'Name of the set of frozen draws';
COMMENT ON COLUMN nightly.protocol IS 'Measurement protocol';
COMMENT ON COLUMN nightly.kernel_variant IS 'Variant of the kernels that ran';
COMMENT ON COLUMN nightly.environment_class IS 'Versions that start a new baseline when they change';
COMMENT ON COLUMN nightly.label IS 'Short name given at the trigger';
COMMENT ON COLUMN nightly.note IS 'Free text given at the trigger';
COMMENT ON COLUMN nightly.exit_code IS 'Exit status that goes with the verdict';
COMMENT ON COLUMN nightly.duration_s IS 'Time from the accepted request to the record of the last part, s';
COMMENT ON COLUMN nightly.started_at IS 'When the run began: when its request was accepted (UTC)';
COMMENT ON COLUMN nightly.completed_at IS 'When the last of its parts was recorded (UTC)';
COMMENT ON COLUMN nightly.dag_id IS 'Airflow DAG';
COMMENT ON COLUMN nightly.dag_run_id IS 'Airflow DAG run';
COMMENT ON COLUMN nightly.run_id IS 'Key of the run in every table';
COMMENT ON COLUMN nightly.aligned_mj_median IS 'Median energy a replay without idle energy, measured from counter step to counter step, mJ';
COMMENT ON COLUMN nightly.reference_joules_per_1e12_operations IS 'Energy of the reference load of that night, J per 10^12 operations';
COMMENT ON COLUMN nightly.failed_gates IS 'Telemetry gates that failed, by name; empty when none did';
COMMENT ON COLUMN nightly.inject IS 'Effects that the simulated device was told to show; NULL: none';
COMMENT ON COLUMN nightly.withdrawn IS 'energy or all, where that was withdrawn: see the view withdrawn; NULL: nothing was';
COMMENT ON COLUMN nightly.time_verdict IS 'Last verdict of the check of time; NULL when it did not run';
COMMENT ON COLUMN nightly.confirmation_rounds IS 'Confirmation rounds planned after a look at the first rounds; 0: nothing to confirm; NULL: nobody looked';
COMMENT ON COLUMN nightly.confirmation_reason IS 'What is to be confirmed, or why nothing is; NULL: nobody looked';
COMMENT ON COLUMN nightly.qualified IS 'Whether every check of its qualification holds; NULL: none was made';
COMMENT ON COLUMN nightly.peak_allocated_bytes IS 'Most allocated while a task was made and run, bytes; NULL: not looked at, or nothing counts it';
COMMENT ON COLUMN nightly.named_storage_bytes IS 'Storages behind the named tensors of a task, bytes; NULL: not looked at';
