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
       used.energy_mj::double precision / 1000 AS rounds_with_idle_j,
       used.time_s AS rounds_with_idle_s,
       used.energy_mj::double precision / 1000 / nullif(used.time_s, 0) AS average_power_w,
       n.dag_run_id
FROM nightly AS n
CROSS JOIN LATERAL (
    SELECT sum(repeats)::bigint AS replays, sum(gross_mj * repeats / 1000) AS replays_j
    FROM round
    WHERE round.run_id = n.run_id
) AS r
-- The first and the last reading of a night, from two of its rounds: to unpack the readings of every one takes long.
LEFT JOIN LATERAL (
    SELECT counters #> '{idle_before,start}' AS reading
    FROM (
        SELECT counters
        FROM round
        WHERE round.run_id = n.run_id AND idle_before_w IS NOT NULL
        ORDER BY created_at, round, arm
        LIMIT 1
    ) AS first_round
    OFFSET 0
) AS first ON TRUE
LEFT JOIN LATERAL (
    SELECT counters #> '{idle_after,end}' AS reading
    FROM (
        SELECT counters
        FROM round
        WHERE round.run_id = n.run_id AND idle_after_w IS NOT NULL
        ORDER BY created_at DESC, round DESC, arm DESC
        LIMIT 1
    ) AS last_round
    OFFSET 0
) AS last ON TRUE
CROSS JOIN LATERAL (
    SELECT (last.reading ->> 'energy_mj')::bigint - (first.reading ->> 'energy_mj')::bigint AS energy_mj,
           (last.reading ->> 'time_s')::double precision - (first.reading ->> 'time_s')::double precision AS time_s
) AS used
CROSS JOIN LATERAL (
    SELECT sum(reference_energy_j) AS reference_load_j FROM telemetry WHERE telemetry.run_id = n.run_id
) AS t
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
ORDER BY n.started_at DESC, n.device_uuid;
