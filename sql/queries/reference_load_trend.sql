-- Reference load of a board by night
-- Joules per 10^12 operations of a known load before and after the rounds, and how far they are from the median of the
-- board: what moves here moved the sensor or the board, and not the kernel.
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
    SELECT n.run_id, n.night, n.started_at, n.device, n.device_uuid,
           n.reference_joules_per_1e12_operations AS joules
    FROM nightly AS n
    WHERE n.workload = :'workload'
      AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
), loads AS (
    SELECT nights.run_id,
           max(t.reference_joules_per_1e12_operations) FILTER (WHERE t.moment = 'before') AS joules_before,
           max(t.reference_joules_per_1e12_operations) FILTER (WHERE t.moment = 'after') AS joules_after,
           avg(t.reference_tera_operations_per_s) AS tera_operations_per_s,
           bool_and(t.reference_result_verified) AS result_verified
    FROM nights
    JOIN telemetry AS t USING (run_id)
    GROUP BY nights.run_id
), boards AS (
    SELECT nights.device_uuid, percentile_cont(0.5) WITHIN GROUP (ORDER BY nights.joules) AS board_median
    FROM nights
    JOIN loads USING (run_id)
    GROUP BY nights.device_uuid
)
SELECT nights.night, nights.device, nights.device_uuid, nights.joules AS joules_per_1e12_operations,
       loads.joules_before, loads.joules_after, loads.tera_operations_per_s, loads.result_verified,
       100 * (nights.joules / boards.board_median - 1) AS off_board_median_percent
FROM nights
JOIN loads USING (run_id)
-- The first condition follows from the second, but can be hashed.
JOIN boards
    ON coalesce(boards.device_uuid, '') = coalesce(nights.device_uuid, '')
    AND boards.device_uuid IS NOT DISTINCT FROM nights.device_uuid
ORDER BY nights.device_uuid, nights.started_at;
