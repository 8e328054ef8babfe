-- Nights on which the predictions of a draw changed
-- Where the hash of the predictions of a draw is another than on the night before on the same board, which may lie a
-- year before the first one asked for: also a change that brings them back, or that exchanges one wrong answer for
-- another.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

WITH hashes AS (
    -- Of tables and over keys: a window over all of history has to be cheap.
    SELECT v.run_id, v.draw, v.agreed, v.total, v.predictions_int32_sha256 AS sha256, run.device_id, run.started_at,
           lag(v.predictions_int32_sha256) OVER board_draw AS sha256_before,
           lag(v.agreed) OVER board_draw AS agreed_before, lag(run.started_at) OVER board_draw AS started_before
    FROM run
    JOIN validation AS v USING (run_id)
    JOIN device USING (device_id)
    WHERE run.workload = :'workload'
      AND (:'device' = '' OR device.uuid = :'device' OR device.name = :'device')
      AND run.started_at >= (:'since'::timestamp - interval '1 year') AT TIME ZONE 'UTC'
      AND run.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
      AND run.trigger <> 'import'
      AND v.predictions_int32_sha256 IS NOT NULL
    WINDOW board_draw AS (PARTITION BY run.device_id, run.payload_id, v.draw ORDER BY run.started_at)
)
SELECT n.night, (h.started_before AT TIME ZONE 'UTC')::date AS night_before, n.device, n.device_uuid, n.kernel_variant,
       h.draw, h.agreed_before, h.agreed, h.total, left(h.sha256_before, 12) AS sha256_before,
       left(h.sha256, 12) AS sha256, n.dag_run_id
FROM hashes AS h
JOIN nightly AS n USING (run_id)
WHERE h.sha256 <> h.sha256_before
  AND h.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
ORDER BY h.started_at DESC, n.device_uuid, h.draw;
