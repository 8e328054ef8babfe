-- Nights with another verdict than ok, and why
-- Which nights were not ok, with what their tasks and the last step of each check said about it.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT n.night, n.device, n.verdict, n.outcome, n.reason_code, n.reason_message, c.check_name,
       c.verdict AS check_verdict, c.reason AS check_reason, n.dag_run_id
FROM nightly AS n
LEFT JOIN LATERAL (
    SELECT DISTINCT ON (check_name) check_name, verdict, reason
    FROM check_result
    WHERE check_result.run_id = n.run_id
    ORDER BY check_name, step DESC
) AS c ON c.verdict NOT IN ('ok', 'improved', 'unavailable')
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND n.verdict <> 'ok'
ORDER BY n.started_at DESC, c.check_name;
