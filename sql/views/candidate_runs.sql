-- One row a run that tries a kernel which nights do not run. Its words are those of the checks of its comparison, which
-- have one step.
CREATE OR REPLACE VIEW candidate_runs AS
SELECT
    (run.started_at AT TIME ZONE 'UTC')::date AS night,
    run.workload,
    device.name AS device,
    COALESCE(run.verdict, 'not judged') AS verdict,
    COALESCE(run.candidate_origin ->> 'spec', run.params ->> 'candidate') AS spec,
    run.candidate_origin ->> 'origin' AS origin,
    run.candidate_origin ->> 'commit' AS commit,
    (run.candidate_origin ->> 'modified')::boolean AS modified,
    COALESCE(run.kernel_variant, run.candidate_origin #>> '{kernel,variant}') AS kernel_variant,
    COALESCE(run.kernel_ptx_sha256, run.candidate_origin #>> '{kernel,ptx_sha256}') AS kernel_ptx_sha256,
    run.pinned_variant,
    run.pinned_ptx_sha256,
    (run.candidate_origin ->> 'equals_pinned')::boolean AS equals_pinned,
    COALESCE(predictions.details ->> 'word', predictions.verdict) AS predictions_word,
    COALESCE(cuda.details ->> 'word', cuda.verdict) AS time_word,
    COALESCE(energy.details ->> 'word', energy.verdict) AS energy_word,
    run.agreed,
    run.total,
    comparison.differing_total AS differing,
    (cuda.details ->> 'effect_ms')::double precision AS time_effect_ms,
    (cuda.details ->> 'low_ms')::double precision AS time_low_ms,
    (cuda.details ->> 'high_ms')::double precision AS time_high_ms,
    (cuda.details ->> 'effect_percent')::double precision AS time_effect_percent,
    (cuda.details ->> 'detectable_percent')::double precision AS time_detectable_percent,
    (energy.details ->> 'effect_mj')::double precision AS energy_effect_mj,
    (energy.details ->> 'low_mj')::double precision AS energy_low_mj,
    (energy.details ->> 'high_mj')::double precision AS energy_high_mj,
    (energy.details ->> 'effect_percent')::double precision AS energy_effect_percent,
    (energy.details ->> 'detectable_percent')::double precision AS energy_detectable_percent,
    (
        SELECT count(*) FROM comparison_block WHERE comparison_block.run_id = run.run_id AND comparison_block.valid
    ) AS blocks,
    comparison.not_measured_reason_message AS not_measured_reason,
    comparison.energy_trust AS comparison_energy_trust,
    comparison.candidate_modelled_cycles AS modelled_cycles,
    comparison.pinned_modelled_cycles,
    comparison.candidate_instructions AS instructions,
    comparison.pinned_instructions,
    run.adjusted_mj_median,
    run.adjusted_mj_min,
    run.adjusted_mj_max,
    run.cuda_ms_median,
    run.wall_ms_median,
    run.rounds_valid,
    run.rounds_expected,
    run.energy_trust,
    accepted.accepted_at AS promoted_at,
    accepted.accepted_by AS promoted_by,
    EXISTS (
        SELECT FROM baseline WHERE baseline.run_id = run.run_id AND baseline.retired_at IS NULL
    ) AS is_baseline,
    (
        SELECT CASE WHEN bool_or(withdrawal.scope = 'all') THEN 'all' ELSE max(withdrawal.scope) END
        FROM withdrawal
        WHERE withdrawal.run_id = run.run_id
    ) AS withdrawn,
    run.inject,
    payload.name AS payload,
    run.protocol,
    environment.environment_class,
    run.candidate_origin ->> 'bundle' AS bundle,
    run.outcome,
    run.reason_code,
    run.reason_message,
    run.label,
    run.note,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    EXTRACT(EPOCH FROM run.completed_at - run.started_at)::double precision AS duration_s,
    run.started_at,
    run.completed_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id
FROM run
LEFT JOIN device ON device.device_id = run.device_id
LEFT JOIN environment ON environment.environment_id = run.environment_id
LEFT JOIN payload ON payload.payload_id = run.payload_id
LEFT JOIN comparison ON comparison.run_id = run.run_id
LEFT JOIN check_result AS predictions
    ON predictions.run_id = run.run_id AND predictions.check_name = 'compare_predictions' AND predictions.step = 0
LEFT JOIN check_result AS cuda
    ON cuda.run_id = run.run_id AND cuda.check_name = 'compare_time' AND cuda.step = 0
LEFT JOIN check_result AS energy
    ON energy.run_id = run.run_id AND energy.check_name = 'compare_energy' AND energy.step = 0
LEFT JOIN LATERAL (
    SELECT min(baseline.accepted_at) AS accepted_at,
        (array_agg(baseline.accepted_by ORDER BY baseline.accepted_at, baseline.baseline_id))[1] AS accepted_by
    FROM baseline
    WHERE baseline.run_id = run.run_id
) AS accepted ON TRUE
WHERE run.candidate;

COMMENT ON VIEW candidate_runs IS 'One row a run that tries a kernel: where it comes from, how it did beside the other one, and alone as nights are measured';
COMMENT ON COLUMN candidate_runs.night IS 'Date in UTC on which the run began';
COMMENT ON COLUMN candidate_runs.workload IS 'What was tested';
COMMENT ON COLUMN candidate_runs.device IS 'Model name of the device; NULL when none could be chosen';
COMMENT ON COLUMN candidate_runs.verdict IS 'Verdict of the run, or "not judged" for one that ended before its report';
COMMENT ON COLUMN candidate_runs.spec IS 'What was to be tried, as it was asked for; NULL: the kernel of the working tree, in a night that was marked';
COMMENT ON COLUMN candidate_runs.origin IS 'Kind of the spec: variant, source, ptx, manifest, ref or bundle; NULL: not known';
COMMENT ON COLUMN candidate_runs.commit IS 'Commit of a ref; for a path, the one that the working tree was at';
COMMENT ON COLUMN candidate_runs.modified IS 'Whether the working tree differed from that commit';
COMMENT ON COLUMN candidate_runs.kernel_variant IS 'Variant of the kernels that were tried';
COMMENT ON COLUMN candidate_runs.kernel_ptx_sha256 IS 'sha256 of their PTX';
COMMENT ON COLUMN candidate_runs.pinned_variant IS 'Variant of the kernels that they were held against';
COMMENT ON COLUMN candidate_runs.pinned_ptx_sha256 IS 'sha256 of the PTX that they were held against';
COMMENT ON COLUMN candidate_runs.equals_pinned IS 'Whether both are the same: then every difference is chance';
COMMENT ON COLUMN candidate_runs.predictions_word IS 'better, worse, same, inconclusive, invalid or unavailable; NULL: not judged';
COMMENT ON COLUMN candidate_runs.time_word IS 'The same of the time';
COMMENT ON COLUMN candidate_runs.energy_word IS 'The same of the energy';
COMMENT ON COLUMN candidate_runs.agreed IS 'Predictions of the candidate equal to the frozen ones, over all draws';
COMMENT ON COLUMN candidate_runs.total IS 'Predictions of the candidate, over all draws';
COMMENT ON COLUMN candidate_runs.differing IS 'Predictions on which candidate, the other kernel and the frozen ones differ';
COMMENT ON COLUMN candidate_runs.time_effect_ms IS 'CUDA-event time of the candidate less that of the other kernel, ms a replay: mean of the blocks';
COMMENT ON COLUMN candidate_runs.time_low_ms IS 'Lower edge of its 95 per cent interval, ms';
COMMENT ON COLUMN candidate_runs.time_high_ms IS 'Upper edge of its 95 per cent interval, ms';
COMMENT ON COLUMN candidate_runs.time_effect_percent IS 'The same difference, per cent of the other kernel''s';
COMMENT ON COLUMN candidate_runs.time_detectable_percent IS 'Smallest difference that would be found in 80 of 100 cases, per cent';
COMMENT ON COLUMN candidate_runs.energy_effect_mj IS 'Energy of the candidate less that of the other kernel, mJ a replay: mean of the blocks';
COMMENT ON COLUMN candidate_runs.energy_low_mj IS 'Lower edge of its 95 per cent interval, mJ';
COMMENT ON COLUMN candidate_runs.energy_high_mj IS 'Upper edge of its 95 per cent interval, mJ';
COMMENT ON COLUMN candidate_runs.energy_effect_percent IS 'The same difference, per cent of the other kernel''s';
COMMENT ON COLUMN candidate_runs.energy_detectable_percent IS 'Smallest difference that would be found in 80 of 100 cases, per cent';
COMMENT ON COLUMN candidate_runs.blocks IS 'Valid blocks in which the two took turns';
COMMENT ON COLUMN candidate_runs.not_measured_reason IS 'Why the two did not take turns; NULL: they did, or nothing is known';
COMMENT ON COLUMN candidate_runs.comparison_energy_trust IS 'What the energy of those blocks is worth: verified, failed, unverified or unavailable';
COMMENT ON COLUMN candidate_runs.modelled_cycles IS 'Critical path of the candidate, clock cycles (modelled, not measured)';
COMMENT ON COLUMN candidate_runs.pinned_modelled_cycles IS 'Critical path of the other kernel, clock cycles (modelled, not measured)';
COMMENT ON COLUMN candidate_runs.instructions IS 'Instructions of the candidate (counted in its PTX)';
COMMENT ON COLUMN candidate_runs.pinned_instructions IS 'Instructions of the other kernel (counted in its PTX)';
COMMENT ON COLUMN candidate_runs.adjusted_mj_median IS 'Candidate alone, in rounds as nights have them: median energy a replay without idle energy, mJ';
COMMENT ON COLUMN candidate_runs.adjusted_mj_min IS 'Smallest adjusted energy of such a valid round, mJ a replay';
COMMENT ON COLUMN candidate_runs.adjusted_mj_max IS 'Largest adjusted energy of such a valid round, mJ a replay';
COMMENT ON COLUMN candidate_runs.cuda_ms_median IS 'Candidate alone: median CUDA-event time a replay, ms';
COMMENT ON COLUMN candidate_runs.wall_ms_median IS 'Candidate alone: median wall time a replay, ms';
COMMENT ON COLUMN candidate_runs.rounds_valid IS 'Such rounds whose figures may be used';
COMMENT ON COLUMN candidate_runs.rounds_expected IS 'Such rounds asked for';
COMMENT ON COLUMN candidate_runs.energy_trust IS 'verified (every telemetry gate passed), failed, unverified or unavailable (no counter)';
COMMENT ON COLUMN candidate_runs.promoted_at IS 'When it was accepted as a baseline, for the first time (UTC); NULL: it was not';
COMMENT ON COLUMN candidate_runs.promoted_by IS 'Who accepted it';
COMMENT ON COLUMN candidate_runs.is_baseline IS 'Whether it is a current baseline';
COMMENT ON COLUMN candidate_runs.withdrawn IS 'energy or all, where that was withdrawn: see the view withdrawn; NULL: nothing was';
COMMENT ON COLUMN candidate_runs.inject IS 'Effects that the simulated device was told to show; NULL: none';
COMMENT ON COLUMN candidate_runs.payload IS 'Name of the set of frozen draws';
COMMENT ON COLUMN candidate_runs.protocol IS 'Measurement protocol of the candidate''s own rounds';
COMMENT ON COLUMN candidate_runs.environment_class IS 'Versions that start a new baseline when they change';
COMMENT ON COLUMN candidate_runs.bundle IS 'Name of the frozen copy of the kernels: candidate- and 16 digits';
COMMENT ON COLUMN candidate_runs.outcome IS 'Worst outcome of the tasks, before any verdict';
COMMENT ON COLUMN candidate_runs.reason_code IS 'Word for why the outcome is not ok';
COMMENT ON COLUMN candidate_runs.reason_message IS 'Line for why the outcome is not ok';
COMMENT ON COLUMN candidate_runs.label IS 'Short name given at the trigger';
COMMENT ON COLUMN candidate_runs.note IS 'Free text given at the trigger';
COMMENT ON COLUMN candidate_runs.trigger IS 'scheduled, manual, backfill or import';
COMMENT ON COLUMN candidate_runs.device_kind IS 'cuda, emulated, reference or simulated';
COMMENT ON COLUMN candidate_runs.device_uuid IS 'Identity of the board or machine';
COMMENT ON COLUMN candidate_runs.duration_s IS 'Time from the accepted request to the record of the last part, s';
COMMENT ON COLUMN candidate_runs.started_at IS 'When the run began: when its request was accepted (UTC)';
COMMENT ON COLUMN candidate_runs.completed_at IS 'When the last of its parts was recorded (UTC)';
COMMENT ON COLUMN candidate_runs.dag_id IS 'Airflow DAG';
COMMENT ON COLUMN candidate_runs.dag_run_id IS 'Airflow DAG run';
COMMENT ON COLUMN candidate_runs.run_id IS 'Key of the run in every table';
