-- One row a measurement round, with each energy figure of the candidate and its interval. Columns that are not asked for
-- cost nothing: every join is on a key, so that PostgreSQL leaves it out.
CREATE OR REPLACE VIEW round_trend AS
SELECT
    (run.started_at AT TIME ZONE 'UTC')::date AS night,
    run.workload,
    device.name AS device,
    round.round,
    round.valid,
    round.reason_code,
    round.protocol,
    round.adjusted_mj,
    round.gross_mj,
    round.cuda_ms,
    round.wall_ms,
    (round.idle_before_w + round.idle_after_w) / 2 AS idle_w,
    energy.classic_mj,
    energy.classic_low_mj,
    energy.classic_high_mj,
    energy.aligned_mj,
    energy.aligned_low_mj,
    energy.aligned_high_mj,
    energy.audited_mj,
    energy.audited_low_mj,
    energy.audited_high_mj,
    energy.interleaved_mj,
    energy.interleaved_low_mj,
    energy.interleaved_high_mj,
    round.idle_before_w,
    round.idle_after_w,
    round.average_power_w,
    round.meters_relative_difference,
    round.sham_adjusted_mj,
    round.repeats,
    jsonb_array_length(round.earlier_attempts) AS earlier_attempts,
    round.outcome,
    round.reason_message,
    round.arm,
    run.energy_trust,
    (
        SELECT CASE WHEN bool_or(withdrawal.scope = 'all') THEN 'all' ELSE max(withdrawal.scope) END
        FROM withdrawal
        WHERE withdrawal.run_id = run.run_id
    ) AS withdrawn,
    run.kernel_variant,
    round.kernel_ptx_sha256,
    round.inject,
    environment.environment_class,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    round.created_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    round.step,
    energy.trial_mj,
    energy.trial_low_mj,
    energy.trial_high_mj,
    round.calibration_ms
FROM run
JOIN round ON round.run_id = run.run_id
LEFT JOIN device ON device.device_id = run.device_id
LEFT JOIN environment ON environment.environment_id = run.environment_id
LEFT JOIN LATERAL (
    -- Of at most one row each, all found at once; over one row, so that it is left out where none of it is asked for.
    SELECT
        max(adjusted_mj) FILTER (WHERE figure = 'classic') AS classic_mj,
        max(low_mj) FILTER (WHERE figure = 'classic') AS classic_low_mj,
        max(high_mj) FILTER (WHERE figure = 'classic') AS classic_high_mj,
        max(adjusted_mj) FILTER (WHERE figure = 'aligned') AS aligned_mj,
        max(low_mj) FILTER (WHERE figure = 'aligned') AS aligned_low_mj,
        max(high_mj) FILTER (WHERE figure = 'aligned') AS aligned_high_mj,
        max(adjusted_mj) FILTER (WHERE figure = 'audited') AS audited_mj,
        max(low_mj) FILTER (WHERE figure = 'audited') AS audited_low_mj,
        max(high_mj) FILTER (WHERE figure = 'audited') AS audited_high_mj,
        max(adjusted_mj) FILTER (WHERE figure = 'interleaved') AS interleaved_mj,
        max(low_mj) FILTER (WHERE figure = 'interleaved') AS interleaved_low_mj,
        max(high_mj) FILTER (WHERE figure = 'interleaved') AS interleaved_high_mj,
        max(adjusted_mj) FILTER (WHERE figure = 'trial') AS trial_mj,
        max(low_mj) FILTER (WHERE figure = 'trial') AS trial_low_mj,
        max(high_mj) FILTER (WHERE figure = 'trial') AS trial_high_mj
    FROM round_energy
    WHERE round_energy.run_id = round.run_id AND round_energy.arm = round.arm AND round_energy.round = round.round
        AND round_energy.subject = 'candidate'
) AS energy ON TRUE
WHERE NOT run.candidate;

COMMENT ON VIEW round_trend IS 'One row a measurement round of every run, imported ones too, but not of candidates: figures, intervals, idle power';
COMMENT ON COLUMN round_trend.night IS 'Date in UTC on which the run began';
COMMENT ON COLUMN round_trend.workload IS 'What was measured';
COMMENT ON COLUMN round_trend.device IS 'Model name of the device';
COMMENT ON COLUMN round_trend.round IS 'Number of the round, from 0';
COMMENT ON COLUMN round_trend.valid IS 'Whether its figures may be used';
COMMENT ON COLUMN round_trend.reason_code IS 'Word for why it is not valid';
COMMENT ON COLUMN round_trend.protocol IS 'Measurement protocol; only rounds of one protocol are compared';
COMMENT ON COLUMN round_trend.adjusted_mj IS 'Energy a replay without idle energy by the protocol''s own figure, mJ; may be negative';
COMMENT ON COLUMN round_trend.gross_mj IS 'Energy a replay with idle energy, mJ';
COMMENT ON COLUMN round_trend.cuda_ms IS 'CUDA-event time a replay, ms; NULL without CUDA events';
COMMENT ON COLUMN round_trend.wall_ms IS 'Wall time a replay, ms';
COMMENT ON COLUMN round_trend.idle_w IS 'Mean of the idle power before and after, W';
COMMENT ON COLUMN round_trend.classic_mj IS 'Classic figure: adjusted energy a replay, mJ';
COMMENT ON COLUMN round_trend.classic_low_mj IS 'Classic figure: lower edge of its 95 per cent interval, bias taken off, mJ';
COMMENT ON COLUMN round_trend.classic_high_mj IS 'Classic figure: upper edge of its 95 per cent interval, bias taken off, mJ';
COMMENT ON COLUMN round_trend.aligned_mj IS 'Aligned figure (from counter step to counter step): adjusted energy a replay, mJ';
COMMENT ON COLUMN round_trend.aligned_low_mj IS 'Aligned figure: lower edge of its 95 per cent interval, bias taken off, mJ';
COMMENT ON COLUMN round_trend.aligned_high_mj IS 'Aligned figure: upper edge of its 95 per cent interval, bias taken off, mJ';
COMMENT ON COLUMN round_trend.audited_mj IS 'Audited figure (long idle windows after settling): adjusted energy a replay, mJ';
COMMENT ON COLUMN round_trend.audited_low_mj IS 'Audited figure: lower edge of its 95 per cent interval, bias taken off, mJ';
COMMENT ON COLUMN round_trend.audited_high_mj IS 'Audited figure: upper edge of its 95 per cent interval, bias taken off, mJ';
COMMENT ON COLUMN round_trend.interleaved_mj IS 'Interleaved figure of the candidate: adjusted energy a replay, mJ';
COMMENT ON COLUMN round_trend.interleaved_low_mj IS 'Interleaved figure: lower edge of its 95 per cent interval, bias taken off, mJ';
COMMENT ON COLUMN round_trend.interleaved_high_mj IS 'Interleaved figure: upper edge of its 95 per cent interval, bias taken off, mJ';
COMMENT ON COLUMN round_trend.idle_before_w IS 'Mean power of the idle window before, W';
COMMENT ON COLUMN round_trend.idle_after_w IS 'Mean power of the idle window after, W';
COMMENT ON COLUMN round_trend.average_power_w IS 'Mean power of the active window, W';
COMMENT ON COLUMN round_trend.meters_relative_difference IS 'Sampled power over counter, less one';
COMMENT ON COLUMN round_trend.sham_adjusted_mj IS 'What a window without work reads, over as many replays, mJ; NULL: none made';
COMMENT ON COLUMN round_trend.repeats IS 'Replays in the active window';
COMMENT ON COLUMN round_trend.earlier_attempts IS 'How often the round had to be measured again';
COMMENT ON COLUMN round_trend.outcome IS 'Class of outcome';
COMMENT ON COLUMN round_trend.reason_message IS 'Line for why it is not valid';
COMMENT ON COLUMN round_trend.arm IS 'What was measured, where a run measures more than one kernel';
COMMENT ON COLUMN round_trend.energy_trust IS 'verified (every telemetry gate of the run passed), failed, unverified or unavailable';
COMMENT ON COLUMN round_trend.withdrawn IS 'energy or all, where that was withdrawn of the run: see the view withdrawn; NULL: nothing was';
COMMENT ON COLUMN round_trend.kernel_variant IS 'Variant of the kernels that ran';
COMMENT ON COLUMN round_trend.kernel_ptx_sha256 IS 'sha256 of the PTX that the round ran; NULL: none, or not recorded';
COMMENT ON COLUMN round_trend.inject IS 'Effects that the simulated device was told to show; NULL: none';
COMMENT ON COLUMN round_trend.environment_class IS 'Versions that start a new baseline when they change';
COMMENT ON COLUMN round_trend.trigger IS 'scheduled, manual, backfill or import';
COMMENT ON COLUMN round_trend.device_kind IS 'cuda, emulated, reference or simulated';
COMMENT ON COLUMN round_trend.device_uuid IS 'Identity of the board or machine';
COMMENT ON COLUMN round_trend.started_at IS 'When the run began (UTC)';
COMMENT ON COLUMN round_trend.created_at IS 'When the record of the round was written (UTC)';
COMMENT ON COLUMN round_trend.dag_id IS 'Airflow DAG';
COMMENT ON COLUMN round_trend.dag_run_id IS 'Airflow DAG run';
COMMENT ON COLUMN round_trend.run_id IS 'Key of the run in every table';
COMMENT ON COLUMN round_trend.step IS '0: first rounds; 1: confirmation rounds, measured because the first ones called for it';
COMMENT ON COLUMN round_trend.trial_mj IS 'Trial figure (windows of the original learner records): adjusted energy a task, mJ';
COMMENT ON COLUMN round_trend.trial_low_mj IS 'Trial figure: lower edge of its 95 per cent interval, bias taken off, mJ';
COMMENT ON COLUMN round_trend.trial_high_mj IS 'Trial figure: upper edge of its 95 per cent interval, bias taken off, mJ';
COMMENT ON COLUMN round_trend.calibration_ms IS 'What a task took just before, ms, where the repeats follow from that';
