-- Back to energy without alerts and withdrawals, which go; the withdrawal of a shipped record comes back with the
-- next start. Nothing else is lost but by whom and why a baseline was ended.

GRANT UPDATE ON device, environment, source_state, payload, payload_draw, validation, round, baseline, run_energy,
    round_energy, round_trace, telemetry, telemetry_trace, telemetry_gate TO nightly_writer;
REVOKE UPDATE (retired_at) ON baseline FROM nightly_writer;

DROP TRIGGER run_is_history ON run;
DROP TRIGGER validation_is_history ON validation;
DROP TRIGGER round_is_history ON round;
DROP TRIGGER run_energy_is_history ON run_energy;
DROP TRIGGER round_energy_is_history ON round_energy;
DROP TRIGGER telemetry_is_history ON telemetry;
DROP TRIGGER telemetry_gate_is_history ON telemetry_gate;
DROP TRIGGER baseline_is_not_withdrawn ON baseline;

DROP TABLE alert_event;
DROP TABLE alert;
DROP TABLE withdrawal;

DROP FUNCTION run_is_history;
DROP FUNCTION part_of_run_is_history;
DROP FUNCTION baseline_is_not_withdrawn;

ALTER TABLE round RESET (toast_tuple_target);
ALTER TABLE telemetry RESET (toast_tuple_target);

DROP INDEX round_invalid_idx;
DROP INDEX run_night_idx;
DROP INDEX run_workload_device_id_started_at_run_id_idx;
CREATE INDEX run_workload_device_id_started_at_idx ON run (workload, device_id, started_at);

ALTER TABLE device
    DROP CONSTRAINT device_compute_capability_check,
    DROP CONSTRAINT device_names_check,
    DROP CONSTRAINT device_size_check;
ALTER TABLE environment
    DROP CONSTRAINT environment_packages_object_check;
ALTER TABLE payload
    DROP CONSTRAINT payload_name_check;
ALTER TABLE source_state
    DROP CONSTRAINT source_state_sources_object_check;
ALTER TABLE run
    DROP CONSTRAINT run_adjusted_mj_check,
    DROP CONSTRAINT run_adjusted_mj_median_check,
    DROP CONSTRAINT run_adjusted_mj_sample_sd_check,
    DROP CONSTRAINT run_finite_check,
    DROP CONSTRAINT run_gross_mj_median_check,
    DROP CONSTRAINT run_names_check,
    DROP CONSTRAINT run_negative_adjusted_rounds_check,
    DROP CONSTRAINT run_params_object_check,
    DROP CONSTRAINT run_protocol_check,
    DROP CONSTRAINT run_provenance_object_check,
    DROP CONSTRAINT run_times_check,
    DROP CONSTRAINT run_verdict_exit_code_check;
ALTER TABLE baseline
    DROP CONSTRAINT baseline_retired_by_check,
    DROP CONSTRAINT baseline_retired_check,
    DROP CONSTRAINT baseline_retired_reason_check,
    DROP COLUMN retired_by,
    DROP COLUMN retired_reason;
ALTER TABLE round
    DROP CONSTRAINT round_arm_check,
    DROP CONSTRAINT round_counters_object_check,
    DROP CONSTRAINT round_energy_reason_check,
    DROP CONSTRAINT round_finite_check,
    DROP CONSTRAINT round_meters_relative_difference_check,
    DROP CONSTRAINT round_power_check,
    DROP CONSTRAINT round_protocol_check,
    DROP COLUMN kernel_ptx_sha256,
    DROP COLUMN inject;
ALTER TABLE run_energy
    DROP CONSTRAINT run_energy_finite_check;
ALTER TABLE telemetry
    DROP CONSTRAINT telemetry_errors_check,
    DROP CONSTRAINT telemetry_finite_check,
    DROP CONSTRAINT telemetry_power_limit_w_check,
    DROP CONSTRAINT telemetry_readings_object_check,
    DROP COLUMN reference_low_duty_joules_per_1e12_operations,
    DROP COLUMN power_limit_w;
DELETE FROM telemetry_gate WHERE gate = 'same_conditions';
ALTER TABLE telemetry_gate
    DROP CONSTRAINT telemetry_gate_gate_check,
    ADD CONSTRAINT telemetry_gate_gate_check CHECK (gate IN (
        'reference_load', 'meters_agree', 'sham_window', 'round_spread', 'sampling', 'exclusive', 'output_verified'
    )),
    DROP CONSTRAINT telemetry_gate_finite_check,
    DROP CONSTRAINT telemetry_gate_unit_check;
ALTER TABLE validation
    DROP CONSTRAINT validation_all_agreed_check,
    DROP CONSTRAINT validation_case_name_check,
    DROP CONSTRAINT validation_duration_s_check,
    DROP CONSTRAINT validation_finite_check,
    DROP CONSTRAINT validation_mismatches_array_check,
    DROP CONSTRAINT validation_mismatches_check;
ALTER TABLE check_result
    DROP CONSTRAINT check_result_details_object_check,
    DROP CONSTRAINT check_result_finite_check,
    DROP CONSTRAINT check_result_unit_check;
ALTER TABLE round_energy
    DROP CONSTRAINT round_energy_finite_check;
ALTER TABLE round_trace
    DROP CONSTRAINT round_trace_finite_check;
ALTER TABLE telemetry_trace
    DROP CONSTRAINT telemetry_trace_finite_check;
