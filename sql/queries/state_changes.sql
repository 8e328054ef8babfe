-- State hashes that changed between runs
-- Draws that left other bytes behind than in the run before on the same board: which of them, whether the predictions
-- changed, too, and whether versions or settings did. Where neither did, a board and a library did not repeat themselves.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'learner' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT v.night, v.device, v.device_uuid, v.draw, v.changed_states, v.changed AS predictions_changed,
       e.environment_class AS environment_before, v.environment_class AS environment_now,
       ARRAY(
           SELECT name
           FROM (SELECT * FROM run_setting AS r WHERE r.run_id = v.previous_run_id) AS was
           FULL JOIN (SELECT * FROM run_setting AS r WHERE r.run_id = v.run_id) AS is_now USING (name)
           WHERE was.value IS DISTINCT FROM is_now.value
           ORDER BY name
       ) AS changed_settings,
       p.dag_run_id AS previous_dag_run_id, v.dag_run_id
FROM validation_history AS v
JOIN run AS p ON p.run_id = v.previous_run_id
LEFT JOIN environment AS e ON e.environment_id = p.environment_id
WHERE v.workload = :'workload'
  AND (:'device' = '' OR v.device_uuid = :'device' OR v.device = :'device')
  AND v.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND v.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND v.states_changed
ORDER BY v.started_at, v.device_uuid, v.draw, v.run_id;
