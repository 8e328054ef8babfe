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

SELECT v.payload, v.draw, m.index AS query_index, count(*) AS runs, count(DISTINCT v.device_uuid) AS boards,
       min(m.expected) AS expected, string_agg(DISTINCT m.found::text, ', ') AS found,
       min(v.night) AS first_night, max(v.night) AS last_night
FROM validation_history AS v,
    jsonb_to_recordset(v.mismatches) AS m (index integer, expected integer, found integer)
WHERE v.workload = :'workload'
  AND (:'device' = '' OR v.device_uuid = :'device' OR v.device = :'device')
  AND v.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND v.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND v.trigger <> 'import'
  AND v.agreed < v.total
GROUP BY v.payload, v.draw, m.index
ORDER BY runs DESC, v.payload, v.draw, m.index
LIMIT :'top'::integer;
