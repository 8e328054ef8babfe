-- One row a draw a run. What it is compared with is looked up by the index of runs, for the rows that are asked for: a
-- window over all of history would be computed whole even for last night. The run before is looked up once a run; only
-- where it has no predictions of the draw, those before it are gone through. Aggregates are over one row: PostgreSQL then
-- knows that a lookup makes no rows, and leaves it out where neither of its columns is asked for.
CREATE OR REPLACE VIEW validation_history AS
SELECT
    (run.started_at AT TIME ZONE 'UTC')::date AS night,
    run.workload,
    device.name AS device,
    validation.draw,
    validation.agreed,
    validation.total,
    COALESCE(before.predictions_int32_sha256, further_back.predictions_int32_sha256)
        <> validation.predictions_int32_sha256 AS changed,
    validation.predictions_int32_sha256,
    validation.outcome,
    validation.reason_code,
    validation.reason_message,
    validation.mismatches,
    validation.device_correct,
    validation.reference_correct,
    CASE WHEN cardinality(validation.replays_equal_eager) > 0
        THEN TRUE = ALL (validation.replays_equal_eager) END AS all_replays_equal_eager,
    validation.floats_equal_reference,
    validation.duration_s,
    validation.case_name,
    payload.name AS payload,
    (
        SELECT CASE WHEN bool_or(withdrawal.scope = 'all') THEN 'all' ELSE max(withdrawal.scope) END
        FROM withdrawal
        WHERE withdrawal.run_id = run.run_id
    ) AS withdrawn,
    run.kernel_variant,
    environment.environment_class,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    COALESCE(before.run_id, further_back.run_id) AS previous_run_id,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    validation.state_hashes,
    CASE WHEN cardinality(validation.replay_states_equal) > 0
        THEN TRUE = ALL (validation.replay_states_equal) END AS all_replay_states_equal,
    validation.reference_state_name,
    validation.reference_state_expected_sha256,
    validation.reference_state_found_sha256,
    COALESCE(before.state_hashes, further_back.state_hashes) <> validation.state_hashes AS states_changed,
    (
        SELECT array_agg(name ORDER BY name)
        FROM jsonb_each(COALESCE(before.state_hashes, further_back.state_hashes)) AS was (name, sha256)
        FULL JOIN jsonb_each(validation.state_hashes) AS is_now (name, sha256) USING (name)
        WHERE COALESCE(before.state_hashes, further_back.state_hashes) <> validation.state_hashes
            AND was.sha256 IS DISTINCT FROM is_now.sha256
    ) AS changed_states
FROM run
JOIN validation ON validation.run_id = run.run_id
LEFT JOIN device ON device.device_id = run.device_id
LEFT JOIN payload ON payload.payload_id = run.payload_id
LEFT JOIN environment ON environment.environment_id = run.environment_id
LEFT JOIN LATERAL (
    SELECT (array_agg(latest.run_id))[1] AS run_id
    FROM (
        SELECT before.run_id
        FROM run AS before
        WHERE before.workload = run.workload AND before.device_id = run.device_id
            AND before.payload_id = run.payload_id AND NOT before.candidate
            AND (before.started_at, before.run_id) < (run.started_at, run.run_id)
        ORDER BY before.started_at DESC, before.run_id DESC
        LIMIT 1
    ) AS latest
) AS run_before ON TRUE
LEFT JOIN validation AS before
    ON before.run_id = run_before.run_id AND before.case_name = validation.case_name
    AND before.predictions_int32_sha256 IS NOT NULL
LEFT JOIN LATERAL (
    SELECT
        max(latest.predictions_int32_sha256) AS predictions_int32_sha256,
        (array_agg(latest.state_hashes))[1] AS state_hashes,
        (array_agg(latest.run_id))[1] AS run_id
    FROM (
        SELECT earlier.predictions_int32_sha256, earlier.state_hashes, earlier.run_id
        FROM run AS known
        JOIN validation AS earlier
            ON earlier.run_id = known.run_id AND earlier.case_name = validation.case_name
            AND earlier.predictions_int32_sha256 IS NOT NULL
        WHERE before.run_id IS NULL
            AND known.workload = run.workload AND known.device_id = run.device_id
            AND known.payload_id = run.payload_id AND NOT known.candidate
            AND (known.started_at, known.run_id) < (run.started_at, run.run_id)
        ORDER BY known.started_at DESC, known.run_id DESC
        LIMIT 1
    ) AS latest
) AS further_back ON TRUE
WHERE NOT run.candidate;

COMMENT ON VIEW validation_history IS 'One row a draw a run, imported ones too, but not of candidates, against the run before on the same device';
COMMENT ON COLUMN validation_history.night IS 'Date in UTC on which the run began';
COMMENT ON COLUMN validation_history.workload IS 'What was tested';
COMMENT ON COLUMN validation_history.device IS 'Model name of the device';
COMMENT ON COLUMN validation_history.draw IS 'Number of the draw, where the case is one';
COMMENT ON COLUMN validation_history.agreed IS 'Predictions equal to the frozen ones; NULL when the draw could not be run';
COMMENT ON COLUMN validation_history.total IS 'Predictions made';
COMMENT ON COLUMN validation_history.changed IS 'Whether any prediction differs from the previous run of that device and draw; NULL: nothing to compare';
COMMENT ON COLUMN validation_history.predictions_int32_sha256 IS 'sha256 of the predictions as little-endian int32';
COMMENT ON COLUMN validation_history.outcome IS 'Class of outcome: regression when a prediction or a replay differs';
COMMENT ON COLUMN validation_history.reason_code IS 'Word for why the outcome is not ok';
COMMENT ON COLUMN validation_history.reason_message IS 'Line for why the outcome is not ok';
COMMENT ON COLUMN validation_history.mismatches IS 'Every prediction that differs: index, expected, found';
COMMENT ON COLUMN validation_history.device_correct IS 'Predictions of the device equal to the true label';
COMMENT ON COLUMN validation_history.reference_correct IS 'Frozen predictions equal to the true label';
COMMENT ON COLUMN validation_history.all_replays_equal_eager IS 'Whether every replay gave the predictions of the eager run; NULL: none made';
COMMENT ON COLUMN validation_history.floats_equal_reference IS 'Whether intermediate floats equal the reference bit by bit';
COMMENT ON COLUMN validation_history.duration_s IS 'Time the draw took, s';
COMMENT ON COLUMN validation_history.case_name IS 'What was validated, for example draw-03';
COMMENT ON COLUMN validation_history.payload IS 'Name of the set of frozen draws';
COMMENT ON COLUMN validation_history.withdrawn IS 'energy or all, where that was withdrawn of the run: see the view withdrawn; NULL: nothing was';
COMMENT ON COLUMN validation_history.kernel_variant IS 'Variant of the kernels that ran';
COMMENT ON COLUMN validation_history.environment_class IS 'Versions that start a new baseline when they change';
COMMENT ON COLUMN validation_history.trigger IS 'scheduled, manual, backfill or import';
COMMENT ON COLUMN validation_history.device_kind IS 'cuda, emulated, reference or simulated';
COMMENT ON COLUMN validation_history.device_uuid IS 'Identity of the board or machine';
COMMENT ON COLUMN validation_history.started_at IS 'When the run began (UTC)';
COMMENT ON COLUMN validation_history.previous_run_id IS 'Latest earlier run of the same workload, payload and device that has predictions of the draw';
COMMENT ON COLUMN validation_history.dag_id IS 'Airflow DAG';
COMMENT ON COLUMN validation_history.dag_run_id IS 'Airflow DAG run';
COMMENT ON COLUMN validation_history.run_id IS 'Key of the run in every table';
COMMENT ON COLUMN validation_history.state_hashes IS 'sha256 by name of what the eager run started from and left behind; NULL: nothing but its predictions';
COMMENT ON COLUMN validation_history.all_replay_states_equal IS 'Whether every replay left all of these behind again; NULL: none made, or nothing to compare';
COMMENT ON COLUMN validation_history.reference_state_name IS 'What is hashed of where the reference ended; NULL: no reference was run';
COMMENT ON COLUMN validation_history.reference_state_expected_sha256 IS 'Where the reference ended when the draw was frozen; NULL: not known';
COMMENT ON COLUMN validation_history.reference_state_found_sha256 IS 'Where the reference ended that night';
COMMENT ON COLUMN validation_history.states_changed IS 'Whether any hash differs from the previous run of that device and draw; NULL: nothing to compare';
COMMENT ON COLUMN validation_history.changed_states IS 'Names of the hashes that differ, or are in one of the two only; NULL: none, or nothing to compare';
