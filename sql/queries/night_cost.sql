-- What a night costs, in joules and seconds
-- The energy and the time of each night: of the replays themselves, of the reference load, and from the first reading
-- of the counter to the last one, waiting included.
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
    SELECT n.run_id, n.night, n.started_at, n.device, n.device_uuid, n.duration_s, n.dag_run_id
    FROM nightly AS n
    WHERE n.workload = :'workload'
      AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
), rounds AS (
    SELECT nights.run_id, sum(r.repeats)::bigint AS replays, sum(r.gross_mj * r.repeats / 1000) AS replays_j,
           -- Moment and counter of the first reading and of the last one: arrays are compared from the left.
           min(ARRAY[r.first_reading_s, r.first_reading_mj]) FILTER (WHERE r.idle_before_w IS NOT NULL) AS first,
           max(ARRAY[r.last_reading_s, r.last_reading_mj]) FILTER (WHERE r.idle_after_w IS NOT NULL) AS last
    FROM nights
    JOIN round AS r USING (run_id)
    GROUP BY nights.run_id
), loads AS (
    SELECT nights.run_id, sum(t.reference_energy_j) AS reference_load_j
    FROM nights
    JOIN telemetry AS t USING (run_id)
    GROUP BY nights.run_id
)
SELECT nights.night, nights.device, nights.duration_s, rounds.replays, rounds.replays_j, loads.reference_load_j,
       (rounds.last[2] - rounds.first[2]) / 1000 AS rounds_with_idle_j,
       rounds.last[1] - rounds.first[1] AS rounds_with_idle_s,
       (rounds.last[2] - rounds.first[2]) / 1000 / nullif(rounds.last[1] - rounds.first[1], 0) AS average_power_w,
       nights.dag_run_id
FROM nights
LEFT JOIN rounds USING (run_id)
LEFT JOIN loads USING (run_id)
ORDER BY nights.started_at DESC, nights.device_uuid;
