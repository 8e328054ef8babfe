-- Everything about one run in one row. What has many rows is an array or an object, looked up only where it is asked for.
CREATE OR REPLACE VIEW run_detail AS
SELECT
    (run.started_at AT TIME ZONE 'UTC')::date AS night,
    run.workload,
    device.name AS device,
    COALESCE(run.verdict, 'not judged') AS verdict,
    run.exit_code,
    run.outcome,
    run.reason_code,
    run.reason_message,
    (
        SELECT CASE WHEN bool_or(withdrawal.scope = 'all') THEN 'all' ELSE max(withdrawal.scope) END
        FROM withdrawal
        WHERE withdrawal.run_id = run.run_id
    ) AS withdrawn,
    run.agreed,
    run.total,
    run.device_correct,
    run.reference_correct,
    run.all_replays_equal_eager,
    run.draws_validated,
    run.draws_expected,
    ARRAY(
        SELECT validation.case_name
        FROM validation
        WHERE validation.run_id = run.run_id AND validation.outcome <> 'ok'
        ORDER BY validation.case_name
    ) AS cases_not_ok,
    run.rounds_valid,
    run.rounds_expected,
    ARRAY(
        SELECT CASE WHEN round.arm = 'comparison' THEN 'comparison ' ELSE '' END || round.round || ': ' || round.reason_code
        FROM round
        WHERE round.run_id = run.run_id AND NOT round.valid
        ORDER BY round.arm, round.round
    ) AS invalid_rounds,
    run.cuda_ms_median,
    run.wall_ms_median,
    run.gross_mj_median,
    run.adjusted_mj_median,
    run.adjusted_mj_min,
    run.adjusted_mj_max,
    run.adjusted_mj_sample_sd,
    run.negative_adjusted_rounds,
    (
        SELECT jsonb_object_agg(
            CASE run_energy.subject WHEN 'candidate' THEN run_energy.figure
                ELSE run_energy.figure || ' ' || run_energy.subject END,
            to_jsonb(run_energy) - '{run_id,figure,subject}'::text[]
        )
        FROM run_energy
        WHERE run_energy.run_id = run.run_id
    ) AS figures,
    run.energy_trust,
    run.energy_trust_reason,
    ARRAY(
        SELECT telemetry_gate.gate || '@' || telemetry_gate.at
        FROM telemetry_gate
        WHERE telemetry_gate.run_id = run.run_id AND telemetry_gate.passed IS TRUE
        ORDER BY 1
    ) AS gates_passed,
    ARRAY(
        SELECT telemetry_gate.gate || '@' || telemetry_gate.at
        FROM telemetry_gate
        WHERE telemetry_gate.run_id = run.run_id AND telemetry_gate.passed IS FALSE
        ORDER BY 1
    ) AS gates_failed,
    ARRAY(
        SELECT telemetry_gate.gate || '@' || telemetry_gate.at
        FROM telemetry_gate
        WHERE telemetry_gate.run_id = run.run_id AND telemetry_gate.passed IS NULL
        ORDER BY 1
    ) AS gates_unchecked,
    run.reference_joules_per_1e12_operations,
    telemetry.power_limit_w,
    (
        SELECT jsonb_object_agg(last.check_name, to_jsonb(last) - 'check_name')
        FROM (
            SELECT DISTINCT ON (check_result.check_name)
                check_result.check_name,
                check_result.step,
                check_result.verdict,
                check_result.metric,
                check_result.unit,
                check_result.value,
                check_result.baseline_value,
                check_result.baseline_low,
                check_result.baseline_high,
                check_result.direction,
                check_result.reason_code,
                check_result.reason,
                check_result.baseline_id,
                baseline.run_id AS baseline_run_id,
                baseline.accepted_by,
                baseline.accepted_at
            FROM check_result
            LEFT JOIN LATERAL (
                -- By its key: as a plain join, every baseline there is would be read for each run.
                SELECT * FROM baseline WHERE baseline.baseline_id = check_result.baseline_id OFFSET 0
            ) AS baseline ON TRUE
            WHERE check_result.run_id = run.run_id
            ORDER BY check_result.check_name, check_result.step DESC
        ) AS last
    ) AS checks,
    (
        SELECT check_result.verdict
        FROM check_result
        WHERE check_result.run_id = run.run_id AND check_result.check_name = 'agreement'
        ORDER BY check_result.step DESC
        LIMIT 1
    ) AS agreement_verdict,
    (
        SELECT check_result.reason
        FROM check_result
        WHERE check_result.run_id = run.run_id AND check_result.check_name = 'agreement'
        ORDER BY check_result.step DESC
        LIMIT 1
    ) AS agreement_reason,
    (
        SELECT baseline.run_id
        FROM check_result
        LEFT JOIN baseline ON baseline.baseline_id = check_result.baseline_id
        WHERE check_result.run_id = run.run_id AND check_result.check_name = 'agreement'
        ORDER BY check_result.step DESC
        LIMIT 1
    ) AS agreement_baseline_run_id,
    (
        SELECT check_result.verdict
        FROM check_result
        WHERE check_result.run_id = run.run_id AND check_result.check_name = 'energy'
        ORDER BY check_result.step DESC
        LIMIT 1
    ) AS energy_verdict,
    (
        SELECT check_result.reason
        FROM check_result
        WHERE check_result.run_id = run.run_id AND check_result.check_name = 'energy'
        ORDER BY check_result.step DESC
        LIMIT 1
    ) AS energy_reason,
    (
        SELECT baseline.run_id
        FROM check_result
        LEFT JOIN baseline ON baseline.baseline_id = check_result.baseline_id
        WHERE check_result.run_id = run.run_id AND check_result.check_name = 'energy'
        ORDER BY check_result.step DESC
        LIMIT 1
    ) AS energy_baseline_run_id,
    EXISTS (
        SELECT FROM baseline WHERE baseline.run_id = run.run_id AND baseline.retired_at IS NULL
    ) AS is_baseline,
    run.protocol,
    run.kernel_variant,
    run.kernel_ptx_sha256,
    payload.name AS payload,
    payload.manifest_sha256 AS payload_manifest_sha256,
    source_state.sources_sha256,
    environment.environment_class,
    environment.driver,
    environment.cuda,
    environment.python,
    environment.platform,
    environment.packages,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    device.memory_total_bytes,
    device.multiprocessors,
    device.compute_capability,
    run.trigger,
    run.logical_date,
    run.params,
    run.label,
    run.note,
    run.inject,
    run.seed,
    run.provenance,
    EXTRACT(EPOCH FROM run.completed_at - run.started_at)::double precision AS duration_s,
    run.started_at,
    run.completed_at,
    run.loaded_at,
    run.record_sha256,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    run.confirmation_rounds,
    run.confirmation_reason_code,
    run.confirmation_reason_message AS confirmation_reason,
    run.confirmation_looks,
    (
        SELECT jsonb_object_agg(
            check_result.check_name,
            to_jsonb(check_result) - '{run_id,check_name,step,details,checked_at}'::text[]
        )
        FROM check_result
        WHERE check_result.run_id = run.run_id
            AND check_result.step = 0
            AND EXISTS (
                SELECT FROM check_result AS later
                WHERE later.run_id = run.run_id AND later.check_name = check_result.check_name AND later.step > 0
            )
    ) AS first_checks,
    run.candidate,
    run.candidate_origin,
    run.pinned_variant,
    run.pinned_ptx_sha256,
    (
        SELECT to_jsonb(comparison) - 'run_id' FROM comparison WHERE comparison.run_id = run.run_id
    ) AS comparison,
    (
        SELECT jsonb_object_agg(
            run_setting.name, jsonb_build_object('value', run_setting.value, 'origin', run_setting.origin)
        )
        FROM run_setting
        WHERE run_setting.run_id = run.run_id
    ) AS settings,
    (
        SELECT to_jsonb(qualification) - 'run_id' || jsonb_build_object('cases', ARRAY(
            SELECT to_jsonb(qualification_case) - '{run_id,figures}'::text[]
            FROM qualification_case
            WHERE qualification_case.run_id = run.run_id
            ORDER BY qualification_case.case_name
        ))
        FROM qualification
        WHERE qualification.run_id = run.run_id
    ) AS qualification,
    (
        SELECT to_jsonb(task_memory) - '{run_id,state_hashes,profile}'::text[]
        FROM task_memory
        WHERE task_memory.run_id = run.run_id
    ) AS memory
FROM run
LEFT JOIN device ON device.device_id = run.device_id
LEFT JOIN environment ON environment.environment_id = run.environment_id
LEFT JOIN source_state ON source_state.source_state_id = run.source_state_id
LEFT JOIN payload ON payload.payload_id = run.payload_id
LEFT JOIN telemetry ON telemetry.run_id = run.run_id AND telemetry.moment = 'before';

COMMENT ON VIEW run_detail IS 'One row a run, imported ones too: figures, trust, gates, checks with their baselines, kernel, request';
COMMENT ON COLUMN run_detail.night IS 'Date in UTC on which the run began';
COMMENT ON COLUMN run_detail.workload IS 'What was tested';
COMMENT ON COLUMN run_detail.device IS 'Model name of the device; NULL when none could be chosen';
COMMENT ON COLUMN run_detail.verdict IS 'Verdict of the run, or "not judged" for one that ended before its report or was imported';
COMMENT ON COLUMN run_detail.exit_code IS 'Exit status that goes with the verdict';
COMMENT ON COLUMN run_detail.outcome IS 'Worst outcome of the tasks, before any comparison with a baseline';
COMMENT ON COLUMN run_detail.reason_code IS 'Word for why the outcome is not ok';
COMMENT ON COLUMN run_detail.reason_message IS 'Line for why the outcome is not ok';
COMMENT ON COLUMN run_detail.withdrawn IS 'energy or all, where that was withdrawn: see the view withdrawn; NULL: nothing was';
COMMENT ON COLUMN run_detail.agreed IS 'Predictions equal to the frozen ones, over all draws';
COMMENT ON COLUMN run_detail.total IS 'Predictions made, over all draws';
COMMENT ON COLUMN run_detail.device_correct IS 'Predictions of the device equal to the true label';
COMMENT ON COLUMN run_detail.reference_correct IS 'Frozen predictions equal to the true label';
COMMENT ON COLUMN run_detail.all_replays_equal_eager IS 'Whether every replay gave the predictions of the eager run';
COMMENT ON COLUMN run_detail.draws_validated IS 'Draws with a result';
COMMENT ON COLUMN run_detail.draws_expected IS 'Draws asked for';
COMMENT ON COLUMN run_detail.cases_not_ok IS 'Draws that were not ok, by name of their case; pinned-: of the kernel held against, emulated-: on the emulator';
COMMENT ON COLUMN run_detail.rounds_valid IS 'Rounds whose figures may be used';
COMMENT ON COLUMN run_detail.rounds_expected IS 'Rounds asked for, and the confirmation rounds that were planned';
COMMENT ON COLUMN run_detail.invalid_rounds IS 'Rounds that may not be used, as "round: word of the reason"; "comparison" before those in which two kernels took turns';
COMMENT ON COLUMN run_detail.cuda_ms_median IS 'Median CUDA-event time a replay over valid rounds, ms';
COMMENT ON COLUMN run_detail.wall_ms_median IS 'Median wall time a replay over valid rounds, ms';
COMMENT ON COLUMN run_detail.gross_mj_median IS 'Median energy a replay with idle energy, mJ';
COMMENT ON COLUMN run_detail.adjusted_mj_median IS 'Median energy a replay without idle energy over valid rounds, by the figure of the protocol, mJ';
COMMENT ON COLUMN run_detail.adjusted_mj_min IS 'Smallest adjusted energy of a valid round, mJ a replay';
COMMENT ON COLUMN run_detail.adjusted_mj_max IS 'Largest adjusted energy of a valid round, mJ a replay';
COMMENT ON COLUMN run_detail.adjusted_mj_sample_sd IS 'Sample standard deviation (n-1) of the adjusted energy, mJ a replay';
COMMENT ON COLUMN run_detail.negative_adjusted_rounds IS 'Valid rounds with a negative adjusted energy';
COMMENT ON COLUMN run_detail.figures IS 'Energy by figure, as an object: rounds, median_mj, min_mj, max_mj, sample_sd_mj, detectable_mj, per_reference_load';
COMMENT ON COLUMN run_detail.energy_trust IS 'verified (every telemetry gate passed), failed, unverified or unavailable (no counter)';
COMMENT ON COLUMN run_detail.energy_trust_reason IS 'Why the energy is not verified';
COMMENT ON COLUMN run_detail.gates_passed IS 'Telemetry gates that passed, as gate@where';
COMMENT ON COLUMN run_detail.gates_failed IS 'Telemetry gates that failed, as gate@where';
COMMENT ON COLUMN run_detail.gates_unchecked IS 'Telemetry gates that could not be checked, which do not pass, as gate@where';
COMMENT ON COLUMN run_detail.reference_joules_per_1e12_operations IS 'Energy of the reference load, J per 10^12 operations';
COMMENT ON COLUMN run_detail.power_limit_w IS 'Power limit of the GPU before the rounds, W';
COMMENT ON COLUMN run_detail.checks IS 'Last step of each check by name, as an object: verdict, reason, figures, and the baseline it was compared with';
COMMENT ON COLUMN run_detail.agreement_verdict IS 'Last verdict of the agreement check; NULL when it did not run';
COMMENT ON COLUMN run_detail.agreement_reason IS 'Why the agreement check says so, in one line';
COMMENT ON COLUMN run_detail.agreement_baseline_run_id IS 'Run that the agreement check compared with; NULL: none';
COMMENT ON COLUMN run_detail.energy_verdict IS 'Last verdict of the energy check; NULL when it did not run';
COMMENT ON COLUMN run_detail.energy_reason IS 'Why the energy check says so, in one line';
COMMENT ON COLUMN run_detail.energy_baseline_run_id IS 'Run that the energy check compared with; NULL: none';
COMMENT ON COLUMN run_detail.is_baseline IS 'Whether it is a current baseline itself';
COMMENT ON COLUMN run_detail.protocol IS 'Measurement protocol';
COMMENT ON COLUMN run_detail.kernel_variant IS 'Variant of the kernels that ran';
COMMENT ON COLUMN run_detail.kernel_ptx_sha256 IS 'sha256 of the PTX that ran; NULL where the device runs none';
COMMENT ON COLUMN run_detail.payload IS 'Name of the set of frozen draws';
COMMENT ON COLUMN run_detail.payload_manifest_sha256 IS 'sha256 of its manifest';
COMMENT ON COLUMN run_detail.sources_sha256 IS 'sha256 of the file of pinned source hashes';
COMMENT ON COLUMN run_detail.environment_class IS 'Versions that start a new baseline when they change';
COMMENT ON COLUMN run_detail.driver IS 'Version of the GPU driver';
COMMENT ON COLUMN run_detail.cuda IS 'Version of CUDA';
COMMENT ON COLUMN run_detail.python IS 'Version of the interpreter of the GPU tasks';
COMMENT ON COLUMN run_detail.platform IS 'Operating system and machine';
COMMENT ON COLUMN run_detail.packages IS 'Installed packages: name to version';
COMMENT ON COLUMN run_detail.device_kind IS 'cuda, emulated, reference or simulated';
COMMENT ON COLUMN run_detail.device_uuid IS 'Identity of the board or machine';
COMMENT ON COLUMN run_detail.memory_total_bytes IS 'Memory of the device, bytes';
COMMENT ON COLUMN run_detail.multiprocessors IS 'Number of streaming multiprocessors';
COMMENT ON COLUMN run_detail.compute_capability IS 'CUDA compute capability';
COMMENT ON COLUMN run_detail.trigger IS 'scheduled, manual, backfill or import';
COMMENT ON COLUMN run_detail.logical_date IS 'Airflow logical date (UTC)';
COMMENT ON COLUMN run_detail.params IS 'The request as accepted, all parameters with defaults filled in';
COMMENT ON COLUMN run_detail.label IS 'Short name given at the trigger';
COMMENT ON COLUMN run_detail.note IS 'Free text given at the trigger';
COMMENT ON COLUMN run_detail.inject IS 'Effects that the simulated device was told to show; NULL: none';
COMMENT ON COLUMN run_detail.seed IS 'Seed of what was random in the measurement';
COMMENT ON COLUMN run_detail.provenance IS 'Where the record comes from, when not from a run of this system';
COMMENT ON COLUMN run_detail.duration_s IS 'Time from the accepted request to the record of the last part, s';
COMMENT ON COLUMN run_detail.started_at IS 'When the run began: when its request was accepted (UTC)';
COMMENT ON COLUMN run_detail.completed_at IS 'When the last of its parts was recorded (UTC)';
COMMENT ON COLUMN run_detail.loaded_at IS 'When its record was loaded (UTC)';
COMMENT ON COLUMN run_detail.record_sha256 IS 'sha256 of the record file that it was loaded from';
COMMENT ON COLUMN run_detail.dag_id IS 'Airflow DAG';
COMMENT ON COLUMN run_detail.dag_run_id IS 'Airflow DAG run';
COMMENT ON COLUMN run_detail.run_id IS 'Key of the run in every table';
COMMENT ON COLUMN run_detail.confirmation_rounds IS 'Confirmation rounds planned after a look at the first rounds; 0: nothing to confirm; NULL: nobody looked';
COMMENT ON COLUMN run_detail.confirmation_reason_code IS 'Word for what is to be confirmed, or why nothing is';
COMMENT ON COLUMN run_detail.confirmation_reason IS 'What is to be confirmed, or why nothing is; NULL: nobody looked';
COMMENT ON COLUMN run_detail.confirmation_looks IS 'The figures of the first rounds against the spread of their baselines, as an array of objects; NULL: nobody looked';
COMMENT ON COLUMN run_detail.first_checks IS 'Checks that judged again with confirmation rounds: what they said of the first rounds alone, by name; NULL: none did';
COMMENT ON COLUMN run_detail.candidate IS 'Whether it tries a kernel that nights do not run: no night, and in no series';
COMMENT ON COLUMN run_detail.candidate_origin IS 'Where the tried kernel comes from, as an object; NULL: not known, or no candidate';
COMMENT ON COLUMN run_detail.pinned_variant IS 'Variant of the kernels that it was held against';
COMMENT ON COLUMN run_detail.pinned_ptx_sha256 IS 'sha256 of the PTX that it was held against';
COMMENT ON COLUMN run_detail.comparison IS 'What the comparison of the two found beside its checks, as an object: outcome, counted and modelled figures, differing predictions, trust in its energy; NULL: none made';
COMMENT ON COLUMN run_detail.settings IS 'Settings of the libraries it computed with, as an object: name to value and origin; NULL: none';
COMMENT ON COLUMN run_detail.qualification IS 'Its qualification as an object, cases without their figures as an array; NULL: none made';
COMMENT ON COLUMN run_detail.memory IS 'The memory of a task as an object, in bytes, without hashes and profile; NULL: not looked at';
