-- Predictions that disagree most often
-- Which queries of which draws were answered differently from the frozen predictions, how often, and with what: those
-- on the edge between two classes come first.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif
-- top (integer): how many queries
\if :{?top} \else \set top '20' \endif

SELECT v.draw, m.index AS query_index, count(*) AS runs, count(DISTINCT n.device_uuid) AS boards,
       min(m.expected) AS expected, string_agg(DISTINCT m.found::text, ', ') AS found,
       min(n.night) AS first_night, max(n.night) AS last_night
FROM nightly AS n
JOIN validation AS v USING (run_id),
    jsonb_to_recordset(v.mismatches) AS m (index integer, expected integer, found integer)
WHERE n.workload = :'workload'
  AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND v.agreed < v.total
GROUP BY n.payload, v.draw, m.index
ORDER BY runs DESC, v.draw, m.index
LIMIT :'top'::integer;
