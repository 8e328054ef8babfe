-- What changed between two nights
-- Every difference between two nights in device, environment, sources, kernel, payload, request, power limit and
-- clocks: one row for each, none where nothing changed. What one of the two does not know at all, as a night without
-- rounds its power limit, is left out; so is the platform where one is a record that states none.
--
-- earlier (text): dag_run_id, run_id or date of the earlier night; empty: the one before the later one, on its device
\if :{?earlier} \else \set earlier '' \endif
-- later (text): dag_run_id, run_id or date of the later night; empty: the newest
\if :{?later} \else \set later '' \endif
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif

WITH named AS NOT MATERIALIZED (
    SELECT run.*, device.kind, device.name AS device, device.uuid AS device_uuid,
           (run.started_at AT TIME ZONE 'UTC')::date::text AS night
    FROM run
    LEFT JOIN device USING (device_id)
), later AS (
    SELECT *
    FROM named
    WHERE dag_run_id = :'later'
       OR run_id = substring(:'later' FROM '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid
       OR :'later' IN ('', night) AND trigger <> 'import' AND NOT candidate AND workload = :'workload'
          AND (:'device' = '' OR device_uuid = :'device' OR device = :'device')
    ORDER BY started_at DESC
    LIMIT 1
), earlier AS (
    SELECT named.*
    FROM named, later
    WHERE named.dag_run_id = :'earlier'
       OR named.run_id = substring(:'earlier' FROM '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid
       OR :'earlier' IN ('', named.night) AND named.trigger <> 'import' AND NOT named.candidate
          AND named.workload = later.workload AND named.device_id IS NOT DISTINCT FROM later.device_id
          AND named.started_at < later.started_at
    ORDER BY named.started_at DESC
    LIMIT 1
), both_runs AS (
    SELECT 'earlier' AS side, * FROM earlier UNION ALL SELECT 'later', * FROM later
), facts (side, part, name, value) AS (
    SELECT side, 'device', fact.name, fact.value
    FROM both_runs, LATERAL (VALUES ('kind', kind), ('name', device), ('uuid', device_uuid)) AS fact (name, value)
    UNION ALL
    SELECT side, 'environment', fact.name, fact.value
    FROM both_runs
    JOIN environment USING (environment_id),
        LATERAL (
            VALUES ('python', python), ('platform', platform), ('driver', driver), ('cuda', cuda)
            UNION ALL
            SELECT 'packages.' || key, value FROM jsonb_each_text(packages)
        ) AS fact (name, value)
    UNION ALL
    SELECT side, 'sources', source.key, source.value
    FROM both_runs JOIN source_state USING (source_state_id), jsonb_each_text(sources) AS source
    UNION ALL
    SELECT side, 'kernel', fact.name, fact.value
    FROM both_runs,
        LATERAL (VALUES ('variant', kernel_variant), ('ptx_sha256', kernel_ptx_sha256)) AS fact (name, value)
    UNION ALL
    SELECT side, 'payload', fact.name, fact.value
    FROM both_runs
    JOIN payload USING (payload_id),
        LATERAL (VALUES ('name', payload.name), ('manifest_sha256', manifest_sha256)) AS fact (name, value)
    UNION ALL
    SELECT side, 'request', param.key, param.value
    FROM both_runs, jsonb_each_text(params) AS param
    WHERE param.key NOT IN ('accepted_at', 'dag_id', 'dag_run_id', 'run_id', 'logical_date', 'trigger', 'seed')
    UNION ALL
    SELECT side, 'measurement', fact.name, string_agg(DISTINCT fact.value, ', ')
    FROM both_runs
    JOIN round USING (run_id),
        LATERAL (
            SELECT key, counters -> 'state_before' ->> key
            FROM unnest(ARRAY['power_limit_w', 'memory_clock_mhz', 'persistence_mode', 'mig_mode']) AS key
        ) AS fact (name, value)
    WHERE round.valid AND round.arm <> 'comparison'
    GROUP BY side, fact.name
    UNION ALL
    SELECT side, 'request', 'protocol used', protocol FROM both_runs
), known_on_both_sides AS (
    SELECT part FROM facts WHERE value IS NOT NULL GROUP BY part HAVING count(DISTINCT side) = 2
)
SELECT part, name, earlier.value AS earlier, later.value AS later
FROM (SELECT * FROM facts WHERE side = 'earlier') AS earlier
FULL JOIN (SELECT * FROM facts WHERE side = 'later') AS later USING (part, name)
JOIN known_on_both_sides USING (part)
WHERE earlier.value IS DISTINCT FROM later.value
  AND NOT (part = 'environment' AND name = 'platform' AND (
      earlier.value IN ('cuda', 'emulated', 'reference', 'simulated', 'not recorded')
      OR later.value IN ('cuda', 'emulated', 'reference', 'simulated', 'not recorded')
  ))
ORDER BY part, name;
