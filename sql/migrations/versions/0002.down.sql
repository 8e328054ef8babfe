-- Back to the first night: what only the newer tables hold goes; the record files keep it.
DROP TABLE telemetry_gate;
DROP TABLE telemetry_trace;
DROP TABLE telemetry;
DROP TABLE round_trace;
DROP TABLE round_energy;
DROP TABLE run_energy;

ALTER TABLE round
    DROP COLUMN tick_period_s,
    DROP COLUMN read_latency_s,
    DROP COLUMN counter_j,
    DROP COLUMN integrated_j,
    DROP COLUMN meters_relative_difference,
    DROP COLUMN power_integral_mj,
    DROP COLUMN sham_adjusted_mj,
    DROP COLUMN earlier_attempts;
COMMENT ON COLUMN round.counters IS 'Raw readings: active and idle windows (mJ since driver load, monotonic s)';

ALTER TABLE baseline DROP CONSTRAINT baseline_run_fk, DROP COLUMN energy_trust;
ALTER TABLE run
    DROP CONSTRAINT run_baseline_key,
    ADD CONSTRAINT run_baseline_key UNIQUE (run_id, workload, payload_id, device_id, protocol, environment_id);
ALTER TABLE baseline
    ADD CONSTRAINT baseline_run_fk FOREIGN KEY (run_id, workload, payload_id, device_id, protocol, environment_id)
        REFERENCES run (run_id, workload, payload_id, device_id, protocol, environment_id);

ALTER TABLE run
    DROP COLUMN reference_joules_per_1e12_operations,
    DROP COLUMN inject,
    DROP COLUMN seed,
    DROP CONSTRAINT run_energy_trust_check;
UPDATE run SET energy_trust = 'unverified' WHERE energy_trust = 'failed';  -- the nearest word of the older schema
ALTER TABLE run ADD CONSTRAINT run_energy_trust_check CHECK (energy_trust IN ('verified', 'unverified', 'unavailable'));
COMMENT ON COLUMN run.energy_trust IS 'verified, unverified (nothing vouches for the sensor) or unavailable (no counter)';
