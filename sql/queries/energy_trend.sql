-- Energy of a board by night, with the spread of its rounds
-- How the energy of a replay moved from night to night, how far its rounds lay apart, and the change to the night
-- before on the same board, kernel and protocol.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT n.night, n.device, n.device_uuid, n.kernel_variant, n.protocol,
       n.adjusted_mj_median, n.adjusted_mj_min, n.adjusted_mj_max,
       n.adjusted_mj_max - n.adjusted_mj_min AS spread_mj,
       100 * (n.adjusted_mj_median - lag(n.adjusted_mj_median) OVER line)
           / nullif(abs(lag(n.adjusted_mj_median) OVER line), 0) AS change_percent,
       n.rounds_valid, n.energy_trust, n.withdrawn, n.inject, n.verdict, n.dag_run_id
FROM nightly AS n
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND n.adjusted_mj_median IS NOT NULL
WINDOW line AS (PARTITION BY n.device_uuid, n.kernel_variant, n.protocol ORDER BY n.started_at)
ORDER BY n.device_uuid, n.started_at;
