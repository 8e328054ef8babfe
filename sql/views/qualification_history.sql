-- One row a run with a qualification, imported ones too, beside the latest one before on the same device.
CREATE OR REPLACE VIEW qualification_history AS
SELECT
    (run.started_at AT TIME ZONE 'UTC')::date AS night,
    run.workload,
    device.name AS device,
    qualification.passed,
    qualification.checks,
    cases.cases,
    COALESCE(cases.cases_failed, '{}') AS cases_failed,
    cases.failures,
    qualification.maximum_abs_error,
    before.maximum_abs_error AS previous_maximum_abs_error,
    before.checks AS previous_checks,
    qualification.tolerance,
    cases.figures,
    qualification.computed_on,
    qualification.captured,
    qualification.outcome,
    qualification.reason_code,
    qualification.reason_message,
    qualification.duration_s,
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
JOIN qualification ON qualification.run_id = run.run_id
LEFT JOIN LATERAL (
    SELECT
        count(*)::integer AS cases,
        array_agg(qualification_case.case_name ORDER BY qualification_case.case_name)
            FILTER (WHERE NOT qualification_case.passed) AS cases_failed,
        jsonb_object_agg(qualification_case.case_name, qualification_case.failures)
            FILTER (WHERE NOT qualification_case.passed) AS failures,
        jsonb_object_agg(qualification_case.case_name, qualification_case.figures) AS figures
    FROM qualification_case
    WHERE qualification_case.run_id = run.run_id
) AS cases ON TRUE
LEFT JOIN device ON device.device_id = run.device_id
LEFT JOIN environment ON environment.environment_id = run.environment_id
LEFT JOIN LATERAL (
    -- Of at most one row, and over one, so that it is left out where none of it is asked for.
    SELECT
        (array_agg(latest.run_id))[1] AS run_id,
        max(latest.checks) AS checks,
        max(latest.maximum_abs_error) AS maximum_abs_error
    FROM (
        SELECT earlier.*
        FROM run AS known
        JOIN qualification AS earlier ON earlier.run_id = known.run_id AND earlier.passed IS NOT NULL
        WHERE known.workload = run.workload AND known.device_id = run.device_id
            AND NOT known.candidate
            AND (known.started_at, known.run_id) < (run.started_at, run.run_id)
        ORDER BY known.started_at DESC, known.run_id DESC
        LIMIT 1
    ) AS latest
) AS before ON TRUE
WHERE NOT run.candidate;

COMMENT ON VIEW qualification_history IS 'One row a run with a qualification, imported ones too, but not of candidates, beside the one before on the same device';
COMMENT ON COLUMN qualification_history.night IS 'Date in UTC on which the run began';
COMMENT ON COLUMN qualification_history.workload IS 'What was qualified';
COMMENT ON COLUMN qualification_history.device IS 'Model name of the device';
COMMENT ON COLUMN qualification_history.passed IS 'Whether every check holds; NULL: none could be made';
COMMENT ON COLUMN qualification_history.checks IS 'Single comparisons over all cases';
COMMENT ON COLUMN qualification_history.cases IS 'Cases';
COMMENT ON COLUMN qualification_history.cases_failed IS 'Cases of which a check failed, by name; empty: none';
COMMENT ON COLUMN qualification_history.failures IS 'Checks that do not hold, as an object by case; NULL: none';
COMMENT ON COLUMN qualification_history.maximum_abs_error IS 'Largest absolute difference over all cases';
COMMENT ON COLUMN qualification_history.previous_maximum_abs_error IS 'The same of the run before; NULL: none, or not known';
COMMENT ON COLUMN qualification_history.previous_checks IS 'Comparisons of the run before; fewer are a check that was left out';
COMMENT ON COLUMN qualification_history.tolerance IS 'What differences are held against: atol (absolute), rtol (relative)';
COMMENT ON COLUMN qualification_history.figures IS 'Figures of the cases, as an object by case and name';
COMMENT ON COLUMN qualification_history.computed_on IS 'What the cases ran on where they ask for a device';
COMMENT ON COLUMN qualification_history.captured IS 'Whether they ran as captured CUDA graphs';
COMMENT ON COLUMN qualification_history.outcome IS 'Class of outcome: regression when a check failed';
COMMENT ON COLUMN qualification_history.reason_code IS 'Word for why the outcome is not ok';
COMMENT ON COLUMN qualification_history.reason_message IS 'Line for why the outcome is not ok';
COMMENT ON COLUMN qualification_history.duration_s IS 'Time it took, s';
COMMENT ON COLUMN qualification_history.withdrawn IS 'energy or all, where that was withdrawn of the run: see the view withdrawn; NULL: nothing was';
COMMENT ON COLUMN qualification_history.environment_class IS 'Versions that start a new baseline when they change';
COMMENT ON COLUMN qualification_history.trigger IS 'scheduled, manual, backfill or import';
COMMENT ON COLUMN qualification_history.device_kind IS 'cuda, emulated, reference or simulated';
COMMENT ON COLUMN qualification_history.device_uuid IS 'Identity of the board or machine';
COMMENT ON COLUMN qualification_history.started_at IS 'When the run began (UTC)';
COMMENT ON COLUMN qualification_history.previous_run_id IS 'Latest earlier run of the same workload and device whose device could be asked';
COMMENT ON COLUMN qualification_history.dag_id IS 'Airflow DAG';
COMMENT ON COLUMN qualification_history.dag_run_id IS 'Airflow DAG run';
COMMENT ON COLUMN qualification_history.run_id IS 'Key of the run in every table';
