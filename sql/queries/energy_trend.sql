-- Energy of a board by night, with the spread of its rounds
-- How the energy of a replay moved from night to night, how far its rounds lay apart, and the change to the last night
-- before on the same board, kernel and protocol whose energy may be compared: not injected, withdrawn or failed.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

WITH nights AS (
    SELECT *, inject IS NULL AND withdrawn IS NULL AND energy_trust <> 'failed' AS usable
    FROM nightly
    WHERE workload = :'workload'
      AND (:'device' = '' OR device_uuid = :'device' OR device = :'device')
      AND started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
      AND adjusted_mj_median IS NOT NULL
), stretches AS (  -- each begins with a night that may be compared, those that may not follow it
    SELECT *, count(*) FILTER (WHERE usable) OVER line AS stretch
    FROM nights
    WINDOW line AS (PARTITION BY device_uuid, kernel_variant, protocol ORDER BY started_at ROWS UNBOUNDED PRECEDING)
), compared AS (
    SELECT *, CASE
            WHEN usable THEN lag(adjusted_mj_median) OVER (
                PARTITION BY device_uuid, kernel_variant, protocol, usable ORDER BY started_at)
            WHEN stretch > 0 THEN first_value(adjusted_mj_median) OVER (
                PARTITION BY device_uuid, kernel_variant, protocol, stretch ORDER BY started_at)
        END AS before_mj
    FROM stretches
)
SELECT n.night, n.device, n.device_uuid, n.kernel_variant, n.protocol,
       n.adjusted_mj_median, n.adjusted_mj_min, n.adjusted_mj_max,
       n.adjusted_mj_max - n.adjusted_mj_min AS spread_mj,
       100 * (n.adjusted_mj_median - n.before_mj) / nullif(abs(n.before_mj), 0) AS change_percent,
       n.rounds_valid, n.energy_trust, n.withdrawn, n.inject, n.verdict, n.dag_run_id
FROM compared AS n
ORDER BY n.device_uuid, n.started_at;
