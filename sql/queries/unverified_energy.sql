-- Nights whose energy is not verified, and why
-- Every night with energy that no baseline should be made of or compared with, and the gates that did not pass.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT n.night, n.device, n.device_uuid, n.energy_trust, run.energy_trust_reason, g.gates_failed, g.gates_unchecked,
       n.adjusted_mj_median, n.dag_run_id
FROM nightly AS n
JOIN run USING (run_id)
CROSS JOIN LATERAL (
    SELECT string_agg(DISTINCT gate, ', ') FILTER (WHERE passed IS FALSE) AS gates_failed,
           string_agg(DISTINCT gate, ', ') FILTER (WHERE passed IS NULL) AS gates_unchecked
    FROM telemetry_gate
    WHERE telemetry_gate.run_id = n.run_id
) AS g
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND n.energy_trust IN ('failed', 'unverified')
ORDER BY n.started_at DESC;
