-- Tables of the first night. Comments of every table and column follow its definition.

CREATE TABLE device (
    device_id INTEGER GENERATED ALWAYS AS IDENTITY,
    kind TEXT NOT NULL,
    uuid TEXT NOT NULL,
    name TEXT NOT NULL,
    memory_total_bytes BIGINT,
    multiprocessors INTEGER,
    compute_capability TEXT,
    CONSTRAINT device_pk PRIMARY KEY (device_id),
    CONSTRAINT device_kind_check CHECK (kind IN ('cuda', 'emulated', 'reference', 'simulated')),
    CONSTRAINT device_kind_uuid_name_key UNIQUE (kind, uuid, name)
);

COMMENT ON TABLE device IS 'Devices that runs were made on, one row a board and model';
COMMENT ON COLUMN device.device_id IS 'Key';
COMMENT ON COLUMN device.kind IS 'cuda, emulated, reference or simulated; figures are never compared across kinds';
COMMENT ON COLUMN device.uuid IS 'Identity of one board (of one machine, for a CPU device)';
COMMENT ON COLUMN device.name IS 'Model name as the driver gives it';
COMMENT ON COLUMN device.memory_total_bytes IS 'Memory in bytes, as first seen';
COMMENT ON COLUMN device.multiprocessors IS 'Number of streaming multiprocessors, as first seen';
COMMENT ON COLUMN device.compute_capability IS 'CUDA compute capability, for example 8.0, as first seen';

CREATE TABLE environment (
    environment_id INTEGER GENERATED ALWAYS AS IDENTITY,
    fingerprint_sha256 TEXT NOT NULL,
    environment_class TEXT NOT NULL,
    python TEXT NOT NULL,
    platform TEXT NOT NULL,
    driver TEXT,
    cuda TEXT,
    packages JSONB NOT NULL,
    CONSTRAINT environment_pk PRIMARY KEY (environment_id),
    CONSTRAINT environment_fingerprint_sha256_check CHECK (fingerprint_sha256 ~ '^[0-9a-f]{64}$'),
    CONSTRAINT environment_fingerprint_sha256_key UNIQUE (fingerprint_sha256),
    CONSTRAINT environment_environment_id_environment_class_key UNIQUE (environment_id, environment_class)
);

COMMENT ON TABLE environment IS 'Software environments that runs were made in, one row a distinct set of versions';
COMMENT ON COLUMN environment.environment_id IS 'Key';
COMMENT ON COLUMN environment.fingerprint_sha256 IS 'sha256 of the canonical JSON of all fields below';
COMMENT ON COLUMN environment.environment_class IS 'Versions that start a new baseline when they change: driver, CUDA and torch; without any, Python and numpy';
COMMENT ON COLUMN environment.python IS 'Version of the interpreter of the GPU tasks';
COMMENT ON COLUMN environment.platform IS 'Operating system and machine';
COMMENT ON COLUMN environment.driver IS 'Version of the GPU driver';
COMMENT ON COLUMN environment.cuda IS 'Version of CUDA';
COMMENT ON COLUMN environment.packages IS 'Installed packages: name to version';

CREATE TABLE payload (
    payload_id INTEGER GENERATED ALWAYS AS IDENTITY,
    name TEXT NOT NULL,
    manifest_sha256 TEXT NOT NULL,
    CONSTRAINT payload_pk PRIMARY KEY (payload_id),
    CONSTRAINT payload_name_manifest_sha256_key UNIQUE (name, manifest_sha256),
    CONSTRAINT payload_manifest_sha256_check CHECK (manifest_sha256 ~ '^[0-9a-f]{64}$')
);

COMMENT ON TABLE payload IS 'Named sets of frozen draws';
COMMENT ON COLUMN payload.payload_id IS 'Key';
COMMENT ON COLUMN payload.name IS 'Name of the set of frozen draws';
COMMENT ON COLUMN payload.manifest_sha256 IS 'sha256 of its manifest';

CREATE TABLE source_state (
    source_state_id INTEGER GENERATED ALWAYS AS IDENTITY,
    fingerprint_sha256 TEXT NOT NULL,
    sources_sha256 TEXT,
    sources JSONB NOT NULL,
    CONSTRAINT source_state_pk PRIMARY KEY (source_state_id),
    CONSTRAINT source_state_fingerprint_sha256_check CHECK (fingerprint_sha256 ~ '^[0-9a-f]{64}$'),
    CONSTRAINT source_state_sources_sha256_check CHECK (sources_sha256 ~ '^[0-9a-f]{64}$'),
    CONSTRAINT source_state_fingerprint_sha256_key UNIQUE (fingerprint_sha256)
);

COMMENT ON TABLE source_state IS 'States of the pinned sources (GPU programs and kernels) that runs were made with';
COMMENT ON COLUMN source_state.source_state_id IS 'Key';
COMMENT ON COLUMN source_state.fingerprint_sha256 IS 'sha256 of the canonical JSON of the two fields below';
COMMENT ON COLUMN source_state.sources_sha256 IS 'sha256 of the file of pinned source hashes';
COMMENT ON COLUMN source_state.sources IS 'Every pinned source file: path to the sha256 found';

CREATE TABLE payload_draw (
    payload_id INTEGER NOT NULL,
    draw SMALLINT NOT NULL,
    dataset_seed BIGINT NOT NULL,
    payload_sha256 TEXT NOT NULL,
    frozen_prediction_sha256 TEXT NOT NULL,
    CONSTRAINT payload_draw_pk PRIMARY KEY (payload_id, draw),
    CONSTRAINT payload_draw_draw_check CHECK (draw >= 0),
    CONSTRAINT payload_draw_payload_sha256_check CHECK (payload_sha256 ~ '^[0-9a-f]{64}$'),
    CONSTRAINT payload_draw_frozen_prediction_sha256_check CHECK (frozen_prediction_sha256 ~ '^[0-9a-f]{64}$'),
    CONSTRAINT payload_draw_payload_id_fk FOREIGN KEY(payload_id) REFERENCES payload (payload_id)
);

COMMENT ON TABLE payload_draw IS 'Frozen draws of each payload, as its manifest names them';
COMMENT ON COLUMN payload_draw.payload_id IS 'Set of draws';
COMMENT ON COLUMN payload_draw.draw IS 'Number of the draw in its set, from 0';
COMMENT ON COLUMN payload_draw.dataset_seed IS 'Seed that the draw was made from';
COMMENT ON COLUMN payload_draw.payload_sha256 IS 'sha256 of the file with the draw''s arrays';
COMMENT ON COLUMN payload_draw.frozen_prediction_sha256 IS 'sha256 of the frozen predictions';

CREATE TABLE run (
    run_id UUID NOT NULL,
    dag_id TEXT NOT NULL,
    dag_run_id TEXT NOT NULL,
    workload TEXT NOT NULL,
    trigger TEXT NOT NULL,
    logical_date TIMESTAMP WITH TIME ZONE,
    device_id INTEGER,
    environment_id INTEGER,
    source_state_id INTEGER,
    payload_id INTEGER,
    protocol TEXT NOT NULL,
    params JSONB NOT NULL,
    label TEXT,
    note TEXT,
    outcome TEXT NOT NULL,
    reason_code TEXT,
    reason_message TEXT,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    completed_at TIMESTAMP WITH TIME ZONE,
    energy_trust TEXT NOT NULL,
    energy_trust_reason TEXT,
    kernel_variant TEXT,
    kernel_ptx_sha256 TEXT,
    draws_expected INTEGER NOT NULL,
    draws_validated INTEGER NOT NULL,
    total INTEGER,
    agreed INTEGER,
    device_correct INTEGER,
    reference_correct INTEGER,
    all_replays_equal_eager BOOLEAN,
    rounds_expected INTEGER NOT NULL,
    rounds_valid INTEGER NOT NULL,
    cuda_ms_median DOUBLE PRECISION,
    wall_ms_median DOUBLE PRECISION,
    gross_mj_median DOUBLE PRECISION,
    adjusted_mj_median DOUBLE PRECISION,
    adjusted_mj_min DOUBLE PRECISION,
    adjusted_mj_max DOUBLE PRECISION,
    adjusted_mj_sample_sd DOUBLE PRECISION,
    negative_adjusted_rounds INTEGER,
    provenance JSONB NOT NULL,
    verdict TEXT,
    exit_code SMALLINT,
    record_sha256 TEXT NOT NULL,
    loaded_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT run_pk PRIMARY KEY (run_id),
    CONSTRAINT run_dag_id_dag_run_id_key UNIQUE (dag_id, dag_run_id),
    CONSTRAINT run_baseline_key UNIQUE (run_id, workload, payload_id, device_id, protocol, environment_id),
    CONSTRAINT run_trigger_check CHECK (trigger IN ('scheduled', 'manual', 'backfill', 'import')),
    CONSTRAINT run_outcome_check CHECK (outcome IN ('ok', 'regression', 'bad_input', 'invalid_measurement', 'verification_mismatch', 'infrastructure_failure')),
    CONSTRAINT run_energy_trust_check CHECK (energy_trust IN ('verified', 'unverified', 'unavailable')),
    CONSTRAINT run_verdict_check CHECK (verdict IN ('ok', 'inconclusive', 'regression', 'bad_input', 'invalid_measurement', 'verification_mismatch', 'infrastructure_failure')),
    CONSTRAINT run_record_sha256_check CHECK (record_sha256 ~ '^[0-9a-f]{64}$'),
    CONSTRAINT run_kernel_ptx_sha256_check CHECK (kernel_ptx_sha256 ~ '^[0-9a-f]{64}$'),
    CONSTRAINT run_reason_check CHECK (outcome = 'ok' OR reason_code IS NOT NULL),
    CONSTRAINT run_completed_at_check CHECK (completed_at >= started_at),
    CONSTRAINT run_agreed_check CHECK ((total IS NULL) = (agreed IS NULL) AND agreed BETWEEN 0 AND total),
    CONSTRAINT run_device_correct_check CHECK (device_correct BETWEEN 0 AND total),
    CONSTRAINT run_reference_correct_check CHECK (reference_correct BETWEEN 0 AND total),
    CONSTRAINT run_draws_validated_check CHECK (draws_validated BETWEEN 0 AND draws_expected),
    CONSTRAINT run_rounds_valid_check CHECK (rounds_valid BETWEEN 0 AND rounds_expected),
    CONSTRAINT run_exit_code_check CHECK (exit_code BETWEEN 0 AND 5 AND (verdict IS NULL) = (exit_code IS NULL)),
    CONSTRAINT run_device_id_fk FOREIGN KEY(device_id) REFERENCES device (device_id),
    CONSTRAINT run_environment_id_fk FOREIGN KEY(environment_id) REFERENCES environment (environment_id),
    CONSTRAINT run_source_state_id_fk FOREIGN KEY(source_state_id) REFERENCES source_state (source_state_id),
    CONSTRAINT run_payload_id_fk FOREIGN KEY(payload_id) REFERENCES payload (payload_id)
);

CREATE INDEX run_started_at_idx ON run (started_at);
CREATE INDEX run_workload_device_id_started_at_idx ON run (workload, device_id, started_at);
COMMENT ON TABLE run IS 'Runs: one row a night, a manual run, a backfill or an imported record';
COMMENT ON COLUMN run.run_id IS 'Key; derived from dag_id and dag_run_id';
COMMENT ON COLUMN run.dag_id IS 'Airflow DAG';
COMMENT ON COLUMN run.dag_run_id IS 'Airflow DAG run';
COMMENT ON COLUMN run.workload IS 'What was tested, for example qda';
COMMENT ON COLUMN run.trigger IS 'scheduled, manual, backfill or import';
COMMENT ON COLUMN run.logical_date IS 'Airflow logical date (UTC)';
COMMENT ON COLUMN run.device_id IS 'Device; NULL when none could be chosen';
COMMENT ON COLUMN run.environment_id IS 'Environment of the GPU tasks';
COMMENT ON COLUMN run.source_state_id IS 'Pinned sources found';
COMMENT ON COLUMN run.payload_id IS 'Frozen draws used';
COMMENT ON COLUMN run.protocol IS 'Measurement protocol, for example classic';
COMMENT ON COLUMN run.params IS 'The request as accepted, all parameters with defaults filled in';
COMMENT ON COLUMN run.label IS 'Short name given by whoever triggered the run';
COMMENT ON COLUMN run.note IS 'Free text given by whoever triggered the run';
COMMENT ON COLUMN run.outcome IS 'Worst class of outcome of its tasks, before any comparison with a baseline';
COMMENT ON COLUMN run.reason_code IS 'Documented snake_case word for why the outcome is not ok';
COMMENT ON COLUMN run.reason_message IS 'One line for people: why the outcome is not ok';
COMMENT ON COLUMN run.started_at IS 'When the run began: when its request was accepted (UTC)';
COMMENT ON COLUMN run.completed_at IS 'When the last of its parts was recorded (UTC)';
COMMENT ON COLUMN run.energy_trust IS 'verified, unverified (nothing vouches for the sensor) or unavailable (no counter)';
COMMENT ON COLUMN run.energy_trust_reason IS 'Why the energy is not verified';
COMMENT ON COLUMN run.kernel_variant IS 'Variant of the kernels that ran';
COMMENT ON COLUMN run.kernel_ptx_sha256 IS 'sha256 of the PTX that ran; NULL where the device runs none';
COMMENT ON COLUMN run.draws_expected IS 'Draws asked for';
COMMENT ON COLUMN run.draws_validated IS 'Draws with a result';
COMMENT ON COLUMN run.total IS 'Predictions made over all validated draws';
COMMENT ON COLUMN run.agreed IS 'Predictions equal to the frozen ones';
COMMENT ON COLUMN run.device_correct IS 'Predictions of the device equal to the true label';
COMMENT ON COLUMN run.reference_correct IS 'Frozen predictions equal to the true label';
COMMENT ON COLUMN run.all_replays_equal_eager IS 'Whether every replay gave the predictions of the eager run';
COMMENT ON COLUMN run.rounds_expected IS 'Measurement rounds asked for';
COMMENT ON COLUMN run.rounds_valid IS 'Rounds whose figures may be used';
COMMENT ON COLUMN run.cuda_ms_median IS 'Median CUDA-event time a replay over valid rounds, ms';
COMMENT ON COLUMN run.wall_ms_median IS 'Median wall time a replay over valid rounds, ms';
COMMENT ON COLUMN run.gross_mj_median IS 'Median energy a replay with idle energy, over valid rounds, mJ';
COMMENT ON COLUMN run.adjusted_mj_median IS 'Median energy a replay without idle energy, over valid rounds, mJ';
COMMENT ON COLUMN run.adjusted_mj_min IS 'Smallest adjusted energy of a valid round, mJ a replay';
COMMENT ON COLUMN run.adjusted_mj_max IS 'Largest adjusted energy of a valid round, mJ a replay';
COMMENT ON COLUMN run.adjusted_mj_sample_sd IS 'Sample standard deviation (n-1) of the adjusted energy, mJ a replay';
COMMENT ON COLUMN run.negative_adjusted_rounds IS 'Valid rounds with a negative adjusted energy';
COMMENT ON COLUMN run.provenance IS 'Where the record comes from, when not from a run of this system';
COMMENT ON COLUMN run.verdict IS 'Verdict of the run; NULL until it was judged';
COMMENT ON COLUMN run.exit_code IS 'Exit status that goes with the verdict: 0 to 5';
COMMENT ON COLUMN run.record_sha256 IS 'sha256 of the record file that the row was loaded from';
COMMENT ON COLUMN run.loaded_at IS 'When the record was loaded (UTC)';

CREATE TABLE baseline (
    baseline_id INTEGER GENERATED ALWAYS AS IDENTITY,
    workload TEXT NOT NULL,
    payload_id INTEGER NOT NULL,
    device_id INTEGER NOT NULL,
    protocol TEXT NOT NULL,
    environment_id INTEGER NOT NULL,
    environment_class TEXT NOT NULL,
    run_id UUID NOT NULL,
    for_agreement BOOLEAN NOT NULL,
    for_time BOOLEAN NOT NULL,
    for_energy BOOLEAN NOT NULL,
    accepted_by TEXT NOT NULL,
    accepted_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    reason TEXT NOT NULL,
    retired_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT baseline_pk PRIMARY KEY (baseline_id),
    CONSTRAINT baseline_retired_at_check CHECK (retired_at >= accepted_at),
    CONSTRAINT baseline_purpose_check CHECK (for_agreement OR for_time OR for_energy),
    CONSTRAINT baseline_reason_check CHECK (btrim(accepted_by) <> '' AND btrim(reason) <> ''),
    CONSTRAINT baseline_payload_id_fk FOREIGN KEY(payload_id) REFERENCES payload (payload_id),
    CONSTRAINT baseline_device_id_fk FOREIGN KEY(device_id) REFERENCES device (device_id),
    CONSTRAINT baseline_run_fk FOREIGN KEY(run_id, workload, payload_id, device_id, protocol, environment_id)
        REFERENCES run (run_id, workload, payload_id, device_id, protocol, environment_id),
    CONSTRAINT baseline_environment_id_environment_class_fk FOREIGN KEY(environment_id, environment_class)
        REFERENCES environment (environment_id, environment_class)
);

CREATE UNIQUE INDEX baseline_current_key ON baseline (workload, payload_id, device_id, protocol, environment_class) WHERE retired_at IS NULL;
COMMENT ON TABLE baseline IS 'Accepted runs that others are compared with; at most one current one a key';
COMMENT ON COLUMN baseline.baseline_id IS 'Key';
COMMENT ON COLUMN baseline.workload IS 'Workload';
COMMENT ON COLUMN baseline.payload_id IS 'Payload';
COMMENT ON COLUMN baseline.device_id IS 'Device';
COMMENT ON COLUMN baseline.protocol IS 'Measurement protocol';
COMMENT ON COLUMN baseline.environment_id IS 'Environment of the accepted run';
COMMENT ON COLUMN baseline.environment_class IS 'Versions that start a new baseline when they change, of that environment';
COMMENT ON COLUMN baseline.run_id IS 'The accepted run';
COMMENT ON COLUMN baseline.for_agreement IS 'Whether predictions are compared with it (on every device)';
COMMENT ON COLUMN baseline.for_time IS 'Whether times are compared with it (same device only)';
COMMENT ON COLUMN baseline.for_energy IS 'Whether energies are compared with it (same device only)';
COMMENT ON COLUMN baseline.accepted_by IS 'Who accepted it';
COMMENT ON COLUMN baseline.accepted_at IS 'When it was accepted (UTC)';
COMMENT ON COLUMN baseline.reason IS 'Why it was accepted';
COMMENT ON COLUMN baseline.retired_at IS 'When it stopped being current (UTC); NULL while it is';

CREATE TABLE round (
    run_id UUID NOT NULL,
    arm TEXT NOT NULL,
    round SMALLINT NOT NULL,
    protocol TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason_code TEXT,
    reason_message TEXT,
    valid BOOLEAN NOT NULL,
    repeats BIGINT,
    cuda_ms DOUBLE PRECISION,
    wall_ms DOUBLE PRECISION,
    gross_mj DOUBLE PRECISION,
    adjusted_mj DOUBLE PRECISION,
    idle_before_w DOUBLE PRECISION,
    idle_after_w DOUBLE PRECISION,
    average_power_w DOUBLE PRECISION,
    cuda_ms_reason_code TEXT,
    cuda_ms_reason_message TEXT,
    energy_reason_code TEXT,
    energy_reason_message TEXT,
    counters JSONB NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT round_pk PRIMARY KEY (run_id, arm, round),
    CONSTRAINT round_outcome_check CHECK (outcome IN ('ok', 'regression', 'bad_input', 'invalid_measurement', 'verification_mismatch', 'infrastructure_failure')),
    CONSTRAINT round_valid_check CHECK (NOT valid OR outcome = 'ok'),
    CONSTRAINT round_reason_check CHECK (valid OR reason_code IS NOT NULL),
    CONSTRAINT round_repeats_check CHECK (repeats > 0),
    CONSTRAINT round_cuda_ms_check CHECK (NOT valid OR cuda_ms > 0),
    CONSTRAINT round_cuda_ms_reason_check CHECK (NOT valid OR (cuda_ms IS NULL) = (cuda_ms_reason_code IS NOT NULL)),
    CONSTRAINT round_wall_ms_check CHECK (NOT valid OR wall_ms > 0),
    CONSTRAINT round_gross_mj_check CHECK (NOT valid OR gross_mj >= 0),
    CONSTRAINT round_round_check CHECK (round >= 0),
    CONSTRAINT round_run_id_fk FOREIGN KEY(run_id) REFERENCES run (run_id)
);

COMMENT ON TABLE round IS 'Measurement rounds: derived figures and the raw counter readings they come from';
COMMENT ON COLUMN round.run_id IS 'Run';
COMMENT ON COLUMN round.arm IS 'What was measured, where a run measures more than one kernel';
COMMENT ON COLUMN round.round IS 'Number of the round, from 0';
COMMENT ON COLUMN round.protocol IS 'Measurement protocol';
COMMENT ON COLUMN round.outcome IS 'Class of outcome';
COMMENT ON COLUMN round.reason_code IS 'Documented snake_case word for why the outcome is not ok';
COMMENT ON COLUMN round.reason_message IS 'One line for people: why the outcome is not ok';
COMMENT ON COLUMN round.valid IS 'Whether its figures may be used; rounds that may not stay out of every statistic';
COMMENT ON COLUMN round.repeats IS 'Replays in the active window';
COMMENT ON COLUMN round.cuda_ms IS 'CUDA-event time a replay, ms; NULL without CUDA events';
COMMENT ON COLUMN round.wall_ms IS 'Wall time a replay, ms';
COMMENT ON COLUMN round.gross_mj IS 'Energy a replay with idle energy, mJ';
COMMENT ON COLUMN round.adjusted_mj IS 'Energy a replay without idle energy, mJ; may be negative';
COMMENT ON COLUMN round.idle_before_w IS 'Mean power of the idle window before, W';
COMMENT ON COLUMN round.idle_after_w IS 'Mean power of the idle window after, W';
COMMENT ON COLUMN round.average_power_w IS 'Mean power of the active window, W';
COMMENT ON COLUMN round.cuda_ms_reason_code IS 'Why there is no CUDA-event time: documented snake_case word';
COMMENT ON COLUMN round.cuda_ms_reason_message IS 'Why there is no CUDA-event time: one line';
COMMENT ON COLUMN round.energy_reason_code IS 'Why there are no energies: documented snake_case word';
COMMENT ON COLUMN round.energy_reason_message IS 'Why there are no energies: one line';
COMMENT ON COLUMN round.counters IS 'Raw readings: active and idle windows (mJ since driver load, monotonic s)';
COMMENT ON COLUMN round.created_at IS 'When its record was written (UTC)';

CREATE TABLE validation (
    run_id UUID NOT NULL,
    case_name TEXT NOT NULL,
    draw SMALLINT,
    outcome TEXT NOT NULL,
    reason_code TEXT,
    reason_message TEXT,
    payload_sha256 TEXT,
    total INTEGER,
    agreed INTEGER,
    device_correct INTEGER,
    reference_correct INTEGER,
    predictions_int32_sha256 TEXT,
    mismatches JSONB NOT NULL,
    replays_equal_eager BOOLEAN[] NOT NULL,
    scratch_poisoned BOOLEAN,
    graph_reused BOOLEAN,
    floats_equal_reference BOOLEAN,
    duration_s DOUBLE PRECISION,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT validation_pk PRIMARY KEY (run_id, case_name),
    CONSTRAINT validation_run_id_draw_key UNIQUE (run_id, draw),
    CONSTRAINT validation_outcome_check CHECK (outcome IN ('ok', 'regression', 'bad_input', 'invalid_measurement', 'verification_mismatch', 'infrastructure_failure')),
    CONSTRAINT validation_reason_check CHECK (outcome = 'ok' OR reason_code IS NOT NULL),
    CONSTRAINT validation_agreed_check CHECK ((total IS NULL) = (agreed IS NULL) AND agreed BETWEEN 0 AND total),
    CONSTRAINT validation_device_correct_check CHECK (device_correct BETWEEN 0 AND total),
    CONSTRAINT validation_reference_correct_check CHECK (reference_correct BETWEEN 0 AND total),
    CONSTRAINT validation_draw_check CHECK (draw >= 0),
    CONSTRAINT validation_payload_sha256_check CHECK (payload_sha256 ~ '^[0-9a-f]{64}$'),
    CONSTRAINT validation_predictions_int32_sha256_check CHECK (predictions_int32_sha256 ~ '^[0-9a-f]{64}$'),
    CONSTRAINT validation_run_id_fk FOREIGN KEY(run_id) REFERENCES run (run_id)
);

COMMENT ON TABLE validation IS 'Validations: the device''s predictions against the frozen ones, one row a draw';
COMMENT ON COLUMN validation.run_id IS 'Run';
COMMENT ON COLUMN validation.case_name IS 'What was validated, for example draw-03';
COMMENT ON COLUMN validation.draw IS 'Number of the draw, where the case is one';
COMMENT ON COLUMN validation.outcome IS 'Class of outcome: regression when a prediction or a replay differs';
COMMENT ON COLUMN validation.reason_code IS 'Documented snake_case word for why the outcome is not ok';
COMMENT ON COLUMN validation.reason_message IS 'One line for people: why the outcome is not ok';
COMMENT ON COLUMN validation.payload_sha256 IS 'sha256 of the file with the draw''s arrays, as found';
COMMENT ON COLUMN validation.total IS 'Predictions made; NULL when the case could not be run';
COMMENT ON COLUMN validation.agreed IS 'Predictions equal to the frozen ones';
COMMENT ON COLUMN validation.device_correct IS 'Predictions of the device equal to the true label';
COMMENT ON COLUMN validation.reference_correct IS 'Frozen predictions equal to the true label';
COMMENT ON COLUMN validation.predictions_int32_sha256 IS 'sha256 of the predictions as little-endian int32';
COMMENT ON COLUMN validation.mismatches IS 'Every prediction that differs: index, expected, found';
COMMENT ON COLUMN validation.replays_equal_eager IS 'For each replay, whether it gave the eager run''s predictions';
COMMENT ON COLUMN validation.scratch_poisoned IS 'Whether scratch memory was poisoned before the eager run and each replay';
COMMENT ON COLUMN validation.graph_reused IS 'Whether one captured graph was reused across changed inputs';
COMMENT ON COLUMN validation.floats_equal_reference IS 'Whether intermediate floats equal the reference bit by bit';
COMMENT ON COLUMN validation.duration_s IS 'Time the case took, s';
COMMENT ON COLUMN validation.created_at IS 'When its record was written (UTC)';

CREATE TABLE check_result (
    run_id UUID NOT NULL,
    check_name TEXT NOT NULL,
    step SMALLINT NOT NULL,
    verdict TEXT NOT NULL,
    metric TEXT NOT NULL,
    unit TEXT NOT NULL,
    value DOUBLE PRECISION,
    baseline_value DOUBLE PRECISION,
    baseline_low DOUBLE PRECISION,
    baseline_high DOUBLE PRECISION,
    direction TEXT,
    reason_code TEXT NOT NULL,
    reason TEXT NOT NULL,
    details JSONB NOT NULL,
    baseline_id INTEGER,
    checked_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT check_result_pk PRIMARY KEY (run_id, check_name, step),
    CONSTRAINT check_result_verdict_check CHECK (verdict IN ('ok', 'regressed', 'improved', 'inconclusive', 'invalid', 'unavailable')),
    CONSTRAINT check_result_direction_check CHECK (direction IN ('lower', 'higher', 'changed')),
    CONSTRAINT check_result_baseline_spread_check CHECK (baseline_low <= baseline_high),
    CONSTRAINT check_result_step_check CHECK (step >= 0),
    CONSTRAINT check_result_run_id_fk FOREIGN KEY(run_id) REFERENCES run (run_id),
    CONSTRAINT check_result_baseline_id_fk FOREIGN KEY(baseline_id) REFERENCES baseline (baseline_id)
);

COMMENT ON TABLE check_result IS 'Verdicts of the checks of each run';
COMMENT ON COLUMN check_result.run_id IS 'Run';
COMMENT ON COLUMN check_result.check_name IS 'agreement, energy, ...';
COMMENT ON COLUMN check_result.step IS '0: first look; 1 and later: after confirmation rounds';
COMMENT ON COLUMN check_result.verdict IS 'ok, regressed, improved, inconclusive, invalid or unavailable';
COMMENT ON COLUMN check_result.metric IS 'What was compared';
COMMENT ON COLUMN check_result.unit IS 'Unit of the figures';
COMMENT ON COLUMN check_result.value IS 'Figure of this run';
COMMENT ON COLUMN check_result.baseline_value IS 'Figure of the baseline';
COMMENT ON COLUMN check_result.baseline_low IS 'Lower edge of the baseline''s spread';
COMMENT ON COLUMN check_result.baseline_high IS 'Upper edge of the baseline''s spread';
COMMENT ON COLUMN check_result.direction IS 'Where the figure went: lower, higher or changed';
COMMENT ON COLUMN check_result.reason_code IS 'Documented snake_case word for the verdict''s reason';
COMMENT ON COLUMN check_result.reason IS 'One line for people';
COMMENT ON COLUMN check_result.details IS 'Everything else the check found';
COMMENT ON COLUMN check_result.baseline_id IS 'Baseline compared with';
COMMENT ON COLUMN check_result.checked_at IS 'When the check ran (UTC)';
-- A run that was never judged may be replaced by a later record of itself; nothing else is ever deleted.
GRANT DELETE ON validation, round, check_result TO nightly_writer;
COMMENT ON TABLE alembic_version IS 'Version of the schema, kept by the migrations';
COMMENT ON COLUMN alembic_version.version_num IS 'Migration that the database is at';
REVOKE INSERT, UPDATE ON alembic_version FROM nightly_writer;
