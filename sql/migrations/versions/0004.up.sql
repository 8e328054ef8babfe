-- What long questions over all of history, and one run by its name, are asked with.

-- A run by the name that Airflow gives it, whichever DAG it is of.
CREATE INDEX run_dag_run_id_idx ON run (dag_run_id);
-- The power limit of a run: two of them are compared for every night that is asked for its changes.
CREATE INDEX telemetry_power_limit_idx ON telemetry (run_id) INCLUDE (power_limit_w) WHERE moment = 'before';
-- The run before counts only where its payload is the same.
DROP INDEX run_workload_device_id_started_at_run_id_idx;
CREATE INDEX run_workload_device_id_started_at_run_id_idx
    ON run (workload, device_id, started_at, run_id) INCLUDE (payload_id);

-- The outermost readings of a round: to unpack all its readings (4 kB) for them took most of the time of long questions.
ALTER TABLE round
    ADD COLUMN first_reading_s DOUBLE PRECISION
        GENERATED ALWAYS AS ((counters #>> '{idle_before,start,time_s}')::double precision) STORED,
    ADD COLUMN first_reading_mj DOUBLE PRECISION
        GENERATED ALWAYS AS ((counters #>> '{idle_before,start,energy_mj}')::double precision) STORED,
    ADD COLUMN last_reading_s DOUBLE PRECISION
        GENERATED ALWAYS AS ((counters #>> '{idle_after,end,time_s}')::double precision) STORED,
    ADD COLUMN last_reading_mj DOUBLE PRECISION
        GENERATED ALWAYS AS ((counters #>> '{idle_after,end,energy_mj}')::double precision) STORED,
    DROP CONSTRAINT round_finite_check,
    ADD CONSTRAINT round_finite_check
        CHECK (greatest(cuda_ms, wall_ms, gross_mj, adjusted_mj, idle_before_w, idle_after_w, average_power_w,
            tick_period_s, read_latency_s, counter_j, integrated_j, meters_relative_difference, power_integral_mj,
            sham_adjusted_mj, first_reading_s, first_reading_mj, last_reading_s, last_reading_mj) < 'Infinity' AND
            least(cuda_ms, wall_ms, gross_mj, adjusted_mj, idle_before_w, idle_after_w, average_power_w,
            tick_period_s, read_latency_s, counter_j, integrated_j, meters_relative_difference, power_integral_mj,
            sham_adjusted_mj, first_reading_s, first_reading_mj, last_reading_s, last_reading_mj) > '-Infinity');

COMMENT ON COLUMN round.first_reading_s IS 'Moment of the reading before the first idle window, s (taken from counters)';
COMMENT ON COLUMN round.first_reading_mj IS 'Counter before the first idle window, mJ since driver load (taken from counters)';
COMMENT ON COLUMN round.last_reading_s IS 'Moment of the reading after the last idle window, s (taken from counters)';
COMMENT ON COLUMN round.last_reading_mj IS 'Counter after the last idle window, mJ since driver load (taken from counters)';
