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

WITH runs AS (
    -- Of tables and over keys: a window over all of history has to be cheap.
    SELECT run.run_id, run.workload, run.device_id, run.payload_id, run.started_at, run.kernel_variant, run.dag_run_id,
           device.name AS device, device.uuid AS device_uuid,
           lag(run.run_id) OVER board AS run_before, lag(run.started_at) OVER board AS started_before
    FROM run
    JOIN device USING (device_id)
    WHERE run.workload = :'workload'
      AND (:'device' = '' OR device.uuid = :'device' OR device.name = :'device')
      AND run.started_at >= (:'since'::timestamp - interval '1 year') AT TIME ZONE 'UTC'
      AND run.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
      AND run.trigger <> 'import'
      AND NOT run.candidate
    WINDOW board AS (PARTITION BY run.device_id, run.payload_id ORDER BY run.started_at)
)
SELECT (runs.started_at AT TIME ZONE 'UTC')::date AS night, (before.started_at AT TIME ZONE 'UTC')::date AS night_before,
       runs.device, runs.device_uuid, runs.kernel_variant, v.draw, before.agreed AS agreed_before, v.agreed, v.total,
       left(before.sha256, 12) AS sha256_before, left(v.predictions_int32_sha256, 12) AS sha256, runs.dag_run_id
FROM runs
JOIN validation AS v USING (run_id)
LEFT JOIN validation AS b
    ON b.run_id = runs.run_before AND b.case_name = v.case_name AND b.predictions_int32_sha256 IS NOT NULL
LEFT JOIN LATERAL (
    -- Only where the run before has no predictions of the draw: the latest ones before it.
    SELECT earlier.predictions_int32_sha256 AS sha256, earlier.agreed, run.started_at
    FROM run
    JOIN validation AS earlier ON earlier.run_id = run.run_id AND earlier.case_name = v.case_name
    WHERE b.run_id IS NULL
      AND run.workload = runs.workload
      AND run.device_id = runs.device_id
      AND run.payload_id = runs.payload_id
      AND run.started_at < runs.started_at
      AND run.started_at >= (:'since'::timestamp - interval '1 year') AT TIME ZONE 'UTC'
      AND run.trigger <> 'import'
      AND NOT run.candidate
      AND earlier.predictions_int32_sha256 IS NOT NULL
    ORDER BY run.started_at DESC
    LIMIT 1
) AS known ON TRUE
CROSS JOIN LATERAL (
    SELECT coalesce(b.predictions_int32_sha256, known.sha256) AS sha256, coalesce(b.agreed, known.agreed) AS agreed,
           CASE WHEN b.run_id IS NULL THEN known.started_at ELSE runs.started_before END AS started_at
) AS before
WHERE runs.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND v.predictions_int32_sha256 IS DISTINCT FROM b.predictions_int32_sha256
  AND v.predictions_int32_sha256 <> before.sha256
ORDER BY runs.started_at DESC, runs.device_uuid, v.draw;
