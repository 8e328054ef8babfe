-- First night on which a draw disagreed
-- For every draw that ever gave another prediction than the frozen one: the first night on which it did, with the
-- predictions as index, expected and found.
--
-- draw (integer): one draw; empty: every one
\if :{?draw} \else \set draw '' \endif
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT DISTINCT ON (v.payload, v.draw) v.payload, v.draw, v.night, v.device, v.device_uuid, v.kernel_variant, v.agreed,
       v.total,
       (SELECT string_agg(format('%s: %s became %s', m.index, m.expected, m.found), ', ' ORDER BY m.index)
        FROM jsonb_to_recordset(v.mismatches) AS m (index integer, expected integer, found integer)) AS predictions,
       v.dag_run_id
FROM validation_history AS v
WHERE v.workload = :'workload'
  AND (:'device' = '' OR v.device_uuid = :'device' OR v.device = :'device')
  AND v.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND v.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND (:'draw' = '' OR v.draw = nullif(:'draw', '')::integer)
  AND v.trigger <> 'import'
  AND v.agreed < v.total
ORDER BY v.payload, v.draw, v.started_at, v.device_uuid;
