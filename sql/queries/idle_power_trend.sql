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

SELECT n.night, n.device, n.device_uuid, t.idle_power_w, t.idle_slope_w_per_s, t.idle_walk_w_per_sqrt_s,
       avg((r.idle_before_w + r.idle_after_w) / 2) AS round_idle_w,
       min(least(r.idle_before_w, r.idle_after_w)) AS round_idle_min_w,
       max(greatest(r.idle_before_w, r.idle_after_w)) AS round_idle_max_w,
       t.idle_power_w - lag(t.idle_power_w) OVER (PARTITION BY n.device_uuid ORDER BY n.started_at) AS change_w,
       n.dag_run_id
FROM nightly AS n
JOIN telemetry AS t ON t.run_id = n.run_id AND t.moment = 'before'
LEFT JOIN round AS r ON r.run_id = n.run_id AND r.valid
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND t.idle_power_w IS NOT NULL
GROUP BY n.run_id, n.night, n.started_at, n.device, n.device_uuid, n.dag_run_id, t.run_id, t.moment
ORDER BY n.device_uuid, n.started_at;
