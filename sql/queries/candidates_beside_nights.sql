-- Candidates beside the nights of their board
-- Energy and time of each kernel that was tried, alone and measured as nights are, beside the last night before of the
-- kernel that it was held against; and the words of its comparison, in which the two took turns within seconds.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT c.night, c.device, c.device_uuid, c.spec, left(c.commit, 12) AS commit, c.kernel_variant,
       left(c.kernel_ptx_sha256, 12) AS kernel, left(c.pinned_ptx_sha256, 12) AS pinned_kernel,
       c.predictions_word, c.time_word, c.energy_word, c.time_effect_percent, c.energy_effect_percent,
       c.adjusted_mj_median, n.night AS night_before, n.adjusted_mj_median AS night_adjusted_mj,
       100 * (c.adjusted_mj_median - n.adjusted_mj_median) / nullif(abs(n.adjusted_mj_median), 0)
           AS adjusted_difference_percent,
       c.cuda_ms_median, n.cuda_ms_median AS night_cuda_ms,
       100 * (c.cuda_ms_median / n.cuda_ms_median - 1) AS cuda_ms_difference_percent,
       c.energy_trust, c.promoted_at IS NOT NULL AS promoted, c.dag_run_id
FROM candidate_runs AS c
LEFT JOIN LATERAL (
    SELECT nightly.night, nightly.cuda_ms_median,
           CASE WHEN nightly.energy_trust <> 'failed' THEN nightly.adjusted_mj_median END AS adjusted_mj_median
    FROM nightly
    JOIN run USING (run_id)
    WHERE nightly.workload = c.workload
      AND nightly.device_uuid = c.device_uuid
      AND nightly.payload = c.payload
      AND nightly.protocol = c.protocol
      AND nightly.started_at < c.started_at
      AND run.kernel_ptx_sha256 = c.pinned_ptx_sha256
      AND nightly.rounds_valid > 0
      AND nightly.inject IS NOT DISTINCT FROM c.inject
      AND nightly.withdrawn IS NULL
    ORDER BY nightly.started_at DESC
    LIMIT 1
) AS n ON TRUE
WHERE c.workload = :'workload'
  AND (:'device' = '' OR c.device_uuid = :'device' OR c.device = :'device')
  AND c.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND c.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
ORDER BY c.started_at DESC, c.device_uuid, c.run_id;
