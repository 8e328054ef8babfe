-- Workloads that train: trials, where a task ended by hash, settings of libraries, qualifications, and memory.

ALTER TABLE run_energy
    DROP CONSTRAINT run_energy_figure_check,
    ADD CONSTRAINT run_energy_figure_check
        CHECK (figure IN ('classic', 'aligned', 'audited', 'interleaved', 'trial'));
ALTER TABLE round_energy
    DROP CONSTRAINT round_energy_figure_check,
    ADD CONSTRAINT round_energy_figure_check
        CHECK (figure IN ('classic', 'aligned', 'audited', 'interleaved', 'trial'));
COMMENT ON COLUMN run_energy.figure IS 'How it was measured: classic, aligned, audited, interleaved or trial';
COMMENT ON COLUMN round_energy.figure IS 'How it was measured: classic, aligned, audited, interleaved or trial';

ALTER TABLE check_result
    DROP CONSTRAINT check_result_unit_check,
    ADD CONSTRAINT check_result_unit_check
        CHECK (unit IN ('predictions', 'mJ', 'J', 'ms', 's', 'W', 'ratio', 'J per 10^12 operations', 'nights', 'versions',
            'bytes', 'checks', 'hashes'));
ALTER TABLE alert
    DROP CONSTRAINT alert_unit_check,
    ADD CONSTRAINT alert_unit_check
        CHECK (unit IN ('predictions', 'mJ', 'J', 'ms', 's', 'W', 'ratio', 'J per 10^12 operations', 'nights', 'versions',
            'bytes', 'checks', 'hashes'));

ALTER TABLE round
    ADD COLUMN calibration_ms DOUBLE PRECISION,
    DROP CONSTRAINT round_finite_check,
    ADD CONSTRAINT round_calibration_ms_check CHECK (calibration_ms > 0),
    ADD CONSTRAINT round_finite_check
        CHECK (greatest(cuda_ms, wall_ms, gross_mj, adjusted_mj, idle_before_w, idle_after_w, average_power_w,
            tick_period_s, read_latency_s, counter_j, integrated_j, meters_relative_difference,
            power_integral_mj, sham_adjusted_mj, first_reading_s, first_reading_mj, last_reading_s,
            last_reading_mj, calibration_ms) < 'Infinity' AND least(cuda_ms, wall_ms, gross_mj, adjusted_mj,
            idle_before_w, idle_after_w, average_power_w, tick_period_s, read_latency_s, counter_j,
            integrated_j, meters_relative_difference, power_integral_mj, sham_adjusted_mj, first_reading_s,
            first_reading_mj, last_reading_s, last_reading_mj, calibration_ms) > '-Infinity');
COMMENT ON COLUMN round.calibration_ms IS 'What a task took just before, ms, where its repeats follow from that';

ALTER TABLE validation
    ADD COLUMN state_hashes JSONB,
    ADD COLUMN replay_states_equal BOOLEAN[] NOT NULL DEFAULT '{}',
    ADD COLUMN reference_state_name TEXT,
    ADD COLUMN reference_state_expected_sha256 TEXT,
    ADD COLUMN reference_state_found_sha256 TEXT,
    ADD CONSTRAINT validation_state_hashes_object_check CHECK (jsonb_typeof(state_hashes) = 'object'),
    ADD CONSTRAINT validation_reference_state_expected_sha256_check
        CHECK (reference_state_expected_sha256 ~ '^[0-9a-f]{64}$'),
    ADD CONSTRAINT validation_reference_state_found_sha256_check
        CHECK (reference_state_found_sha256 ~ '^[0-9a-f]{64}$'),
    ADD CONSTRAINT validation_reference_state_check
        CHECK ((reference_state_name IS NULL) = (reference_state_found_sha256 IS NULL)
            AND (reference_state_expected_sha256 IS NULL OR reference_state_name IS NOT NULL)),
    ADD CONSTRAINT validation_states_check
        CHECK (outcome <> 'ok' OR true = ALL (replay_states_equal)
            AND coalesce(reference_state_expected_sha256 = reference_state_found_sha256, true));
ALTER TABLE validation ALTER COLUMN replay_states_equal DROP DEFAULT;  -- it was for the draws that were there already

COMMENT ON COLUMN validation.state_hashes IS 'sha256 by name of what the eager run started from and left behind; NULL: nothing but its predictions';
COMMENT ON COLUMN validation.replay_states_equal IS 'For each replay, whether it left all of these behind again';
COMMENT ON COLUMN validation.reference_state_name IS 'What is hashed of where the reference ended, for example state_grid_sha256; NULL: no reference was run';
COMMENT ON COLUMN validation.reference_state_expected_sha256 IS 'Where the reference ended when the draw was frozen; NULL: not known';
COMMENT ON COLUMN validation.reference_state_found_sha256 IS 'Where the reference ended now, on this host';

CREATE TABLE run_setting (
    run_id UUID NOT NULL,
    name TEXT NOT NULL,
    value TEXT,
    origin TEXT NOT NULL,
    CONSTRAINT run_setting_pk PRIMARY KEY (run_id, name),
    CONSTRAINT run_setting_origin_check CHECK (origin IN ('environment', 'program', 'unset')),
    CONSTRAINT run_setting_unset_check CHECK ((origin = 'unset') = (value IS NULL)),
    CONSTRAINT run_setting_name_check CHECK (btrim(name) <> ''),
    CONSTRAINT run_setting_run_id_fk FOREIGN KEY (run_id) REFERENCES run (run_id)
);

COMMENT ON TABLE run_setting IS 'Settings of the libraries that a run computed with, as they were in force';
COMMENT ON COLUMN run_setting.run_id IS 'Run';
COMMENT ON COLUMN run_setting.name IS 'Setting of a library, for example CUBLAS_WORKSPACE_CONFIG';
COMMENT ON COLUMN run_setting.value IS 'What it was; NULL: unset';
COMMENT ON COLUMN run_setting.origin IS 'environment (set before the process began), program or unset';

CREATE TABLE qualification (
    run_id UUID NOT NULL,
    outcome TEXT NOT NULL,
    reason_code TEXT,
    reason_message TEXT,
    computed_on TEXT,
    captured BOOLEAN,
    passed BOOLEAN,
    checks INTEGER,
    maximum_abs_error DOUBLE PRECISION,
    tolerance JSONB NOT NULL,
    duration_s DOUBLE PRECISION,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT qualification_pk PRIMARY KEY (run_id),
    CONSTRAINT qualification_outcome_check
        CHECK (outcome IN ('ok', 'regression', 'bad_input', 'invalid_measurement', 'verification_mismatch',
            'infrastructure_failure')),
    CONSTRAINT qualification_reason_check CHECK (outcome = 'ok' OR reason_code IS NOT NULL),
    CONSTRAINT qualification_passed_check CHECK ((outcome = 'ok') = (passed IS TRUE)),
    CONSTRAINT qualification_asked_check CHECK (num_nulls(passed, checks) IN (0, 2)),
    CONSTRAINT qualification_checks_check CHECK (checks >= 0),
    CONSTRAINT qualification_maximum_abs_error_check CHECK (maximum_abs_error >= 0),
    CONSTRAINT qualification_duration_s_check CHECK (duration_s >= 0),
    CONSTRAINT qualification_tolerance_object_check CHECK (jsonb_typeof(tolerance) = 'object'),
    CONSTRAINT qualification_run_id_fk FOREIGN KEY (run_id) REFERENCES run (run_id),
    CONSTRAINT qualification_finite_check
        CHECK (greatest(maximum_abs_error, duration_s) < 'Infinity' AND least(maximum_abs_error, duration_s) >
            '-Infinity')
);

COMMENT ON TABLE qualification IS 'Qualifications: whether a workload computes what an independent implementation does, one row a run';
COMMENT ON COLUMN qualification.run_id IS 'Run';
COMMENT ON COLUMN qualification.outcome IS 'Class of outcome: regression when a check failed';
COMMENT ON COLUMN qualification.reason_code IS 'Documented snake_case word for why the outcome is not ok';
COMMENT ON COLUMN qualification.reason_message IS 'One line for people: why the outcome is not ok';
COMMENT ON COLUMN qualification.computed_on IS 'What the cases ran on where they ask for a device; NULL: it could not be asked';
COMMENT ON COLUMN qualification.captured IS 'Whether they ran as captured CUDA graphs';
COMMENT ON COLUMN qualification.passed IS 'Whether every check holds; NULL: none could be made';
COMMENT ON COLUMN qualification.checks IS 'Single comparisons over all cases';
COMMENT ON COLUMN qualification.maximum_abs_error IS 'Largest absolute difference over all cases';
COMMENT ON COLUMN qualification.tolerance IS 'What differences are held against: atol (absolute), rtol (relative)';
COMMENT ON COLUMN qualification.duration_s IS 'Time it took, s';
COMMENT ON COLUMN qualification.created_at IS 'When its record was written (UTC)';

CREATE TABLE qualification_case (
    run_id UUID NOT NULL,
    case_name TEXT NOT NULL,
    passed BOOLEAN NOT NULL,
    checks INTEGER NOT NULL,
    failures JSONB NOT NULL,
    figures JSONB NOT NULL,
    CONSTRAINT qualification_case_pk PRIMARY KEY (run_id, case_name),
    CONSTRAINT qualification_case_checks_check CHECK (checks >= 0),
    CONSTRAINT qualification_case_passed_check CHECK (passed = (failures = '[]')),
    CONSTRAINT qualification_case_case_name_check CHECK (btrim(case_name) <> ''),
    CONSTRAINT qualification_case_failures_array_check CHECK (jsonb_typeof(failures) = 'array'),
    CONSTRAINT qualification_case_figures_object_check CHECK (jsonb_typeof(figures) = 'object'),
    CONSTRAINT qualification_case_run_id_fk FOREIGN KEY (run_id) REFERENCES qualification (run_id)
);

COMMENT ON TABLE qualification_case IS 'Cases of qualifications with their figures';
COMMENT ON COLUMN qualification_case.run_id IS 'Run';
COMMENT ON COLUMN qualification_case.case_name IS 'What was checked';
COMMENT ON COLUMN qualification_case.passed IS 'Whether every check of the case holds';
COMMENT ON COLUMN qualification_case.checks IS 'Single comparisons of the case';
COMMENT ON COLUMN qualification_case.failures IS 'Names of those that do not hold';
COMMENT ON COLUMN qualification_case.figures IS 'The case''s own figures, by the names of the workload';

CREATE TABLE task_memory (
    run_id UUID NOT NULL,
    outcome TEXT NOT NULL,
    reason_code TEXT,
    reason_message TEXT,
    draw SMALLINT,
    allocated_before_prepare_bytes BIGINT,
    reserved_before_prepare_bytes BIGINT,
    allocated_after_prepare_bytes BIGINT,
    prepare_and_invoke_peak_allocated_bytes BIGINT,
    allocated_after_invoke_bytes BIGINT,
    reserved_after_invoke_bytes BIGINT,
    prepare_and_invoke_peak_reserved_bytes BIGINT,
    added_peak_over_entry_allocated_bytes BIGINT,
    memory_reason_code TEXT,
    memory_reason_message TEXT,
    named_storage_bytes BIGINT,
    allocator_allocated_bytes BIGINT,
    unassigned_bytes BIGINT,
    cache_bytes BIGINT,
    cache_reason_code TEXT,
    cache_reason_message TEXT,
    state_hashes JSONB,
    invocations INTEGER,
    hashes_matched TEXT[] NOT NULL,
    total INTEGER,
    agreed INTEGER,
    predictions_sha256 TEXT,
    predictions_file TEXT,
    profile JSONB,
    profile_reason_code TEXT,
    profile_reason_message TEXT,
    duration_s DOUBLE PRECISION,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT task_memory_pk PRIMARY KEY (run_id),
    CONSTRAINT task_memory_outcome_check
        CHECK (outcome IN ('ok', 'regression', 'bad_input', 'invalid_measurement', 'verification_mismatch',
            'infrastructure_failure')),
    CONSTRAINT task_memory_reason_check CHECK (outcome = 'ok' OR reason_code IS NOT NULL),
    CONSTRAINT task_memory_draw_check CHECK (draw >= 0),
    CONSTRAINT task_memory_bytes_check
        CHECK (least(allocated_before_prepare_bytes, reserved_before_prepare_bytes,
            allocated_after_prepare_bytes, prepare_and_invoke_peak_allocated_bytes,
            allocated_after_invoke_bytes, reserved_after_invoke_bytes, prepare_and_invoke_peak_reserved_bytes,
            added_peak_over_entry_allocated_bytes, named_storage_bytes, cache_bytes) >= 0),
    CONSTRAINT task_memory_allocator_check
        CHECK (num_nulls(prepare_and_invoke_peak_allocated_bytes, allocated_before_prepare_bytes,
            allocated_after_invoke_bytes) IN (0, 3)),
    CONSTRAINT task_memory_memory_reason_check
        CHECK (memory_reason_code IS NULL OR prepare_and_invoke_peak_allocated_bytes IS NULL),
    CONSTRAINT task_memory_peak_check
        CHECK (greatest(allocated_before_prepare_bytes, allocated_after_prepare_bytes,
            allocated_after_invoke_bytes) <= prepare_and_invoke_peak_allocated_bytes AND
            prepare_and_invoke_peak_allocated_bytes <= prepare_and_invoke_peak_reserved_bytes),
    CONSTRAINT task_memory_added_peak_check
        CHECK (added_peak_over_entry_allocated_bytes = prepare_and_invoke_peak_allocated_bytes -
            allocated_before_prepare_bytes),
    CONSTRAINT task_memory_unassigned_bytes_check
        CHECK (unassigned_bytes IS NOT DISTINCT FROM allocator_allocated_bytes - named_storage_bytes),
    CONSTRAINT task_memory_cache_reason_check CHECK (cache_reason_code IS NULL OR cache_bytes IS NULL),
    CONSTRAINT task_memory_profile_reason_check CHECK (profile_reason_code IS NULL OR profile IS NULL),
    CONSTRAINT task_memory_hashes_matched_check CHECK (hashes_matched = '{}' OR state_hashes IS NOT NULL),
    CONSTRAINT task_memory_invocations_check CHECK (invocations > 0),
    CONSTRAINT task_memory_agreed_check CHECK ((total IS NULL) = (agreed IS NULL) AND agreed BETWEEN 0 AND total),
    CONSTRAINT task_memory_duration_s_check CHECK (duration_s >= 0),
    CONSTRAINT task_memory_predictions_sha256_check CHECK (predictions_sha256 ~ '^[0-9a-f]{64}$'),
    CONSTRAINT task_memory_state_hashes_object_check CHECK (jsonb_typeof(state_hashes) = 'object'),
    CONSTRAINT task_memory_profile_object_check CHECK (jsonb_typeof(profile) = 'object'),
    CONSTRAINT task_memory_run_id_fk FOREIGN KEY (run_id) REFERENCES run (run_id),
    CONSTRAINT task_memory_finite_check CHECK (greatest(duration_s) < 'Infinity' AND least(duration_s) > '-Infinity')
);

COMMENT ON TABLE task_memory IS 'Memory of a task, made and run in a process of its own: one row a run that looked';
COMMENT ON COLUMN task_memory.run_id IS 'Run';
COMMENT ON COLUMN task_memory.outcome IS 'Class of outcome: regression when the task does not repeat itself';
COMMENT ON COLUMN task_memory.reason_code IS 'Documented snake_case word for why the outcome is not ok';
COMMENT ON COLUMN task_memory.reason_message IS 'One line for people: why the outcome is not ok';
COMMENT ON COLUMN task_memory.draw IS 'Number of the draw it ran on';
COMMENT ON COLUMN task_memory.allocated_before_prepare_bytes IS 'Allocated before the task was made, bytes (allocator)';
COMMENT ON COLUMN task_memory.reserved_before_prepare_bytes IS 'Reserved before the task was made, bytes (allocator)';
COMMENT ON COLUMN task_memory.allocated_after_prepare_bytes IS 'Allocated after the task was made, bytes (allocator)';
COMMENT ON COLUMN task_memory.prepare_and_invoke_peak_allocated_bytes IS 'Most allocated while the task was made and run, bytes (allocator)';
COMMENT ON COLUMN task_memory.allocated_after_invoke_bytes IS 'Allocated after the first run, bytes (allocator)';
COMMENT ON COLUMN task_memory.reserved_after_invoke_bytes IS 'Reserved after the first run, bytes (allocator)';
COMMENT ON COLUMN task_memory.prepare_and_invoke_peak_reserved_bytes IS 'Most reserved while the task was made and run, bytes (allocator)';
COMMENT ON COLUMN task_memory.added_peak_over_entry_allocated_bytes IS 'Most allocated, less what was allocated before, bytes (allocator)';
COMMENT ON COLUMN task_memory.memory_reason_code IS 'Why the allocator counts nothing: documented snake_case word';
COMMENT ON COLUMN task_memory.memory_reason_message IS 'Why the allocator counts nothing: one line';
COMMENT ON COLUMN task_memory.named_storage_bytes IS 'All storages behind named tensors, each counted once, bytes';
COMMENT ON COLUMN task_memory.allocator_allocated_bytes IS 'Allocated when the tensors were counted, bytes (allocator)';
COMMENT ON COLUMN task_memory.unassigned_bytes IS 'Allocated behind no named tensor: pools of graphs, workspaces of libraries, bytes';
COMMENT ON COLUMN task_memory.cache_bytes IS 'Size of the device''s L2 cache, bytes; nothing says what stays in it';
COMMENT ON COLUMN task_memory.cache_reason_code IS 'Why the size of the cache is not known: documented snake_case word';
COMMENT ON COLUMN task_memory.cache_reason_message IS 'Why the size of the cache is not known: one line';
COMMENT ON COLUMN task_memory.state_hashes IS 'sha256 by name of what the first run began with and left';
COMMENT ON COLUMN task_memory.invocations IS 'How often the task ran';
COMMENT ON COLUMN task_memory.hashes_matched IS 'Names of the hashes that were the same after the last run';
COMMENT ON COLUMN task_memory.total IS 'Predictions made';
COMMENT ON COLUMN task_memory.agreed IS 'Predictions equal to the frozen ones';
COMMENT ON COLUMN task_memory.predictions_sha256 IS 'sha256 of the predictions as a file of int64 in the format of NumPy';
COMMENT ON COLUMN task_memory.predictions_file IS 'Where that file was written; NULL: nowhere';
COMMENT ON COLUMN task_memory.profile IS 'What Nsight Compute saw by kernel: ns, bytes of DRAM, per cent of L2 hits';
COMMENT ON COLUMN task_memory.profile_reason_code IS 'Why there is no profile: documented snake_case word';
COMMENT ON COLUMN task_memory.profile_reason_message IS 'Why there is no profile: one line';
COMMENT ON COLUMN task_memory.duration_s IS 'Time it took, s';
COMMENT ON COLUMN task_memory.created_at IS 'When its record was written (UTC)';

CREATE TABLE memory_storage (
    run_id UUID NOT NULL,
    storage_id INTEGER NOT NULL,
    device TEXT NOT NULL,
    address BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    aliases TEXT[] NOT NULL,
    CONSTRAINT memory_storage_pk PRIMARY KEY (run_id, storage_id),
    CONSTRAINT memory_storage_numbers_check CHECK (least(storage_id, address, bytes) >= 0),
    CONSTRAINT memory_storage_device_check CHECK (btrim(device) <> ''),
    CONSTRAINT memory_storage_run_id_fk FOREIGN KEY (run_id) REFERENCES task_memory (run_id)
);

COMMENT ON TABLE memory_storage IS 'Storages behind the named tensors of a task';
COMMENT ON COLUMN memory_storage.run_id IS 'Run';
COMMENT ON COLUMN memory_storage.storage_id IS 'Number of the storage in its inventory';
COMMENT ON COLUMN memory_storage.device IS 'Where it is, for example cuda:0';
COMMENT ON COLUMN memory_storage.address IS 'Its address; says nothing beyond its process';
COMMENT ON COLUMN memory_storage.bytes IS 'Its size, bytes';
COMMENT ON COLUMN memory_storage.aliases IS 'Names of the tensors that share it';

CREATE TABLE memory_tensor (
    run_id UUID NOT NULL,
    name TEXT NOT NULL,
    storage_id INTEGER NOT NULL,
    shape BIGINT[] NOT NULL,
    stride BIGINT[] NOT NULL,
    dtype TEXT NOT NULL,
    storage_offset BIGINT NOT NULL,
    logical_bytes BIGINT NOT NULL,
    CONSTRAINT memory_tensor_pk PRIMARY KEY (run_id, name),
    CONSTRAINT memory_tensor_run_id_storage_id_fk
        FOREIGN KEY (run_id, storage_id) REFERENCES memory_storage (run_id, storage_id),
    CONSTRAINT memory_tensor_axes_check CHECK (cardinality(shape) = cardinality(stride)),
    CONSTRAINT memory_tensor_numbers_check CHECK (least(storage_offset, logical_bytes) >= 0),
    CONSTRAINT memory_tensor_names_check CHECK (btrim(name) <> '' AND btrim(dtype) <> '')
);

COMMENT ON TABLE memory_tensor IS 'Named tensors of a task';
COMMENT ON COLUMN memory_tensor.run_id IS 'Run';
COMMENT ON COLUMN memory_tensor.name IS 'Name of the tensor in its task';
COMMENT ON COLUMN memory_tensor.storage_id IS 'Storage that it is a view of';
COMMENT ON COLUMN memory_tensor.shape IS 'Elements along each axis';
COMMENT ON COLUMN memory_tensor.stride IS 'Elements from one to the next along each axis';
COMMENT ON COLUMN memory_tensor.dtype IS 'Type of an element, for example torch.float32';
COMMENT ON COLUMN memory_tensor.storage_offset IS 'Elements of its storage before its first';
COMMENT ON COLUMN memory_tensor.logical_bytes IS 'Its elements without its storage''s others, bytes';

-- Like every part of a run: added with it, taken out with it as long as it was not judged, and else history.

CREATE TRIGGER run_setting_is_history BEFORE INSERT OR UPDATE OR DELETE ON run_setting FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER qualification_is_history BEFORE INSERT OR UPDATE OR DELETE ON qualification FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER qualification_case_is_history BEFORE INSERT OR UPDATE OR DELETE ON qualification_case FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER task_memory_is_history BEFORE INSERT OR UPDATE OR DELETE ON task_memory FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER memory_storage_is_history BEFORE INSERT OR UPDATE OR DELETE ON memory_storage FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER memory_tensor_is_history BEFORE INSERT OR UPDATE OR DELETE ON memory_tensor FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();

REVOKE UPDATE ON run_setting, qualification, qualification_case, task_memory, memory_storage, memory_tensor
    FROM nightly_writer;
GRANT DELETE ON run_setting, qualification, qualification_case, task_memory, memory_storage, memory_tensor
    TO nightly_writer;
