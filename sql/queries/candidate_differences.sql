-- Predictions on which a candidate differs
-- For one run that tried a kernel, or the newest: each query on which it, the kernel that it was held against and the
-- frozen predictions are not the same, with the scores of the two classes. Next to no gap, and rounding may have chosen.
--
-- run (text): dag_run_id or run_id; empty: the newest candidate
\if :{?run} \else \set run '' \endif
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif

WITH asked AS (
    SELECT c.run_id, c.night, c.spec, c.dag_run_id
    FROM candidate_runs AS c
    WHERE c.dag_run_id = :'run'
       OR c.run_id = substring(:'run' FROM '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid
       OR :'run' = '' AND c.workload = :'workload'
          AND (:'device' = '' OR c.device_uuid = :'device' OR c.device = :'device')
    ORDER BY c.started_at DESC
    LIMIT 1
)
SELECT asked.night, asked.spec, d.draw, d.index AS query_index, d.candidate, d.pinned, d.frozen, d.candidate_score,
       d.pinned_score, d.gap, asked.dag_run_id
FROM asked
JOIN comparison_difference AS d USING (run_id)
ORDER BY d.draw, d.index;
