-- Baselines over time
-- Every baseline that ever was current, from when to when, with its figures, who accepted it and why, and how many
-- checks were made against it.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif

SELECT device.name AS device, device.uuid AS device_uuid, baseline.protocol, baseline.environment_class,
       baseline.accepted_at, baseline.retired_at, baseline.retired_at IS NULL AS is_current,
       baseline.for_agreement, baseline.for_time, baseline.for_energy, run.kernel_variant, run.agreed, run.total,
       run.adjusted_mj_median, run.cuda_ms_median, run.energy_trust, baseline.accepted_by, baseline.reason,
       baseline.retired_by, baseline.retired_reason,
       coalesce(made.checks, 0) AS checks,
       run.dag_run_id, baseline.baseline_id
FROM baseline
JOIN run USING (run_id)
JOIN device ON device.device_id = baseline.device_id
LEFT JOIN (SELECT baseline_id, count(*) AS checks FROM check_result GROUP BY baseline_id) AS made USING (baseline_id)
WHERE baseline.workload = :'workload'
  AND (:'device' = '' OR device.uuid = :'device' OR device.name = :'device')
ORDER BY device.uuid, baseline.protocol, baseline.environment_class, baseline.accepted_at, baseline.baseline_id;
