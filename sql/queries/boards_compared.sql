-- Boards against each other, by their own reference load
-- Energy of a replay in units of the reference load of the same board: the only energy that may be compared across
-- boards, whose sensors differ.
--
-- figure (one of aligned, audited, classic, interleaved): way of measuring
\if :{?figure} \else \set figure 'aligned' \endif
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT n.device, n.device_uuid, n.kernel_variant, count(*) AS nights,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY e.per_reference_load) AS per_reference_load,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY n.reference_joules_per_1e12_operations)
           AS joules_per_1e12_operations,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY e.median_mj) AS adjusted_mj
FROM nightly AS n
JOIN run_energy AS e USING (run_id)
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND e.figure = :'figure'
  AND e.subject = 'candidate'
  AND e.per_reference_load IS NOT NULL
  AND n.energy_trust = 'verified'
  AND n.inject IS NULL
  AND n.withdrawn IS NULL
GROUP BY n.device, n.device_uuid, n.kernel_variant
ORDER BY per_reference_load, n.device_uuid, n.kernel_variant;
