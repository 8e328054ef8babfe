-- Largest tensors of a task
-- For one run, or the newest that looked: its named tensors by size, the storage that each is a view of with what else
-- shares it, and its share of all named storages. Tensors that share a storage count it once each.
--
-- run (text): dag_run_id or run_id; empty: the newest that looked
\if :{?run} \else \set run '' \endif
-- workload (text): what was tested
\if :{?workload} \else \set workload 'learner' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- top (integer): how many tensors
\if :{?top} \else \set top '10' \endif

WITH asked AS (
    SELECT v.run_id, v.night, v.device, v.named_storage_bytes, v.dag_run_id
    FROM memory_history AS v
    WHERE v.storages > 0
      AND (v.dag_run_id = :'run'
           OR v.run_id = substring(:'run' FROM '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid
           OR :'run' = '' AND v.workload = :'workload'
              AND (:'device' = '' OR v.device_uuid = :'device' OR v.device = :'device'))
    ORDER BY v.started_at DESC, v.run_id DESC
    LIMIT 1
)
SELECT asked.night, asked.device, t.name, t.dtype, t.shape, t.logical_bytes, t.storage_id, s.bytes AS storage_bytes,
       100 * s.bytes::double precision / nullif(asked.named_storage_bytes, 0) AS percent_of_named, s.aliases, asked.dag_run_id
FROM asked
JOIN memory_tensor AS t USING (run_id)
JOIN memory_storage AS s USING (run_id, storage_id)
ORDER BY t.logical_bytes DESC, t.name
LIMIT :'top'::integer;
