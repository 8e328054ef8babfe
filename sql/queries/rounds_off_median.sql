-- Rounds whose interval does not hold the median of their run
-- Valid rounds that lie further from the median of the run than their own uncertainty explains, with the distance in
-- standard uncertainties: about one in twenty is to be expected.
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

SELECT n.night, n.device, n.device_uuid, e.arm, e.round, e.adjusted_mj, e.low_mj, e.high_mj, m.median_mj,
       (e.adjusted_mj - e.bias_mj - m.median_mj) / nullif(e.combined_mj, 0) AS standard_uncertainties, n.dag_run_id
FROM nightly AS n
JOIN run_energy AS m USING (run_id)
JOIN round_energy AS e ON e.run_id = m.run_id AND e.figure = m.figure AND e.subject = m.subject
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND m.figure = :'figure'
  AND m.subject = 'candidate'
  AND m.median_mj NOT BETWEEN e.low_mj AND e.high_mj
  -- Every figure is of a round. Those that are not valid are few, and have an index of their own.
  AND NOT EXISTS (
      SELECT FROM round AS r WHERE r.run_id = e.run_id AND r.arm = e.arm AND r.round = e.round AND NOT r.valid
  )
ORDER BY n.started_at DESC, n.device_uuid, n.run_id, e.arm, e.round;
