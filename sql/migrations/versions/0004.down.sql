-- Back to readings that are nowhere but in counters.

DROP INDEX run_dag_run_id_idx;
DROP INDEX telemetry_power_limit_idx;
DROP INDEX run_workload_device_id_started_at_run_id_idx;
CREATE INDEX run_workload_device_id_started_at_run_id_idx ON run (workload, device_id, started_at, run_id);
ALTER TABLE round
    DROP CONSTRAINT round_finite_check,
    DROP COLUMN first_reading_s,
    DROP COLUMN first_reading_mj,
    DROP COLUMN last_reading_s,
    DROP COLUMN last_reading_mj,
    ADD CONSTRAINT round_finite_check
        CHECK (greatest(cuda_ms, wall_ms, gross_mj, adjusted_mj, idle_before_w, idle_after_w, average_power_w,
            tick_period_s, read_latency_s, counter_j, integrated_j, meters_relative_difference, power_integral_mj,
            sham_adjusted_mj) < 'Infinity' AND least(cuda_ms, wall_ms, gross_mj, adjusted_mj, idle_before_w,
            idle_after_w, average_power_w, tick_period_s, read_latency_s, counter_j, integrated_j,
            meters_relative_difference, power_integral_mj, sham_adjusted_mj) > '-Infinity');
