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
       r.round_idle_w, r.round_idle_min_w, r.round_idle_max_w,
       t.idle_power_w - lag(t.idle_power_w) OVER (PARTITION BY n.device_uuid ORDER BY n.started_at) AS change_w,
       n.dag_run_id
FROM nightly AS n
JOIN telemetry AS t ON t.run_id = n.run_id AND t.moment = 'before'
CROSS JOIN LATERAL (
    SELECT avg((idle_before_w + idle_after_w) / 2) AS round_idle_w,
           min(least(idle_before_w, idle_after_w)) AS round_idle_min_w,
           max(greatest(idle_before_w, idle_after_w)) AS round_idle_max_w
    FROM round
    WHERE round.run_id = n.run_id AND round.valid
) AS r
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND t.idle_power_w IS NOT NULL
ORDER BY n.device_uuid, n.started_at;
