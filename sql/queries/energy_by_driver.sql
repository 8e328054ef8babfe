-- Drift of energy and time by driver version
-- The median energy and time of the nights under each driver and CUDA version on each board, and the change to the
-- version before; the reference load beside it tells a drifting sensor from a drifting kernel.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

WITH versions AS (
    SELECT n.device, n.device_uuid, n.kernel_variant, n.protocol, environment.driver, environment.cuda,
           count(*) AS nights, min(n.night) AS first_night, max(n.night) AS last_night,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY n.adjusted_mj_median) AS adjusted_mj,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY n.cuda_ms_median) AS cuda_ms,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY n.reference_joules_per_1e12_operations)
               AS reference_joules_per_1e12_operations
    FROM nightly AS n
    JOIN run USING (run_id)
    JOIN environment USING (environment_id)
    WHERE n.workload = :'workload'
      AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
      AND n.energy_trust = 'verified'
      AND n.adjusted_mj_median IS NOT NULL
      AND n.inject IS NULL
      AND n.withdrawn IS NULL
    GROUP BY n.device, n.device_uuid, n.kernel_variant, n.protocol, environment.driver, environment.cuda
)
SELECT *, 100 * (adjusted_mj - lag(adjusted_mj) OVER line) / nullif(abs(lag(adjusted_mj) OVER line), 0)
           AS adjusted_change_percent,
       100 * (cuda_ms / lag(cuda_ms) OVER line - 1) AS cuda_ms_change_percent
FROM versions
WINDOW line AS (PARTITION BY device_uuid, kernel_variant, protocol ORDER BY first_night, last_night)
ORDER BY device_uuid, kernel_variant, protocol, first_night, last_night;
