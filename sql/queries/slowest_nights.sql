-- Slowest nights, and what took the time
-- The nights that took longest, with the seconds of validation, of the windows of all rounds and of the reference
-- load; what is left went into preparation, waiting and rounds that were measured again. Nothing is left to tell of a
-- simulated device, whose rounds pass on a clock of its own.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif
-- top (integer): how many nights
\if :{?top} \else \set top '10' \endif

WITH slowest AS (
    SELECT n.*
    FROM nightly AS n
    WHERE n.workload = :'workload'
      AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
      AND n.duration_s IS NOT NULL
    ORDER BY n.duration_s DESC, n.started_at, n.device_uuid, n.run_id
    LIMIT :'top'::integer
)
SELECT n.night, n.device, n.duration_s, v.validation_s, r.rounds_s, t.reference_load_s,
       -- Rounds and load of a simulated device pass on a clock of its own, faster than the night's.
       CASE WHEN n.device_kind IS DISTINCT FROM 'simulated'
            THEN n.duration_s - v.validation_s - r.rounds_s - t.reference_load_s END AS other_s,
       v.slowest_case, v.slowest_case_s, r.measured_again, n.verdict, n.dag_run_id
FROM slowest AS n
CROSS JOIN LATERAL (
    SELECT coalesce(sum(duration_s), 0) AS validation_s, max(duration_s) AS slowest_case_s,
           (array_agg(case_name ORDER BY duration_s DESC NULLS LAST, case_name))[1] AS slowest_case
    FROM validation
    WHERE validation.run_id = n.run_id
) AS v
CROSS JOIN LATERAL (
    -- From the first idle window to the last where there are any, else the active window alone.
    SELECT coalesce(sum(coalesce(last_reading_s - first_reading_s, wall_ms * repeats / 1000)), 0) AS rounds_s,
           coalesce(sum(jsonb_array_length(earlier_attempts)), 0) AS measured_again
    FROM round
    WHERE round.run_id = n.run_id
) AS r
CROSS JOIN LATERAL (
    SELECT coalesce(sum(reference_duration_s), 0) AS reference_load_s
    FROM telemetry
    WHERE telemetry.run_id = n.run_id
) AS t
ORDER BY n.duration_s DESC, n.started_at, n.device_uuid, n.run_id;
