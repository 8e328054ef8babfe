-- Invalid rounds by reason
-- Why rounds could not be used, how many, on how many nights and boards, and what share of all rounds that is.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

WITH rounds AS (
    SELECT n.run_id, n.night, n.device_uuid, r.valid, r.reason_code
    FROM nightly AS n
    JOIN round AS r USING (run_id)
    WHERE n.workload = :'workload'
      AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
)
SELECT reason_code, count(*) AS rounds, 100 * count(*)::double precision / (SELECT count(*) FROM rounds) AS percent_of_rounds,
       count(DISTINCT run_id) AS nights, count(DISTINCT device_uuid) AS boards,
       min(night) AS first_night, max(night) AS last_night
FROM rounds
WHERE NOT valid
GROUP BY reason_code
ORDER BY rounds DESC, reason_code;
