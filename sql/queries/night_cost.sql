-- What a night costs, in joules and seconds
-- The energy and the time of each night: of the replays themselves, of the reference load, and from the first reading
-- of the counter to the last one, waiting included.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT n.night, n.device, n.duration_s, r.replays, r.replays_j, t.reference_load_j,
       (r.last_mj - r.first_mj)::double precision / 1000 AS rounds_with_idle_j,
       r.last_s - r.first_s AS rounds_with_idle_s,
       (r.last_mj - r.first_mj)::double precision / 1000 / nullif(r.last_s - r.first_s, 0) AS average_power_w,
       n.dag_run_id
FROM nightly AS n
CROSS JOIN LATERAL (
    SELECT sum(repeats)::bigint AS replays, sum(gross_mj * repeats / 1000) AS replays_j,
           min(first.energy_mj) AS first_mj, max(last.energy_mj) AS last_mj, min(first.time_s) AS first_s,
           max(last.time_s) AS last_s
    FROM round,
        jsonb_to_record(counters) AS reading (idle_before jsonb, idle_after jsonb),
        jsonb_to_record(coalesce(idle_before -> 'start', '{}')) AS first (energy_mj bigint, time_s double precision),
        jsonb_to_record(coalesce(idle_after -> 'end', '{}')) AS last (energy_mj bigint, time_s double precision)
    WHERE round.run_id = n.run_id
) AS r
CROSS JOIN LATERAL (
    SELECT sum(reference_energy_j) AS reference_load_j FROM telemetry WHERE telemetry.run_id = n.run_id
) AS t
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
ORDER BY n.started_at DESC, n.device_uuid;
