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

WITH nights AS (
    SELECT n.run_id, n.night, n.started_at, n.device, n.device_uuid
    FROM nightly AS n
    WHERE n.workload = :'workload'
      AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
), meters AS (
    -- By the key alone: with the columns of the night beside it, every round would be sorted by all of them.
    SELECT nights.run_id, count(*) AS rounds,
           100 * percentile_cont(0.5) WITHIN GROUP (ORDER BY r.meters_relative_difference) AS median_difference_percent,
           100 * max(abs(r.meters_relative_difference)) AS largest_difference_percent,
           sum(r.counter_j) AS counter_j, sum(r.integrated_j) AS integrated_j
    FROM nights
    JOIN round AS r USING (run_id)
    WHERE r.valid
      AND r.meters_relative_difference IS NOT NULL
    GROUP BY nights.run_id
)
SELECT nights.night, nights.device, nights.device_uuid, meters.rounds, meters.median_difference_percent,
       meters.largest_difference_percent, meters.counter_j, meters.integrated_j, 100 * g.high AS limit_percent,
       g.passed AS gate_passed
FROM nights
JOIN meters USING (run_id)
LEFT JOIN telemetry_gate AS g ON g.run_id = nights.run_id AND g.gate = 'meters_agree' AND g.at = 'run'
ORDER BY nights.device_uuid, nights.started_at;
