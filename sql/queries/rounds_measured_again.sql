-- Rounds that had to be measured again, by reason
-- Why the first attempts of rounds were given up, how often, and whether the round was valid in the end.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT attempt.code, count(*) AS attempts, count(DISTINCT (r.run_id, r.arm, r.round)) AS rounds,
       count(DISTINCT (r.run_id, r.arm, r.round)) FILTER (WHERE r.valid) AS valid_in_the_end,
       count(DISTINCT n.run_id) AS nights, min(n.night) AS first_night, max(n.night) AS last_night
FROM nightly AS n
JOIN round AS r USING (run_id),
    jsonb_to_recordset(r.earlier_attempts) AS attempt (code text)
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND r.earlier_attempts <> '[]'
GROUP BY attempt.code
ORDER BY attempts DESC, attempt.code;
