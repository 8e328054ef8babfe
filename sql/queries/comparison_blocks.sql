-- Blocks in which a candidate and the other kernel took turns
-- For one run that tried a kernel, or the newest: both kernels in each block, and their differences, which the verdict
-- on time and energy is the mean of; blocks of rounds that are not valid are shown and not counted.
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
SELECT asked.night, asked.spec, b.round, b.block, b.valid, b.candidate_mj, b.pinned_mj,
       b.candidate_mj - b.pinned_mj AS difference_mj, b.control_mj, b.candidate_cuda_ms, b.pinned_cuda_ms,
       1000 * (b.candidate_cuda_ms - b.pinned_cuda_ms) AS difference_microseconds, asked.dag_run_id
FROM asked
JOIN comparison_block AS b USING (run_id)
ORDER BY b.round, b.block;
