-- Trials of a learner with both of their figures
-- Every trial: its repeats and the calibration that they follow from, the figure of the original records and the aligned
-- one with their 95 % intervals, and how much the former reads too little. Those records themselves have no interval and
-- no aligned figure.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'learner' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT v.night, v.device, v.device_uuid, v.round AS trial, v.valid, v.reason_code, v.repeats, v.calibration_ms,
       coalesce(v.trial_mj, v.adjusted_mj) AS trial_mj, v.trial_low_mj, v.trial_high_mj, v.aligned_mj, v.aligned_low_mj, v.aligned_high_mj,
       v.aligned_mj - v.trial_mj AS aligned_less_trial_mj, v.cuda_ms, v.wall_ms, v.idle_w, v.energy_trust, v.dag_run_id
FROM round_trend AS v
WHERE v.workload = :'workload'
  AND (:'device' = '' OR v.device_uuid = :'device' OR v.device = :'device')
  AND v.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND v.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND v.protocol = 'trial'
ORDER BY v.device_uuid, v.started_at, v.run_id, v.round;
