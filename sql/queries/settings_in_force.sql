-- Settings of libraries in force
-- Each value that a setting had on a board, where it came from, and the runs that computed with it.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'learner' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT v.device, v.device_uuid, s.name, s.value, s.origin, count(*) AS runs, min(v.night) AS first_night,
       max(v.night) AS last_night
FROM run_detail AS v
JOIN run_setting AS s USING (run_id)
WHERE v.workload = :'workload'
  AND (:'device' = '' OR v.device_uuid = :'device' OR v.device = :'device')
  AND v.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND v.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
GROUP BY v.device, v.device_uuid, s.name, s.value, s.origin
ORDER BY v.device_uuid, s.name, first_night, s.value, s.origin;
