-- Qualification by night
-- Whether a workload computes what an independent implementation does: how many comparisons hold, which do not, and the
-- largest difference beside that of the run before on the same board.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'learner' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT v.night, v.device, v.device_uuid, v.passed, v.checks, v.checks - v.previous_checks AS checks_change, v.cases,
       v.cases_failed, v.failures, v.maximum_abs_error, v.previous_maximum_abs_error, v.tolerance, v.computed_on,
       v.captured, v.outcome, v.reason_code, v.duration_s, v.environment_class, v.dag_run_id
FROM qualification_history AS v
WHERE v.workload = :'workload'
  AND (:'device' = '' OR v.device_uuid = :'device' OR v.device = :'device')
  AND v.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND v.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
ORDER BY v.device_uuid, v.started_at, v.run_id;
