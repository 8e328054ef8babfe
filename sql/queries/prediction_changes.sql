-- Nights on which the predictions of a draw changed
-- Where the hash of the predictions of a draw is another than on the night before on the same board: also a change
-- that brings them back, or that exchanges one wrong answer for another.
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
    SELECT v.night, v.started_at, v.device, v.device_uuid, v.kernel_variant, v.draw, v.agreed, v.total,
           v.predictions_int32_sha256 AS sha256,
           lag(v.predictions_int32_sha256) OVER board_draw AS sha256_before,
           lag(v.night) OVER board_draw AS night_before, lag(v.agreed) OVER board_draw AS agreed_before, v.dag_run_id
    FROM validation_history AS v
    WHERE v.workload = :'workload'
      AND (:'device' = '' OR v.device_uuid = :'device' OR v.device = :'device')
      AND v.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
      AND v.trigger <> 'import'
      AND v.predictions_int32_sha256 IS NOT NULL
    WINDOW board_draw AS (PARTITION BY v.device_uuid, v.payload, v.draw ORDER BY v.started_at)
)
SELECT night, night_before, device, device_uuid, kernel_variant, draw, agreed_before, agreed, total,
       left(sha256_before, 12) AS sha256_before, left(sha256, 12) AS sha256, dag_run_id
FROM hashes
WHERE sha256 <> sha256_before
  AND started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
ORDER BY started_at DESC, device_uuid, draw;
