-- Energy per correct prediction by night
-- What one right answer cost, in microjoules: the energy of a replay over the predictions of it that are equal to the
-- true label.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT n.night, n.device, n.device_uuid, n.kernel_variant, n.adjusted_mj_median,
       run.device_correct::double precision / n.total AS accuracy,
       1000 * n.adjusted_mj_median / nullif(run.device_correct::double precision / n.draws_validated, 0)
           AS microjoules_per_correct_prediction,
       n.energy_trust, n.verdict
FROM nightly AS n
JOIN run USING (run_id)
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND n.adjusted_mj_median IS NOT NULL
  AND n.total > 0
  AND run.device_correct IS NOT NULL
ORDER BY n.device_uuid, n.started_at;
