-- Two kernels over all their common nights
-- On how many common nights of each board the second kernel needed less energy or time than the first, and the median
-- difference; only nights whose energy is verified on both sides count for energy.
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
    SELECT n.night, n.device, n.device_uuid, n.payload, n.protocol, n.started_at, n.cuda_ms_median,
           CASE WHEN n.energy_trust = 'verified' AND n.withdrawn IS NULL AND n.inject IS NULL
               THEN n.adjusted_mj_median END AS verified_mj,
           run.kernel_ptx_sha256, n.kernel_variant
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
), pairs AS (
    SELECT one.device, device_uuid, night, other.verified_mj - one.verified_mj AS difference_mj,
           100 * (other.verified_mj - one.verified_mj) / nullif(abs(one.verified_mj), 0) AS difference_percent,
           100 * (other.cuda_ms_median / one.cuda_ms_median - 1) AS time_difference_percent
    FROM one
    JOIN other USING (night, device_uuid, payload, protocol)
)
SELECT device, device_uuid, count(*) AS common_nights, count(difference_mj) AS verified_nights,
       count(*) FILTER (WHERE difference_mj < 0) AS second_needs_less_energy,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY difference_mj) AS median_difference_mj,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY difference_percent) AS median_difference_percent,
       count(*) FILTER (WHERE time_difference_percent < 0) AS second_is_faster,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY time_difference_percent) AS median_time_difference_percent,
       min(night) AS first_night, max(night) AS last_night
FROM pairs
GROUP BY device, device_uuid
ORDER BY device_uuid;
