-- Telemetry gates that failed or were not checked, by month
-- How often each gate let a month down, on how many nights, and the reason it gave most often.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT date_trunc('month', n.night)::date AS month, g.gate, count(*) FILTER (WHERE g.passed IS FALSE) AS failed,
       count(*) FILTER (WHERE g.passed IS NULL) AS unchecked, count(*) AS checks,
       count(DISTINCT n.run_id) FILTER (WHERE g.passed IS NOT TRUE) AS nights,
       mode() WITHIN GROUP (ORDER BY g.reason_code) AS most_frequent_reason
FROM nightly AS n
JOIN telemetry_gate AS g USING (run_id)
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
GROUP BY date_trunc('month', n.night), g.gate
HAVING count(*) FILTER (WHERE g.passed IS NOT TRUE) > 0
ORDER BY month, failed DESC, unchecked DESC, g.gate;
