-- Which kernel took the place of which, and why
-- Every kernel that nights of a board were compared with, in order: what it replaced, who decided it, its commit and the
-- words of the comparison where one was tried first, and how energy and time moved.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif

SELECT k.device, k.device_uuid, k.protocol, k.environment_class, k.accepted_at, k.kernel_variant,
       left(k.kernel_ptx_sha256, 12) AS kernel, k.replaced_variant, left(k.replaced_ptx_sha256, 12) AS replaced_kernel,
       k.kernel_changed, k.promoted, k.spec,
       left(k.commit, 12) || CASE WHEN k.modified THEN ' (modified)' ELSE '' END AS commit,
       k.predictions_word, k.time_word, k.energy_word, k.time_effect_percent, k.energy_effect_percent, k.adjusted_mj_median,
       k.replaced_adjusted_mj_median, k.cuda_ms_median, k.replaced_cuda_ms_median, k.accepted_by, k.reason,
       k.retired_at, k.retired_reason, k.dag_run_id
FROM kernel_lineage AS k
WHERE k.workload = :'workload'
  AND (:'device' = '' OR k.device_uuid = :'device' OR k.device = :'device')
ORDER BY k.device_uuid, k.protocol, k.environment_class, k.accepted_at, k.baseline_id;
