-- Nights that did not run
-- Days without a scheduled run since the very first one, as gaps, with how much was run by hand in them.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night; infinity: today
\if :{?until} \else \set until 'infinity' \endif

WITH ran AS (
    SELECT n.night, bool_or(n.trigger = 'scheduled') AS scheduled,
           count(*) FILTER (WHERE n.trigger <> 'scheduled') AS by_hand
    FROM nightly AS n
    WHERE n.workload = :'workload'
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
    GROUP BY n.night
), first_scheduled AS (
    SELECT min(n.night) AS night FROM nightly AS n WHERE n.workload = :'workload' AND n.trigger = 'scheduled'
), calendar AS (
    SELECT day::date AS night
    FROM first_scheduled,
        generate_series(
            CASE WHEN first_scheduled.night IS NOT NULL
                THEN greatest(:'since'::date, first_scheduled.night) END::timestamp,
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
