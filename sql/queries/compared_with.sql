-- What each check of a night was compared with
-- For one night, or the newest, every step of every check: its figure, the baseline and who accepted that, and the
-- reason of the verdict.
--
-- run (text): dag_run_id or run_id; empty: the newest night
\if :{?run} \else \set run '' \endif
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif

WITH asked AS (
    SELECT n.run_id, n.night, n.device
    FROM nightly AS n
    WHERE n.dag_run_id = :'run'
       OR n.run_id = substring(:'run' FROM '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid
       OR :'run' = '' AND n.workload = :'workload'
          AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
    ORDER BY n.started_at DESC
    LIMIT 1
)
SELECT asked.night, asked.device, c.check_name, c.step, c.verdict, c.metric, c.value, c.baseline_value, c.baseline_low,
       c.baseline_high, c.unit, c.reason_code, c.reason, b.accepted_by, b.accepted_at, b.reason AS accepted_because
FROM asked
JOIN check_result AS c USING (run_id)
LEFT JOIN baseline AS b USING (baseline_id)
ORDER BY c.check_name, c.step;
