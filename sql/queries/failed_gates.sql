-- Telemetry gates that failed or were not checked, by month
-- How often each gate let a month down, of how many checks, on how many nights, and the reason it gave most often.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

WITH checks AS NOT MATERIALIZED (
    SELECT date_trunc('month', n.night)::date AS month, n.run_id, g.gate, g.passed, g.reason_code
    FROM nightly AS n
    JOIN telemetry_gate AS g USING (run_id)
    WHERE n.workload = :'workload'
      AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
), made AS (
    SELECT month, gate, count(*) AS checks FROM checks GROUP BY month, gate
)
SELECT month, gate, count(*) FILTER (WHERE passed IS FALSE) AS failed,
       count(*) FILTER (WHERE passed IS NULL) AS unchecked, made.checks, count(DISTINCT run_id) AS nights,
       mode() WITHIN GROUP (ORDER BY reason_code) AS most_frequent_reason
FROM checks
JOIN made USING (month, gate)
WHERE passed IS NOT TRUE
GROUP BY month, gate, made.checks
ORDER BY month, failed DESC, unchecked DESC, gate;
