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
    SELECT r.run_id, r.night, r.device_uuid, r.valid, r.reason_code
    FROM round_trend AS r
    WHERE r.workload = :'workload'
      AND (:'device' = '' OR r.device_uuid = :'device' OR r.device = :'device')
      AND r.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND r.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
      AND r.trigger <> 'import'
)
SELECT reason_code, count(*) AS rounds,
       100 * count(*)::double precision / (SELECT count(*) FROM rounds) AS percent_of_rounds,
       count(DISTINCT run_id) AS nights, count(DISTINCT device_uuid) AS boards,
       min(night) AS first_night, max(night) AS last_night
FROM rounds
WHERE NOT valid
GROUP BY reason_code
ORDER BY rounds DESC, reason_code;
