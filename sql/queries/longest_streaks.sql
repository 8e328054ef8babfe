-- Longest streaks without a regression
-- Runs of nights on a board between two regressions, the longest first: how many of them were ok, and which night
-- ended it.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif
-- top (integer): how many streaks
\if :{?top} \else \set top '10' \endif

WITH nights AS (
    SELECT n.night, n.started_at, n.device, n.device_uuid, n.verdict,
           count(*) FILTER (WHERE n.verdict = 'regression') OVER (PARTITION BY n.device_uuid ORDER BY n.started_at)
               AS regressions
    FROM nightly AS n
    WHERE n.workload = :'workload'
      AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
), streaks AS (
    SELECT device, device_uuid, regressions, min(night) AS first_night, max(night) AS last_night, count(*) AS nights,
           count(*) FILTER (WHERE verdict = 'ok') AS ok
    FROM nights
    WHERE verdict <> 'regression'
    GROUP BY device, device_uuid, regressions
)
SELECT streaks.device, streaks.device_uuid, streaks.first_night, streaks.last_night, streaks.nights, streaks.ok,
       ending.night AS ended_by
FROM streaks
LEFT JOIN nights AS ending
    ON ending.device_uuid IS NOT DISTINCT FROM streaks.device_uuid
    AND ending.verdict = 'regression'
    AND ending.regressions = streaks.regressions + 1
ORDER BY streaks.nights DESC, streaks.first_night DESC, streaks.device_uuid
LIMIT :'top'::integer;
