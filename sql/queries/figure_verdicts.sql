-- What each figure alone would have said of a night
-- The last energy check of each night, figure by figure: where one protocol alarms and another does not, the protocol
-- is what differs.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT n.night, n.device, n.device_uuid, c.verdict AS energy_verdict, f.key AS figure, f.value ->> 'verdict' AS verdict,
       f.value ->> 'reason_code' AS reason_code, (f.value ->> 'median_mj')::double precision AS median_mj,
       (f.value ->> 'detectable_mj')::double precision AS detectable_mj, n.dag_run_id
FROM nightly AS n
JOIN check_result AS c ON c.run_id = n.run_id AND c.check_name = 'energy'
CROSS JOIN LATERAL jsonb_each(c.details -> 'figures') AS f
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND NOT EXISTS (
      SELECT FROM check_result AS later
      WHERE later.run_id = c.run_id AND later.check_name = 'energy' AND later.step > c.step
  )
ORDER BY n.device_uuid, n.started_at, f.key;
