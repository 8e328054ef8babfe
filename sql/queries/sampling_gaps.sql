-- Nights with the longest gaps in the sampled power
-- The longest time without a sample in each night, against what the gate allows: long gaps come from a busy host.
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
\if :{?top} \else \set top '20' \endif

SELECT n.night, n.device, n.device_uuid, g.value AS longest_gap_s, g.high AS allowed_s, g.passed, g.reason_code,
       n.dag_run_id
FROM nightly AS n
JOIN telemetry_gate AS g USING (run_id)
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND g.gate = 'sampling'
ORDER BY g.value DESC NULLS FIRST, n.started_at, n.device_uuid, n.run_id
LIMIT :'top'::integer;
