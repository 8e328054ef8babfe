-- Smallest difference that a night could have seen
-- What each night could have told from noise, in mJ and in percent of its figure: a change below it is no finding.
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

SELECT n.night, n.device, n.device_uuid, e.rounds, e.median_mj, e.sample_sd_mj, e.detectable_mj,
       100 * e.detectable_mj / nullif(abs(e.median_mj), 0) AS detectable_percent, n.energy_trust, n.dag_run_id
FROM nightly AS n
JOIN run_energy AS e USING (run_id)
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND e.figure = :'figure'
  AND e.subject = 'candidate'
ORDER BY n.device_uuid, n.started_at;
