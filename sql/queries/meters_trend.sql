-- How far the two meters of a board are apart, by night
-- The energy of the active windows by the counter against the sampled power, over the valid rounds of each night, with
-- the gate that limits it.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT n.night, n.device, n.device_uuid, count(r.meters_relative_difference) AS rounds,
       100 * percentile_cont(0.5) WITHIN GROUP (ORDER BY r.meters_relative_difference) AS median_difference_percent,
       100 * max(abs(r.meters_relative_difference)) AS largest_difference_percent,
       sum(r.counter_j) AS counter_j, sum(r.integrated_j) AS integrated_j,
       100 * max(g.high) AS limit_percent, bool_and(g.passed) AS gate_passed
FROM nightly AS n
JOIN round AS r USING (run_id)
LEFT JOIN telemetry_gate AS g ON g.run_id = n.run_id AND g.gate = 'meters_agree' AND g.at = 'run'
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND r.valid
  AND r.meters_relative_difference IS NOT NULL
GROUP BY n.run_id, n.night, n.started_at, n.device, n.device_uuid
ORDER BY n.device_uuid, n.started_at;
