"""For every constraint of the results database, a statement that it refuses."""

from __future__ import annotations

ENUMS = {
    "alert": ("direction", "outcome", "state", "unit"),
    "alert_event": ("channel", "event"),
    "check_result": ("direction", "unit", "verdict"),
    "device": ("kind",),
    "round": ("outcome", "protocol"),
    "round_energy": ("figure",),
    "round_trace": ("power_kind",),
    "run": ("energy_trust", "outcome", "protocol", "trigger"),
    "run_energy": ("figure",),
    "telemetry": ("outcome",),
    "telemetry_gate": ("at", "gate"),
    "telemetry_trace": ("power_kind",),
    "validation": ("outcome",),
    "withdrawal": ("scope",),
}
HASHES = {
    "environment": ("fingerprint_sha256",),
    "payload": ("manifest_sha256",),
    "payload_draw": ("frozen_prediction_sha256", "payload_sha256"),
    "round": ("kernel_ptx_sha256",),
    "run": ("kernel_ptx_sha256", "record_sha256"),
    "source_state": ("fingerprint_sha256", "sources_sha256"),
    "validation": ("payload_sha256", "predictions_int32_sha256"),
}
UPDATES = {
    "alert_acknowledged_at_check": "state = 'muted', acknowledged_by = 'a', acknowledged_reason = 'b', "
    "acknowledged_at = opened_at, muted_until = opened_at - interval '1 s'",
    "alert_acknowledged_check": "acknowledged_by = 'a'",
    "alert_acknowledged_reason_check": "state = 'acknowledged', acknowledged_by = ' ', acknowledged_reason = 'b', "
    "acknowledged_at = now()",
    "alert_device_id_check": "device_id = 0",
    "alert_event_author_check": "author = ' '",
    "alert_event_delivery_check": "channel = 'smtp'",
    "alert_event_night_check": "night = now(), run_id = (SELECT run_id FROM run LIMIT 1)",
    "alert_figures_check": "unit = NULL",
    "alert_last_seen_at_check": "last_seen_at = opened_at - interval '1 s'",
    "alert_life_cycle_check": "state = 'acknowledged'",
    "alert_occurrences_check": "occurrences = 0",
    "alert_resolved_at_check": "state = 'resolved'",
    "alert_runs_check": "last_run_id = NULL",
    "alert_tell_since_check": "tell_since = opened_at - interval '1 s'",
    "alert_text_check": "message = ' '",
    "baseline_energy_trust_check": "energy_trust = 'failed'",
    "baseline_purpose_check": "for_agreement = false, for_time = false, for_energy = false",
    "baseline_reason_check": "reason = ' '",
    "baseline_retired_at_check": "retired_at = accepted_at - interval '1 s'",
    "baseline_retired_by_check": "retired_by = 'a', retired_reason = 'b'",
    "baseline_retired_check": "retired_at = now(), retired_by = 'a'",
    "baseline_retired_reason_check": "retired_at = now(), retired_by = ' ', retired_reason = 'b'",
    "check_result_baseline_spread_check": "baseline_low = baseline_high + 1",
    "check_result_details_object_check": "details = '[]'",
    "check_result_step_check": "step = -1",
    "device_compute_capability_check": "compute_capability = '8'",
    "device_names_check": "uuid = ' '",
    "device_size_check": "multiprocessors = 0",
    "environment_packages_object_check": "packages = '[]'",
    "payload_draw_draw_check": "draw = -1 WHERE draw = 0",
    "payload_name_check": "name = '../original'",
    "round_arm_check": "arm = ' '",
    "round_counters_object_check": "counters = '[]'",
    "round_cuda_ms_check": "cuda_ms = 0",
    "round_cuda_ms_reason_check": "cuda_ms = NULL",
    "round_earlier_attempts_check": "earlier_attempts = '{}'",
    "round_energy_degrees_of_freedom_check": "degrees_of_freedom = 0",
    "round_energy_interval_check": "low_mj = high_mj + 1",
    "round_energy_reason_check": "adjusted_mj = NULL",  # of the table round
    "round_energy_subject_check": "subject = ' '",
    "round_energy_uncertainty_check": "drift_mj = -0.1",
    "round_inject_check": "inject = ' '",
    "round_gross_mj_check": "gross_mj = -0.1",
    "round_meters_check": "integrated_j = NULL",
    "round_meters_relative_difference_check": "meters_relative_difference = -1.1",
    "round_power_check": "idle_after_w = -0.1",
    "round_power_integral_mj_check": "counter_j = NULL, integrated_j = NULL, meters_relative_difference = NULL",
    "round_read_latency_s_check": "read_latency_s = -1",
    "round_reason_check": "valid = false",
    "round_repeats_check": "repeats = 0",
    "round_round_check": "round = -1 WHERE round = 0",
    "round_step_check": "step = 2",
    "round_tick_period_s_check": "tick_period_s = 0",
    "round_trace_error_check": "error_code = 'x'",
    "round_trace_period_s_check": "period_s = 0",
    "round_valid_check": "outcome = 'invalid_measurement', reason_code = 'x'",
    "round_wall_ms_check": "wall_ms = 0",
    "run_adjusted_mj_check": "adjusted_mj_min = NULL",
    "run_adjusted_mj_median_check": "adjusted_mj_median = adjusted_mj_max + 1",
    "run_adjusted_mj_sample_sd_check": "adjusted_mj_sample_sd = -1",
    "run_agreed_check": "agreed = NULL",
    "run_completed_at_check": "completed_at = started_at - interval '1 s'",
    "run_confirmation_check": "confirmation_rounds = 0",
    "run_confirmation_looks_array_check": (
        "confirmation_rounds = 0, confirmation_reason_code = 'x', confirmation_reason_message = 'x', "
        "confirmation_looks = '{}'"
    ),
    "run_confirmation_rounds_check": (
        "confirmation_rounds = rounds_expected + 1, confirmation_reason_code = 'x', "
        "confirmation_reason_message = 'x', confirmation_looks = '[]'"
    ),
    "run_dag_id_dag_run_id_key": "dag_run_id = 'the same'",
    "run_device_correct_check": "device_correct = total + 1",
    "run_draws_validated_check": "draws_validated = draws_expected + 1",
    "run_energy_detectable_mj_check": "detectable_mj = -1",
    "run_energy_median_mj_check": "median_mj = max_mj + 1",
    "run_energy_rounds_check": "rounds = 0, sample_sd_mj = NULL",
    "run_energy_sample_sd_mj_check": "sample_sd_mj = -1",
    "run_energy_spread_check": "rounds = 1",
    "run_energy_subject_check": "subject = ' '",
    "run_exit_code_check": "verdict = 'ok'",
    "run_gross_mj_median_check": "gross_mj_median = -1",
    "run_inject_check": "inject = 'throttle', seed = NULL",
    "run_names_check": "dag_id = ' '",
    "run_negative_adjusted_rounds_check": "negative_adjusted_rounds = rounds_valid + 1",
    "run_params_object_check": "params = '[]'",
    "run_provenance_object_check": "provenance = '[]'",
    "run_reason_check": "outcome = 'regression', reason_code = NULL",
    "run_reference_correct_check": "reference_correct = total + 1",
    "run_rounds_valid_check": "rounds_valid = rounds_expected + 1",
    "run_seed_check": "seed = -1",
    "run_times_check": "wall_ms_median = 0",
    "run_verdict_check": "verdict = 'fine', exit_code = 0",
    "run_verdict_exit_code_check": "verdict = 'ok', exit_code = 1",
    "source_state_sources_object_check": "sources = '[]'",
    "telemetry_errors_check": "reference_largest_error = -1",
    "telemetry_gate_bounds_check": "low = high + 1",
    "telemetry_gate_reason_check": "passed = NULL",
    "telemetry_gate_unit_check": "unit = ' '",
    "telemetry_idle_complete_check": "idle_power_w = NULL WHERE moment = 'before'",
    "telemetry_moment_check": "moment = 'during' WHERE moment = 'after'",
    "telemetry_power_limit_w_check": "readings = jsonb_set(readings, '{state_before,power_limit_w}', '0')",
    "telemetry_read_latency_s_check": "read_latency_s = -1",
    "telemetry_readings_object_check": "readings = '[]'",
    "telemetry_reason_check": "outcome = 'invalid_measurement'",
    "telemetry_reference_complete_check": "reference_energy_j = NULL",
    "telemetry_reference_size_check": "reference_repeats = 0",
    "telemetry_reference_work_check": "reference_duration_s = 0",
    "telemetry_tick_period_s_check": "tick_period_s = 0",
    "telemetry_trace_error_check": "error_message = 'x'",
    "telemetry_trace_period_s_check": "period_s = 0",
    "validation_agreed_check": "agreed = total + 1",
    "validation_all_agreed_check": """agreed = total - 1, mismatches = '[{"index": 1, "expected": 2, "found": 3}]'""",
    "validation_case_name_check": "case_name = ' ' WHERE draw = 0",
    "validation_device_correct_check": "device_correct = total + 1",
    "validation_draw_check": "draw = -1 WHERE draw = 0",
    "validation_duration_s_check": "duration_s = -1",
    "validation_mismatches_array_check": "mismatches = '{}'",
    "validation_mismatches_check": "mismatches = '[{}]'",
    "validation_reason_check": "outcome = 'regression'",
    "validation_reference_correct_check": "reference_correct = total + 1",
    "validation_run_id_draw_key": "draw = 1",
    "withdrawal_figures_check": "figures = ' '",
    "withdrawal_reason_check": "withdrawn_by = ' '",
    "withdrawal_successor_check": "successor_run_id = run_id",
}
INSERTS = {
    "device_kind_uuid_name_key": "INSERT INTO device (kind, uuid, name) SELECT kind, uuid, name FROM device",
    "environment_fingerprint_sha256_key": "INSERT INTO environment (fingerprint_sha256, environment_class, python, "
    "platform, packages) SELECT fingerprint_sha256, 'x', '3', 'p', '{}' FROM environment",
    "payload_name_manifest_sha256_key": "INSERT INTO payload (name, manifest_sha256) "
    "SELECT name, manifest_sha256 FROM payload",
    "source_state_fingerprint_sha256_key": "INSERT INTO source_state (fingerprint_sha256, sources) "
    "SELECT fingerprint_sha256, '{}' FROM source_state",
}
TARGETS_OF_REFERENCES = {"run_baseline_key", "environment_environment_id_environment_class_key"}
"""Unique by the key they contain; they are there to be referred to."""


def statements(tables_of: dict[str, str]) -> dict[str, str]:
    """Constraint to the statement that it refuses; ``tables_of`` names the table of each constraint."""
    found = {name: f"UPDATE {tables_of.get(name, 'nowhere')} SET {change}" for name, change in UPDATES.items()}
    for columns, wrong in ((ENUMS, "moon"), (HASHES, "ABC")):
        found |= {
            f"{table}_{column}_check": f"UPDATE {table} SET {column} = '{wrong}'"
            for table, names in columns.items()
            for column in names
        }
    return found | INSERTS
