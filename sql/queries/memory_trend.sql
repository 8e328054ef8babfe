-- Memory of a task by night
-- What the allocator had at its peak, what the named tensors take and what is behind none of them, with the change to the
-- run before on the same board and set of draws. NULL where nothing counts, as on a CPU.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'learner' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT v.night, v.device, v.device_uuid, v.draw, v.peak_allocated_bytes,
       v.peak_allocated_bytes - v.previous_peak_allocated_bytes AS peak_change_bytes, v.peak_reserved_bytes,
       v.peak_reserved_bytes - v.previous_peak_reserved_bytes AS reserved_change_bytes, v.named_storage_bytes,
       v.named_storage_bytes - v.previous_named_storage_bytes AS named_change_bytes, v.unassigned_bytes,
       v.unassigned_bytes - v.previous_unassigned_bytes AS unassigned_change_bytes, v.tensors, v.storages,
       v.unmatched_states, v.outcome, v.environment_class, v.dag_run_id
FROM memory_history AS v
WHERE v.workload = :'workload'
  AND (:'device' = '' OR v.device_uuid = :'device' OR v.device = :'device')
  AND v.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND v.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
ORDER BY v.device_uuid, v.started_at, v.run_id;
