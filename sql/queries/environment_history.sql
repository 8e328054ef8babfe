-- What changed around the kernels, and when
-- Every change of driver, packages, sources, kernel, payload or power limit from one run of a board to the next, the
-- newest first.
--
-- what (text): one thing, such as driver or numpy; empty: everything
\if :{?what} \else \set what '' \endif
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

WITH changes AS MATERIALIZED (
    -- Ordered afterwards: before that, every run would be sorted with all that its environment holds.
    SELECT e.*
    FROM environment_changes AS e
    WHERE e.workload = :'workload'
      AND (:'device' = '' OR e.device_uuid = :'device' OR e.device = :'device')
      AND e.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND e.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
      AND (:'what' = '' OR e.what = :'what')
      AND e.trigger <> 'import'
)
SELECT c.night, c.device, c.device_uuid, c.what, c.from_value, c.to_value, c.detail, c.previous_night, c.trigger,
       c.dag_run_id
FROM changes AS c
ORDER BY c.started_at DESC, c.device_uuid, c.what;
