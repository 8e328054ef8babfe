-- Idle power of a board by night
-- Idle power with a context present, how it wandered in a long stretch, and the idle windows of the rounds: a step
-- here is another clock, another driver or another process.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

WITH nights AS (
    SELECT n.run_id, n.night, n.started_at, n.device, n.device_uuid, t.idle_power_w, t.idle_slope_w_per_s,
           t.idle_walk_w_per_sqrt_s,
           t.idle_power_w - lag(t.idle_power_w) OVER (PARTITION BY n.device_uuid ORDER BY n.started_at) AS change_w,
           n.dag_run_id
    FROM nightly AS n
    JOIN telemetry AS t ON t.run_id = n.run_id AND t.moment = 'before'
    WHERE n.workload = :'workload'
      AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
      AND t.idle_power_w IS NOT NULL
), windows AS (
    -- By the key alone: with the columns of the night beside it, every round would be sorted by all of them.
    SELECT nights.run_id, avg((r.idle_before_w + r.idle_after_w) / 2) AS round_idle_w,
           min(least(r.idle_before_w, r.idle_after_w)) AS round_idle_min_w,
           max(greatest(r.idle_before_w, r.idle_after_w)) AS round_idle_max_w
    FROM nights
    JOIN round AS r USING (run_id)
    WHERE r.valid
    GROUP BY nights.run_id
)
SELECT nights.night, nights.device, nights.device_uuid, nights.idle_power_w, nights.idle_slope_w_per_s,
       nights.idle_walk_w_per_sqrt_s, windows.round_idle_w, windows.round_idle_min_w, windows.round_idle_max_w,
       nights.change_w, nights.dag_run_id
FROM nights
LEFT JOIN windows USING (run_id)
ORDER BY nights.device_uuid, nights.started_at;
