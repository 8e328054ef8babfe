-- Nights that did not run
-- Days without a scheduled run between the first one and the last night asked for, as gaps, with what was run by hand
-- in them.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night; infinity: today
\if :{?until} \else \set until 'infinity' \endif

WITH ran AS (
    SELECT n.night, bool_or(n.trigger = 'scheduled') AS scheduled, count(*) FILTER (WHERE n.trigger <> 'scheduled') AS by_hand
    FROM nightly AS n
    WHERE n.workload = :'workload'
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
    GROUP BY n.night
), calendar AS (
    SELECT day::date AS night
    FROM generate_series(
        (SELECT min(night) FROM ran WHERE scheduled)::timestamp,
        least(:'until'::date, (now() AT TIME ZONE 'UTC')::date)::timestamp,
        interval '1 day'
    ) AS day
), missing AS (
    SELECT calendar.night, coalesce(ran.by_hand, 0) AS by_hand,
           calendar.night - (row_number() OVER (ORDER BY calendar.night))::integer AS gap
    FROM calendar
    LEFT JOIN ran USING (night)
    WHERE ran.scheduled IS NOT TRUE
)
SELECT min(night) AS first_night, max(night) AS last_night, count(*) AS nights, sum(by_hand)::bigint AS runs_by_hand
FROM missing
GROUP BY gap
ORDER BY first_night;
