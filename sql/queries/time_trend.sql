-- Time of a replay by night, with its weekly median
-- How the time of a replay moved: by CUDA events where there are any, else by the wall clock, and the median of its
-- week, to which injected and withdrawn nights do not count.
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
    SELECT n.night, n.started_at, n.device, n.device_uuid, n.kernel_variant, n.cuda_ms_median, n.wall_ms_median,
           n.inject IS NULL AND n.withdrawn IS DISTINCT FROM 'all' AS usable,
           coalesce(n.cuda_ms_median, n.wall_ms_median) AS replay_ms,
           date_trunc('week', n.night)::date AS week
    FROM nightly AS n
    WHERE n.workload = :'workload'
      AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
      AND n.wall_ms_median IS NOT NULL
), weeks AS (
    SELECT device_uuid, kernel_variant, week, count(*) AS nights,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY replay_ms) AS week_median_ms
    FROM nights
    WHERE usable
    GROUP BY device_uuid, kernel_variant, week
)
SELECT nights.night, nights.device, nights.device_uuid, nights.kernel_variant, nights.cuda_ms_median,
       nights.wall_ms_median, weeks.week, weeks.week_median_ms, weeks.nights AS nights_of_week,
       100 * (nights.replay_ms / weeks.week_median_ms - 1) AS off_week_percent
FROM nights
-- The conditions with coalesce follow from the last two, but can be hashed.
LEFT JOIN weeks
    ON weeks.week = nights.week
    AND coalesce(weeks.device_uuid, '') = coalesce(nights.device_uuid, '')
    AND coalesce(weeks.kernel_variant, '') = coalesce(nights.kernel_variant, '')
    AND weeks.device_uuid IS NOT DISTINCT FROM nights.device_uuid
    AND weeks.kernel_variant IS NOT DISTINCT FROM nights.kernel_variant
ORDER BY nights.device_uuid, nights.started_at;
