-- The schema complete: withdrawals, alerts and their life cycle, and constraints that make wrong states impossible.

CREATE TABLE withdrawal (
    run_id UUID NOT NULL,
    scope TEXT NOT NULL,
    withdrawn_by TEXT NOT NULL,
    withdrawn_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    reason TEXT NOT NULL,
    successor_run_id UUID,
    figures TEXT,
    CONSTRAINT withdrawal_pk PRIMARY KEY (run_id, scope),
    CONSTRAINT withdrawal_scope_check CHECK (scope IN ('energy', 'all')),
    CONSTRAINT withdrawal_successor_check CHECK (successor_run_id <> run_id),
    CONSTRAINT withdrawal_reason_check CHECK (btrim(withdrawn_by) <> '' AND btrim(reason) <> ''),
    CONSTRAINT withdrawal_figures_check CHECK (btrim(figures) <> ''),
    CONSTRAINT withdrawal_run_id_fk FOREIGN KEY (run_id) REFERENCES run (run_id),
    CONSTRAINT withdrawal_successor_run_id_fk FOREIGN KEY (successor_run_id) REFERENCES run (run_id)
);

COMMENT ON TABLE withdrawal IS 'Runs whose energy, or which altogether, must not be used any more; they stay readable';
COMMENT ON COLUMN withdrawal.run_id IS 'The withdrawn run';
COMMENT ON COLUMN withdrawal.scope IS 'What of it must not be used any more: energy, or all of it';
COMMENT ON COLUMN withdrawal.withdrawn_by IS 'Who withdrew it';
COMMENT ON COLUMN withdrawal.withdrawn_at IS 'When that was recorded (UTC)';
COMMENT ON COLUMN withdrawal.reason IS 'Why it was withdrawn';
COMMENT ON COLUMN withdrawal.successor_run_id IS 'Run to be used instead';
COMMENT ON COLUMN withdrawal.figures IS 'The figures that were published, and what holds instead, with their units';

CREATE TABLE alert (
    alert_id INTEGER GENERATED ALWAYS AS IDENTITY,
    workload TEXT NOT NULL,
    device_id INTEGER,
    metric TEXT NOT NULL,
    direction TEXT NOT NULL,
    outcome TEXT NOT NULL,
    state TEXT NOT NULL,
    first_run_id UUID,
    last_run_id UUID,
    occurrences INTEGER NOT NULL,
    value DOUBLE PRECISION,
    baseline_value DOUBLE PRECISION,
    unit TEXT,
    baseline_id INTEGER,
    text TEXT NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    last_seen_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    acknowledged_by TEXT,
    acknowledged_at TIMESTAMP WITH TIME ZONE,
    acknowledged_reason TEXT,
    muted_until TIMESTAMP WITH TIME ZONE,
    resolved_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT alert_pk PRIMARY KEY (alert_id),
    CONSTRAINT alert_direction_check CHECK (direction IN ('lower', 'higher', 'changed', 'missing')),
    CONSTRAINT alert_outcome_check
        CHECK (outcome IN ('regression', 'bad_input', 'invalid_measurement', 'verification_mismatch',
            'infrastructure_failure')),
    CONSTRAINT alert_state_check CHECK (state IN ('open', 'acknowledged', 'muted', 'resolved')),
    CONSTRAINT alert_unit_check
        CHECK (unit IN ('predictions', 'mJ', 'J', 'ms', 's', 'W', 'ratio', 'J per 10^12 operations', 'nights', 'versions')),
    CONSTRAINT alert_text_check CHECK (btrim(workload) <> '' AND btrim(metric) <> '' AND btrim(text) <> ''),
    CONSTRAINT alert_occurrences_check CHECK (occurrences > 0),
    CONSTRAINT alert_device_id_check CHECK (device_id > 0),
    CONSTRAINT alert_figures_check CHECK (num_nonnulls(value, baseline_value) = 0 OR unit IS NOT NULL),
    CONSTRAINT alert_runs_check CHECK (first_run_id IS NULL OR last_run_id IS NOT NULL),
    CONSTRAINT alert_last_seen_at_check CHECK (last_seen_at >= opened_at),
    CONSTRAINT alert_acknowledged_check
        CHECK (num_nulls(acknowledged_by, acknowledged_at, acknowledged_reason) IN (0, 3)),
    CONSTRAINT alert_acknowledged_reason_check
        CHECK (btrim(acknowledged_by) <> '' AND btrim(acknowledged_reason) <> ''),
    CONSTRAINT alert_acknowledged_at_check CHECK (acknowledged_at >= opened_at AND acknowledged_at <= muted_until),
    CONSTRAINT alert_resolved_at_check
        CHECK ((state = 'resolved') = (resolved_at IS NOT NULL) AND resolved_at >= opened_at),
    CONSTRAINT alert_life_cycle_check
        CHECK (CASE state WHEN 'open' THEN acknowledged_at IS NULL AND muted_until IS NULL WHEN 'acknowledged' THEN
            acknowledged_at IS NOT NULL AND muted_until IS NULL WHEN 'muted' THEN acknowledged_at IS NOT NULL AND
            muted_until IS NOT NULL ELSE muted_until IS NULL OR acknowledged_at IS NOT NULL END),
    CONSTRAINT alert_device_id_fk FOREIGN KEY (device_id) REFERENCES device (device_id),
    CONSTRAINT alert_first_run_id_fk FOREIGN KEY (first_run_id) REFERENCES run (run_id),
    CONSTRAINT alert_last_run_id_fk FOREIGN KEY (last_run_id) REFERENCES run (run_id),
    CONSTRAINT alert_baseline_id_fk FOREIGN KEY (baseline_id) REFERENCES baseline (baseline_id),
    CONSTRAINT alert_finite_check
        CHECK (greatest(value, baseline_value) < 'Infinity' AND least(value, baseline_value) > '-Infinity')
);

CREATE UNIQUE INDEX alert_unresolved_key ON alert (workload, coalesce(device_id, 0), metric, direction) WHERE state <> 'resolved';
COMMENT ON TABLE alert IS 'Alerts: at most one that is not resolved a workload, device, metric and direction';
COMMENT ON COLUMN alert.alert_id IS 'Key';
COMMENT ON COLUMN alert.workload IS 'Workload';
COMMENT ON COLUMN alert.device_id IS 'Device; NULL where there was none, as of a missing night';
COMMENT ON COLUMN alert.metric IS 'What went wrong: the metric of a check, or night for one that is missing';
COMMENT ON COLUMN alert.direction IS 'Where the figure went: lower, higher, changed, or missing';
COMMENT ON COLUMN alert.outcome IS 'Class of outcome: regression, invalid_measurement, infrastructure_failure, ...';
COMMENT ON COLUMN alert.state IS 'open, acknowledged, muted (until muted_until) or resolved';
COMMENT ON COLUMN alert.first_run_id IS 'Run that opened it; NULL: no run did';
COMMENT ON COLUMN alert.last_run_id IS 'Latest run that showed it again';
COMMENT ON COLUMN alert.occurrences IS 'Nights that showed it';
COMMENT ON COLUMN alert.value IS 'Latest figure';
COMMENT ON COLUMN alert.baseline_value IS 'Figure of the baseline';
COMMENT ON COLUMN alert.unit IS 'Unit of the two figures';
COMMENT ON COLUMN alert.baseline_id IS 'Baseline compared with';
COMMENT ON COLUMN alert.text IS 'What people are told, as it was last sent';
COMMENT ON COLUMN alert.opened_at IS 'When it was opened (UTC)';
COMMENT ON COLUMN alert.last_seen_at IS 'When it was last seen (UTC)';
COMMENT ON COLUMN alert.acknowledged_by IS 'Who has seen it';
COMMENT ON COLUMN alert.acknowledged_at IS 'When it was acknowledged (UTC)';
COMMENT ON COLUMN alert.acknowledged_reason IS 'What is known of its cause';
COMMENT ON COLUMN alert.muted_until IS 'When its mute ends or ended (UTC)';
COMMENT ON COLUMN alert.resolved_at IS 'When it was resolved (UTC); NULL while it is not';

CREATE TABLE alert_event (
    alert_event_id INTEGER GENERATED ALWAYS AS IDENTITY,
    alert_id INTEGER NOT NULL,
    at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    event TEXT NOT NULL,
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    run_id UUID,
    CONSTRAINT alert_event_pk PRIMARY KEY (alert_event_id),
    CONSTRAINT alert_event_event_check
        CHECK (event IN ('opened', 'seen_again', 'acknowledged', 'muted', 'mute_ended', 'resolved', 'reopened',
            'notified', 'notification_failed')),
    CONSTRAINT alert_event_author_check CHECK (btrim(author) <> ''),
    CONSTRAINT alert_event_alert_id_fk FOREIGN KEY (alert_id) REFERENCES alert (alert_id),
    CONSTRAINT alert_event_run_id_fk FOREIGN KEY (run_id) REFERENCES run (run_id)
);

CREATE INDEX alert_event_alert_id_alert_event_id_idx ON alert_event (alert_id, alert_event_id);
COMMENT ON TABLE alert_event IS 'Everything that happened to alerts; rows are added and never changed';
COMMENT ON COLUMN alert_event.alert_event_id IS 'Key, in the order of what happened';
COMMENT ON COLUMN alert_event.alert_id IS 'Alert';
COMMENT ON COLUMN alert_event.at IS 'When it happened (UTC)';
COMMENT ON COLUMN alert_event.event IS 'opened, seen_again, acknowledged, muted, mute_ended, resolved, reopened, notified, ...';
COMMENT ON COLUMN alert_event.author IS 'Who did it, a person or a part of this system';
COMMENT ON COLUMN alert_event.text IS 'What was said, sent, or given as a reason';
COMMENT ON COLUMN alert_event.run_id IS 'Run that caused it';

ALTER TABLE device
    ADD CONSTRAINT device_compute_capability_check CHECK (compute_capability ~ '^[0-9]+[.][0-9]+$'),
    ADD CONSTRAINT device_names_check CHECK (btrim(uuid) <> '' AND btrim(name) <> ''),
    ADD CONSTRAINT device_size_check CHECK (least(memory_total_bytes, multiprocessors) > 0);

ALTER TABLE environment
    ADD CONSTRAINT environment_packages_object_check CHECK (jsonb_typeof(packages) = 'object');

ALTER TABLE source_state
    ADD CONSTRAINT source_state_sources_object_check CHECK (jsonb_typeof(sources) = 'object');

ALTER TABLE payload
    ADD CONSTRAINT payload_name_check CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,63}$');

ALTER TABLE run
    ADD CONSTRAINT run_adjusted_mj_check
        CHECK (num_nulls(adjusted_mj_median, adjusted_mj_min, adjusted_mj_max, negative_adjusted_rounds) IN (0, 4)),
    ADD CONSTRAINT run_adjusted_mj_median_check CHECK (adjusted_mj_median BETWEEN adjusted_mj_min AND adjusted_mj_max),
    ADD CONSTRAINT run_adjusted_mj_sample_sd_check CHECK (adjusted_mj_sample_sd >= 0),
    ADD CONSTRAINT run_finite_check
        CHECK (greatest(cuda_ms_median, wall_ms_median, gross_mj_median, adjusted_mj_median, adjusted_mj_min,
            adjusted_mj_max, adjusted_mj_sample_sd, reference_joules_per_1e12_operations) < 'Infinity' AND
            least(cuda_ms_median, wall_ms_median, gross_mj_median, adjusted_mj_median, adjusted_mj_min, adjusted_mj_max,
            adjusted_mj_sample_sd, reference_joules_per_1e12_operations) > '-Infinity'),
    ADD CONSTRAINT run_gross_mj_median_check CHECK (gross_mj_median >= 0),
    ADD CONSTRAINT run_names_check CHECK (btrim(dag_id) <> '' AND btrim(dag_run_id) <> '' AND btrim(workload) <> ''),
    ADD CONSTRAINT run_negative_adjusted_rounds_check CHECK (negative_adjusted_rounds BETWEEN 0 AND rounds_valid),
    ADD CONSTRAINT run_params_object_check CHECK (jsonb_typeof(params) = 'object'),
    ADD CONSTRAINT run_protocol_check CHECK (protocol IN ('classic', 'audited', 'interleaved', 'trial')),
    ADD CONSTRAINT run_provenance_object_check CHECK (jsonb_typeof(provenance) = 'object'),
    ADD CONSTRAINT run_times_check CHECK (least(cuda_ms_median, wall_ms_median) > 0),
    ADD CONSTRAINT run_verdict_exit_code_check
        CHECK (exit_code = CASE verdict WHEN 'inconclusive' THEN 0 WHEN 'ok' THEN 0 WHEN 'regression' THEN 1 WHEN
            'bad_input' THEN 2 WHEN 'invalid_measurement' THEN 3 WHEN 'verification_mismatch' THEN 4 WHEN
            'infrastructure_failure' THEN 5 END);

ALTER TABLE validation
    ADD CONSTRAINT validation_all_agreed_check CHECK (outcome <> 'ok' OR agreed = total),
    ADD CONSTRAINT validation_case_name_check CHECK (btrim(case_name) <> ''),
    ADD CONSTRAINT validation_duration_s_check CHECK (duration_s >= 0),
    ADD CONSTRAINT validation_finite_check
        CHECK (greatest(duration_s) < 'Infinity' AND least(duration_s) > '-Infinity'),
    ADD CONSTRAINT validation_mismatches_array_check CHECK (jsonb_typeof(mismatches) = 'array'),
    ADD CONSTRAINT validation_mismatches_check CHECK (jsonb_array_length(mismatches) = total - agreed);

ALTER TABLE round
    ADD COLUMN kernel_ptx_sha256 TEXT,
    ADD COLUMN inject TEXT,
    ADD CONSTRAINT round_inject_check CHECK (btrim(inject) <> ''),
    ADD CONSTRAINT round_kernel_ptx_sha256_check CHECK (kernel_ptx_sha256 ~ '^[0-9a-f]{64}$'),
    ADD CONSTRAINT round_arm_check CHECK (btrim(arm) <> ''),
    ADD CONSTRAINT round_counters_object_check CHECK (jsonb_typeof(counters) = 'object'),
    ADD CONSTRAINT round_energy_reason_check
        CHECK (NOT valid OR (adjusted_mj IS NULL) = (energy_reason_code IS NOT NULL)),
    ADD CONSTRAINT round_finite_check
        CHECK (greatest(cuda_ms, wall_ms, gross_mj, adjusted_mj, idle_before_w, idle_after_w, average_power_w,
            tick_period_s, read_latency_s, counter_j, integrated_j, meters_relative_difference, power_integral_mj,
            sham_adjusted_mj) < 'Infinity' AND least(cuda_ms, wall_ms, gross_mj, adjusted_mj, idle_before_w,
            idle_after_w, average_power_w, tick_period_s, read_latency_s, counter_j, integrated_j,
            meters_relative_difference, power_integral_mj, sham_adjusted_mj) > '-Infinity'),
    ADD CONSTRAINT round_meters_relative_difference_check CHECK (meters_relative_difference >= -1),
    ADD CONSTRAINT round_power_check CHECK (NOT valid OR least(idle_before_w, idle_after_w, average_power_w) >= 0),
    ADD CONSTRAINT round_protocol_check CHECK (protocol IN ('classic', 'audited', 'interleaved', 'trial'));

COMMENT ON COLUMN round.kernel_ptx_sha256 IS 'sha256 of the PTX that the round ran; NULL: none, or not recorded';
COMMENT ON COLUMN round.inject IS 'Effects that the simulated device was told to show; NULL: none';

ALTER TABLE baseline
    ADD COLUMN retired_by TEXT,
    ADD COLUMN retired_reason TEXT,
    ADD CONSTRAINT baseline_retired_by_check CHECK (retired_by IS NULL OR retired_at IS NOT NULL),
    ADD CONSTRAINT baseline_retired_check CHECK (num_nulls(retired_by, retired_reason) IN (0, 2)),
    ADD CONSTRAINT baseline_retired_reason_check CHECK (btrim(retired_by) <> '' AND btrim(retired_reason) <> '');
COMMENT ON COLUMN baseline.retired_by IS 'Who ended it; NULL while it is current, and for those of the first versions';
COMMENT ON COLUMN baseline.retired_reason IS 'Why it was ended';

ALTER TABLE check_result
    ADD CONSTRAINT check_result_details_object_check CHECK (jsonb_typeof(details) = 'object'),
    ADD CONSTRAINT check_result_finite_check
        CHECK (greatest(value, baseline_value, baseline_low, baseline_high) < 'Infinity' AND least(value,
            baseline_value, baseline_low, baseline_high) > '-Infinity'),
    ADD CONSTRAINT check_result_unit_check
        CHECK (unit IN ('predictions', 'mJ', 'J', 'ms', 's', 'W', 'ratio', 'J per 10^12 operations', 'nights', 'versions'));

ALTER TABLE run_energy
    ADD CONSTRAINT run_energy_finite_check
        CHECK (greatest(median_mj, min_mj, max_mj, sample_sd_mj, detectable_mj, per_reference_load) < 'Infinity' AND
            least(median_mj, min_mj, max_mj, sample_sd_mj, detectable_mj, per_reference_load) > '-Infinity');

ALTER TABLE round_energy
    ADD CONSTRAINT round_energy_finite_check
        CHECK (greatest(adjusted_mj, gross_mj, idle_w, tick_mj, timing_mj, quantisation_mj, drift_mj, combined_mj,
            bias_mj, degrees_of_freedom, low_mj, high_mj) < 'Infinity' AND least(adjusted_mj, gross_mj, idle_w, tick_mj,
            timing_mj, quantisation_mj, drift_mj, combined_mj, bias_mj, degrees_of_freedom, low_mj, high_mj) >
            '-Infinity');

ALTER TABLE round_trace
    ADD CONSTRAINT round_trace_finite_check CHECK (greatest(period_s) < 'Infinity' AND least(period_s) > '-Infinity');

ALTER TABLE telemetry
    ADD COLUMN reference_low_duty_joules_per_1e12_operations DOUBLE PRECISION,
    ADD COLUMN power_limit_w DOUBLE PRECISION
        GENERATED ALWAYS AS ((readings -> 'state_before' ->> 'power_limit_w')::double precision) STORED,
    ADD CONSTRAINT telemetry_errors_check CHECK (least(reference_largest_error, idle_walk_w_per_sqrt_s) >= 0),
    ADD CONSTRAINT telemetry_finite_check
        CHECK (greatest(tick_period_s, read_latency_s, idle_power_w, idle_slope_w_per_s, idle_walk_w_per_sqrt_s,
            reference_operations, reference_duration_s, reference_energy_j, reference_idle_w, reference_above_idle_w,
            reference_joules_per_1e12_operations, reference_tera_operations_per_s, reference_largest_error,
            reference_low_duty_joules_per_1e12_operations, power_limit_w) < 'Infinity' AND least(tick_period_s,
            read_latency_s, idle_power_w, idle_slope_w_per_s, idle_walk_w_per_sqrt_s, reference_operations,
            reference_duration_s, reference_energy_j, reference_idle_w, reference_above_idle_w,
            reference_joules_per_1e12_operations, reference_tera_operations_per_s, reference_largest_error,
            reference_low_duty_joules_per_1e12_operations, power_limit_w) > '-Infinity'),
    ADD CONSTRAINT telemetry_power_limit_w_check CHECK (power_limit_w > 0),
    ADD CONSTRAINT telemetry_readings_object_check CHECK (jsonb_typeof(readings) = 'object');
COMMENT ON COLUMN telemetry.reference_low_duty_joules_per_1e12_operations IS 'The same products with pauses between them: energy above idle, J per 10^12 operations; NULL: not made';
COMMENT ON COLUMN telemetry.power_limit_w IS 'Power limit of the GPU before it, W; NULL: not known (taken from readings)';

ALTER TABLE telemetry_trace
    ADD CONSTRAINT telemetry_trace_finite_check
        CHECK (greatest(period_s) < 'Infinity' AND least(period_s) > '-Infinity');

ALTER TABLE telemetry_gate
    DROP CONSTRAINT telemetry_gate_gate_check,
    ADD CONSTRAINT telemetry_gate_gate_check CHECK (gate IN (
        'reference_load', 'meters_agree', 'sham_window', 'round_spread', 'sampling', 'exclusive', 'output_verified',
        'same_conditions'
    )),
    ADD CONSTRAINT telemetry_gate_finite_check
        CHECK (greatest(value, low, high) < 'Infinity' AND least(value, low, high) > '-Infinity'),
    ADD CONSTRAINT telemetry_gate_unit_check CHECK (btrim(unit) <> '');

-- The run before, for every view that looks back, and the nights as the views have them.
DROP INDEX run_workload_device_id_started_at_idx;
CREATE INDEX run_workload_device_id_started_at_run_id_idx ON run (workload, device_id, started_at, run_id);
CREATE INDEX run_night_idx ON run (((started_at AT TIME ZONE 'UTC')::date));
-- Invalid rounds are few, and asked for by themselves.
CREATE INDEX round_invalid_idx ON round (run_id) WHERE NOT valid;

-- Raw readings (4 kB a row) lie beside the figures, not among them: what asks for figures reads fewer pages.
ALTER TABLE round SET (toast_tuple_target = 128);
ALTER TABLE telemetry SET (toast_tuple_target = 128);

-- A judged run is history: its record may be read, judged again, and nothing else. (An infrastructure failure says
-- nothing about the kernel, so the task that failed may run again and replace it.) Whoever owns the tables may.

CREATE FUNCTION run_is_history() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$
DECLARE
    judged_again record := OLD;
BEGIN
    judged_again.verdict := NEW.verdict;
    judged_again.exit_code := NEW.exit_code;
    IF NEW.verdict IS NULL OR NEW IS DISTINCT FROM judged_again THEN
        RAISE EXCEPTION 'run %: judged %, its record cannot be changed', OLD.run_id, OLD.verdict
            USING ERRCODE = 'restrict_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION part_of_run_is_history() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$
DECLARE
    part record := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    IF EXISTS (
        SELECT FROM run WHERE run.run_id = part.run_id AND run.verdict <> 'infrastructure_failure'
    ) THEN
        RAISE EXCEPTION 'run %: judged, its record cannot be changed', part.run_id
            USING ERRCODE = 'restrict_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN part;
END $$;

CREATE TRIGGER run_is_history BEFORE UPDATE ON run FOR EACH ROW
    WHEN (OLD.verdict <> 'infrastructure_failure' AND NOT pg_has_role('nightly_owner', 'MEMBER'))
    EXECUTE FUNCTION run_is_history();
CREATE TRIGGER validation_is_history BEFORE INSERT OR UPDATE OR DELETE ON validation FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER round_is_history BEFORE INSERT OR UPDATE OR DELETE ON round FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER run_energy_is_history BEFORE INSERT OR UPDATE OR DELETE ON run_energy FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER round_energy_is_history BEFORE INSERT OR UPDATE OR DELETE ON round_energy FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER telemetry_is_history BEFORE INSERT OR UPDATE OR DELETE ON telemetry FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER telemetry_gate_is_history BEFORE INSERT OR UPDATE OR DELETE ON telemetry_gate FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();

-- What was withdrawn is compared with no more: not as a whole, or not for energy. One after the other, so that a
-- withdrawal and an acceptance at the same time cannot both miss each other.

CREATE FUNCTION baseline_is_not_withdrawn() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('baseline', 0));
    IF EXISTS (
        SELECT FROM baseline JOIN withdrawal USING (run_id)
        WHERE run_id = NEW.run_id AND baseline.retired_at IS NULL AND (withdrawal.scope = 'all' OR baseline.for_energy)
    ) THEN
        RAISE EXCEPTION 'run %: withdrawn, and a current baseline for what was withdrawn', NEW.run_id
            USING ERRCODE = 'restrict_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER baseline_is_not_withdrawn AFTER INSERT OR UPDATE ON baseline FOR EACH ROW
    EXECUTE FUNCTION baseline_is_not_withdrawn();
CREATE TRIGGER withdrawn_is_no_baseline AFTER INSERT OR UPDATE ON withdrawal FOR EACH ROW
    EXECUTE FUNCTION baseline_is_not_withdrawn();

COMMENT ON FUNCTION run_is_history IS 'Refuses changes of a judged run but for its verdict';
COMMENT ON FUNCTION part_of_run_is_history IS 'Refuses changes of what belongs to a judged run';
COMMENT ON FUNCTION baseline_is_not_withdrawn IS 'Refuses a current baseline of what was withdrawn';

-- The writer changes what loading, judging, accepting and alerting need, column by column, and adds the rest.

REVOKE UPDATE ON device, environment, source_state, payload, payload_draw, validation, round, baseline, run_energy,
    round_energy, round_trace, telemetry, telemetry_trace, telemetry_gate, withdrawal, alert, alert_event
    FROM nightly_writer;
GRANT UPDATE (retired_at, retired_by, retired_reason) ON baseline TO nightly_writer;
GRANT UPDATE (
    outcome, state, first_run_id, last_run_id, occurrences, value, baseline_value, unit, baseline_id, text,
    last_seen_at, acknowledged_by, acknowledged_at, acknowledged_reason, muted_until, resolved_at
) ON alert TO nightly_writer;
