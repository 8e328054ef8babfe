-- Back to workloads that leave nothing but predictions. Figures of trials go; rounds of them stay, as runs keep theirs.

DROP TABLE memory_tensor;
DROP TABLE memory_storage;
DROP TABLE task_memory;
DROP TABLE qualification_case;
DROP TABLE qualification;
DROP TABLE run_setting;

ALTER TABLE validation
    DROP COLUMN state_hashes,
    DROP COLUMN replay_states_equal,
    DROP COLUMN reference_state_name,
    DROP COLUMN reference_state_expected_sha256,
    DROP COLUMN reference_state_found_sha256;

ALTER TABLE round
    DROP CONSTRAINT round_finite_check,
    DROP COLUMN calibration_ms,
    ADD CONSTRAINT round_finite_check
        CHECK (greatest(cuda_ms, wall_ms, gross_mj, adjusted_mj, idle_before_w, idle_after_w, average_power_w,
            tick_period_s, read_latency_s, counter_j, integrated_j, meters_relative_difference,
            power_integral_mj, sham_adjusted_mj, first_reading_s, first_reading_mj, last_reading_s,
            last_reading_mj) < 'Infinity' AND least(cuda_ms, wall_ms, gross_mj, adjusted_mj, idle_before_w,
            idle_after_w, average_power_w, tick_period_s, read_latency_s, counter_j, integrated_j,
            meters_relative_difference, power_integral_mj, sham_adjusted_mj, first_reading_s,
            first_reading_mj, last_reading_s, last_reading_mj) > '-Infinity');

-- Nothing older has a word for these figures: checks of them go, and alerts keep their text without them.
DELETE FROM check_result WHERE unit IN ('bytes', 'checks', 'hashes');
UPDATE alert SET value = NULL, baseline_value = NULL, unit = NULL WHERE unit IN ('bytes', 'checks', 'hashes');
ALTER TABLE check_result
    DROP CONSTRAINT check_result_unit_check,
    ADD CONSTRAINT check_result_unit_check
        CHECK (unit IN ('predictions', 'mJ', 'J', 'ms', 's', 'W', 'ratio', 'J per 10^12 operations', 'nights', 'versions'));
ALTER TABLE alert
    DROP CONSTRAINT alert_unit_check,
    ADD CONSTRAINT alert_unit_check
        CHECK (unit IN ('predictions', 'mJ', 'J', 'ms', 's', 'W', 'ratio', 'J per 10^12 operations', 'nights', 'versions'));

DELETE FROM run_energy WHERE figure = 'trial';
DELETE FROM round_energy WHERE figure = 'trial';
ALTER TABLE run_energy
    DROP CONSTRAINT run_energy_figure_check,
    ADD CONSTRAINT run_energy_figure_check CHECK (figure IN ('classic', 'aligned', 'audited', 'interleaved'));
ALTER TABLE round_energy
    DROP CONSTRAINT round_energy_figure_check,
    ADD CONSTRAINT round_energy_figure_check CHECK (figure IN ('classic', 'aligned', 'audited', 'interleaved'));
COMMENT ON COLUMN run_energy.figure IS 'How it was measured: classic, aligned, audited or interleaved';
COMMENT ON COLUMN round_energy.figure IS 'How it was measured: classic, aligned, audited or interleaved';
