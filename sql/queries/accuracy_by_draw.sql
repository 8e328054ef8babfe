-- Accuracy of each draw, on the device and in the reference
-- How many predictions of each draw are equal to the true label on the device, against the frozen predictions:
-- agreement is what is tested, this is what it is worth.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT v.payload, v.draw, count(*) AS runs, 100 * sum(v.agreed)::double precision / sum(v.total) AS agreed_percent,
       100 * sum(v.device_correct)::double precision / sum(v.total) AS device_correct_percent,
       100 * sum(v.reference_correct)::double precision / sum(v.total) AS reference_correct_percent,
       count(*) FILTER (WHERE v.device_correct <> v.reference_correct) AS runs_that_differ
FROM validation_history AS v
WHERE v.workload = :'workload'
  AND (:'device' = '' OR v.device_uuid = :'device' OR v.device = :'device')
  AND v.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND v.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND v.trigger <> 'import'
  AND v.total > 0
GROUP BY v.payload, v.draw
ORDER BY v.payload, v.draw;
