-- Candidate against baseline within the same rounds
-- The difference between two kernels that an interleaved round measured in turns, by night: what idle power or
-- temperature did between two nights does not touch it.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT n.night, n.device, n.device_uuid, e.subject, e.rounds, e.median_mj, e.min_mj, e.max_mj, e.detectable_mj,
       abs(e.median_mj) > e.detectable_mj AS larger_than_detectable, n.energy_trust, n.dag_run_id
FROM nightly AS n
JOIN run_energy AS e USING (run_id)
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND e.subject LIKE '% - %'
ORDER BY n.device_uuid, n.started_at, e.figure, e.subject;
