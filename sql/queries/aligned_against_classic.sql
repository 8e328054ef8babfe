-- Aligned figure against the classic one by night
-- How much more the classic protocol read than the one that waits for the steps of the counter, in mJ and in percent.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT n.night, n.device, n.device_uuid, aligned.rounds, classic.median_mj AS classic_mj,
       aligned.median_mj AS aligned_mj,
       classic.median_mj - aligned.median_mj AS difference_mj,
       100 * (classic.median_mj - aligned.median_mj) / nullif(abs(aligned.median_mj), 0) AS difference_percent,
       abs(classic.median_mj - aligned.median_mj) > aligned.detectable_mj AS larger_than_detectable,
       n.energy_trust, n.dag_run_id
FROM nightly AS n
JOIN run_energy AS aligned ON aligned.run_id = n.run_id AND aligned.figure = 'aligned'
JOIN run_energy AS classic
    ON classic.run_id = n.run_id AND classic.figure = 'classic' AND classic.subject = aligned.subject
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND aligned.subject = 'candidate'
ORDER BY n.device_uuid, n.started_at;
