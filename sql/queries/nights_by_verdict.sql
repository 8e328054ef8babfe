-- Nights by verdict and month
-- How many nights of each month ended with each verdict, and what share of the month that is.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT date_trunc('month', n.night)::date AS month, n.verdict, count(*) AS nights,
       100 * count(*)::double precision / sum(count(*)) OVER (PARTITION BY date_trunc('month', n.night))
           AS percent_of_month
FROM nightly AS n
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
GROUP BY date_trunc('month', n.night), n.verdict
ORDER BY month, nights DESC, n.verdict;
