-- Everything about one run
-- One row with all that is known of a run, or of the newest night: figures, trust, gates, checks with their baselines,
-- kernel, environment and request.
--
-- run (text): dag_run_id or run_id; empty: the newest night
\if :{?run} \else \set run '' \endif
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif

SELECT *
FROM run_detail AS r
WHERE r.dag_run_id = :'run'
   OR r.run_id = substring(:'run' FROM '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid
   OR :'run' = '' AND r.workload = :'workload' AND r.trigger <> 'import' AND NOT r.candidate
      AND (:'device' = '' OR r.device_uuid = :'device' OR r.device = :'device')
ORDER BY r.started_at DESC
LIMIT 1;
