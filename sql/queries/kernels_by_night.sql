-- Two kernels against each other, night by night
-- Energy and time of two kernels on every night on which both ran on the same board with the same payload and
-- protocol; of several runs in a night the last counts.
--
-- first (text): variant of the one kernel, or the beginning of the sha256 of its PTX
\if :{?first} \else \set first 'class_blocks' \endif
-- second (text): variant of the other kernel, or the beginning of the sha256 of its PTX
\if :{?second} \else \set second 'fused' \endif
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- device (text): one board, by device_uuid or model name; empty: every one
\if :{?device} \else \set device '' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

WITH nights AS (
    SELECT n.night, n.device, n.device_uuid, n.payload, n.protocol, n.started_at, n.energy_trust,
           n.withdrawn, n.adjusted_mj_median, n.cuda_ms_median, run.kernel_ptx_sha256, n.kernel_variant
    FROM nightly AS n
    JOIN run USING (run_id)
    WHERE n.workload = :'workload'
      AND (:'device' = '' OR n.device_uuid = :'device' OR n.device = :'device')
      AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
      AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
      AND n.rounds_valid > 0
), one AS (
    SELECT DISTINCT ON (night, device_uuid, payload, protocol) *
    FROM nights
    WHERE kernel_variant = :'first' OR starts_with(kernel_ptx_sha256, :'first')
    ORDER BY night, device_uuid, payload, protocol, started_at DESC
), other AS (
    SELECT DISTINCT ON (night, device_uuid, payload, protocol) *
    FROM nights
    WHERE kernel_variant = :'second' OR starts_with(kernel_ptx_sha256, :'second')
    ORDER BY night, device_uuid, payload, protocol, started_at DESC
)
SELECT night, one.device, device_uuid, payload, protocol, one.adjusted_mj_median AS first_mj,
       other.adjusted_mj_median AS second_mj, other.adjusted_mj_median - one.adjusted_mj_median AS difference_mj,
       100 * (other.adjusted_mj_median - one.adjusted_mj_median) / nullif(abs(one.adjusted_mj_median), 0)
           AS difference_percent,
       one.cuda_ms_median AS first_ms, other.cuda_ms_median AS second_ms,
       100 * (other.cuda_ms_median / one.cuda_ms_median - 1) AS time_difference_percent,
       'verified' = ALL (ARRAY[one.energy_trust, other.energy_trust])
           AND num_nonnulls(one.withdrawn, other.withdrawn) = 0 AS usable
FROM one
JOIN other USING (night, device_uuid, payload, protocol)
ORDER BY device_uuid, night, payload, protocol;
