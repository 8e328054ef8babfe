-- Energy that can be trusted: figures with their uncertainty, power traces, telemetry and its gates.

ALTER TABLE run
    ADD COLUMN reference_joules_per_1e12_operations DOUBLE PRECISION,
    ADD COLUMN inject TEXT,
    ADD COLUMN seed BIGINT,
    DROP CONSTRAINT run_energy_trust_check,
    ADD CONSTRAINT run_energy_trust_check CHECK (energy_trust IN ('verified', 'failed', 'unverified', 'unavailable')),
    ADD CONSTRAINT run_inject_check CHECK (inject IS NULL OR btrim(inject) <> '' AND seed IS NOT NULL),
    ADD CONSTRAINT run_seed_check CHECK (seed >= 0);

COMMENT ON COLUMN run.energy_trust IS 'verified (every telemetry gate passed), failed (one did not), unverified (one was not made or could not be checked) or unavailable (no counter)';
COMMENT ON COLUMN run.reference_joules_per_1e12_operations IS 'Energy of the reference load, mean of before and after the rounds, J per 10^12 operations';
COMMENT ON COLUMN run.inject IS 'Effects that the simulated device was told to show; NULL: none';
COMMENT ON COLUMN run.seed IS 'Seed of what was random in the measurement; NULL where the request has none';

-- A baseline takes the trust in its energy from its run, so that it can be for energy only where no gate failed.
ALTER TABLE baseline DROP CONSTRAINT baseline_run_fk, ADD COLUMN energy_trust TEXT;
ALTER TABLE run
    DROP CONSTRAINT run_baseline_key,
    ADD CONSTRAINT run_baseline_key
        UNIQUE (run_id, workload, payload_id, device_id, protocol, environment_id, energy_trust);
UPDATE baseline SET energy_trust = run.energy_trust FROM run WHERE run.run_id = baseline.run_id;
ALTER TABLE baseline
    ALTER COLUMN energy_trust SET NOT NULL,
    ADD CONSTRAINT baseline_energy_trust_check CHECK (NOT for_energy OR energy_trust <> 'failed'),
    ADD CONSTRAINT baseline_run_fk
        FOREIGN KEY (run_id, workload, payload_id, device_id, protocol, environment_id, energy_trust)
        REFERENCES run (run_id, workload, payload_id, device_id, protocol, environment_id, energy_trust);

COMMENT ON COLUMN baseline.energy_trust IS 'Trust in the energy of the accepted run';

ALTER TABLE round
    ADD COLUMN tick_period_s DOUBLE PRECISION,
    ADD COLUMN read_latency_s DOUBLE PRECISION,
    ADD COLUMN counter_j DOUBLE PRECISION,
    ADD COLUMN integrated_j DOUBLE PRECISION,
    ADD COLUMN meters_relative_difference DOUBLE PRECISION,
    ADD COLUMN power_integral_mj DOUBLE PRECISION,
    ADD COLUMN sham_adjusted_mj DOUBLE PRECISION,
    ADD COLUMN earlier_attempts JSONB NOT NULL DEFAULT '[]',
    ADD CONSTRAINT round_tick_period_s_check CHECK (tick_period_s > 0),
    ADD CONSTRAINT round_read_latency_s_check CHECK (read_latency_s >= 0),
    ADD CONSTRAINT round_meters_check
        CHECK (num_nulls(counter_j, integrated_j, meters_relative_difference) IN (0, 3)),
    ADD CONSTRAINT round_power_integral_mj_check CHECK (power_integral_mj IS NULL OR counter_j IS NOT NULL),
    ADD CONSTRAINT round_earlier_attempts_check CHECK (jsonb_typeof(earlier_attempts) = 'array');
ALTER TABLE round ALTER COLUMN earlier_attempts DROP DEFAULT;  -- it was for the rounds that were there already

COMMENT ON COLUMN round.tick_period_s IS 'Update period of the energy counter that was reckoned with, s';
COMMENT ON COLUMN round.read_latency_s IS 'Duration of one reading of the counter, s';
COMMENT ON COLUMN round.counter_j IS 'Energy of the active window by the counter, J';
COMMENT ON COLUMN round.integrated_j IS 'Energy of the active window by the sampled power, J';
COMMENT ON COLUMN round.meters_relative_difference IS 'How far the two meters are apart, relative';
COMMENT ON COLUMN round.power_integral_mj IS 'Energy a replay without idle energy, by the sampled power alone, mJ';
COMMENT ON COLUMN round.sham_adjusted_mj IS 'What a window without work reads, over as many replays, mJ; NULL: none made';
COMMENT ON COLUMN round.earlier_attempts IS 'Why the round had to be measured again: code and message of each attempt';
COMMENT ON COLUMN round.counters IS 'Raw readings and states that every figure comes from (mJ since driver load, s)';

CREATE TABLE run_energy (
    run_id UUID NOT NULL,
    figure TEXT NOT NULL,
    subject TEXT NOT NULL,
    rounds INTEGER NOT NULL,
    median_mj DOUBLE PRECISION NOT NULL,
    min_mj DOUBLE PRECISION NOT NULL,
    max_mj DOUBLE PRECISION NOT NULL,
    sample_sd_mj DOUBLE PRECISION,
    detectable_mj DOUBLE PRECISION,
    per_reference_load DOUBLE PRECISION,
    CONSTRAINT run_energy_pk PRIMARY KEY (run_id, figure, subject),
    CONSTRAINT run_energy_figure_check CHECK (figure IN ('classic', 'aligned', 'audited', 'interleaved')),
    CONSTRAINT run_energy_subject_check CHECK (btrim(subject) <> ''),
    CONSTRAINT run_energy_rounds_check CHECK (rounds > 0),
    CONSTRAINT run_energy_median_mj_check CHECK (median_mj BETWEEN min_mj AND max_mj),
    CONSTRAINT run_energy_sample_sd_mj_check CHECK (sample_sd_mj >= 0),
    CONSTRAINT run_energy_spread_check CHECK ((rounds > 1) = (sample_sd_mj IS NOT NULL)),
    CONSTRAINT run_energy_detectable_mj_check CHECK (detectable_mj >= 0),
    CONSTRAINT run_energy_run_id_fk FOREIGN KEY(run_id) REFERENCES run (run_id)
);

COMMENT ON TABLE run_energy IS 'Energy of a replay over the valid rounds of a run, one row a figure';
COMMENT ON COLUMN run_energy.run_id IS 'Run';
COMMENT ON COLUMN run_energy.figure IS 'How it was measured: classic, aligned, audited or interleaved';
COMMENT ON COLUMN run_energy.subject IS 'What it is of: candidate, baseline, control, or a difference of two';
COMMENT ON COLUMN run_energy.rounds IS 'Valid rounds that have the figure';
COMMENT ON COLUMN run_energy.median_mj IS 'Median over those rounds, mJ a replay; may be negative';
COMMENT ON COLUMN run_energy.min_mj IS 'Smallest of them, mJ a replay';
COMMENT ON COLUMN run_energy.max_mj IS 'Largest of them, mJ a replay';
COMMENT ON COLUMN run_energy.sample_sd_mj IS 'Sample standard deviation (n-1), mJ a replay; NULL for one round';
COMMENT ON COLUMN run_energy.detectable_mj IS 'Smallest difference to another such run that is found in 80 of 100 cases at a level of 5 per cent, mJ';
COMMENT ON COLUMN run_energy.per_reference_load IS 'Median in units of 10^9 operations of the reference load: what may be compared across boards';

CREATE TABLE round_energy (
    run_id UUID NOT NULL,
    arm TEXT NOT NULL,
    round SMALLINT NOT NULL,
    figure TEXT NOT NULL,
    subject TEXT NOT NULL,
    adjusted_mj DOUBLE PRECISION NOT NULL,
    gross_mj DOUBLE PRECISION,
    idle_w DOUBLE PRECISION,
    tick_mj DOUBLE PRECISION NOT NULL,
    timing_mj DOUBLE PRECISION NOT NULL,
    quantisation_mj DOUBLE PRECISION NOT NULL,
    drift_mj DOUBLE PRECISION NOT NULL,
    combined_mj DOUBLE PRECISION NOT NULL,
    bias_mj DOUBLE PRECISION NOT NULL,
    degrees_of_freedom DOUBLE PRECISION,
    low_mj DOUBLE PRECISION NOT NULL,
    high_mj DOUBLE PRECISION NOT NULL,
    CONSTRAINT round_energy_pk PRIMARY KEY (run_id, arm, round, figure, subject),
    CONSTRAINT round_energy_run_id_arm_round_fk
        FOREIGN KEY(run_id, arm, round) REFERENCES round (run_id, arm, round),
    CONSTRAINT round_energy_figure_check CHECK (figure IN ('classic', 'aligned', 'audited', 'interleaved')),
    CONSTRAINT round_energy_subject_check CHECK (btrim(subject) <> ''),
    CONSTRAINT round_energy_uncertainty_check
        CHECK (least(tick_mj, timing_mj, quantisation_mj, drift_mj, combined_mj) >= 0),
    CONSTRAINT round_energy_degrees_of_freedom_check CHECK (degrees_of_freedom > 0),
    CONSTRAINT round_energy_interval_check CHECK (low_mj <= high_mj)
);

COMMENT ON TABLE round_energy IS 'Energy of a replay in one round with its uncertainty, one row a figure';
COMMENT ON COLUMN round_energy.run_id IS 'Run';
COMMENT ON COLUMN round_energy.arm IS 'What was measured, as in round';
COMMENT ON COLUMN round_energy.round IS 'Number of the round';
COMMENT ON COLUMN round_energy.figure IS 'How it was measured: classic, aligned, audited or interleaved';
COMMENT ON COLUMN round_energy.subject IS 'What it is of: candidate, baseline, control, or a difference of two';
COMMENT ON COLUMN round_energy.adjusted_mj IS 'Energy a replay without idle energy, mJ; may be negative';
COMMENT ON COLUMN round_energy.gross_mj IS 'Energy a replay with idle energy, mJ';
COMMENT ON COLUMN round_energy.idle_w IS 'Idle power that was taken off, W';
COMMENT ON COLUMN round_energy.tick_mj IS 'Standard uncertainty from the update period of the counter, mJ a replay';
COMMENT ON COLUMN round_energy.timing_mj IS 'Standard uncertainty from the moment of a reading within its call, mJ a replay';
COMMENT ON COLUMN round_energy.quantisation_mj IS 'Standard uncertainty from the unit of the counter, mJ a replay';
COMMENT ON COLUMN round_energy.drift_mj IS 'Standard uncertainty from idle power that wanders, mJ a replay';
COMMENT ON COLUMN round_energy.combined_mj IS 'Standard uncertainty, all components together, mJ a replay';
COMMENT ON COLUMN round_energy.bias_mj IS 'What the way of measuring is expected to read too much, mJ a replay';
COMMENT ON COLUMN round_energy.degrees_of_freedom IS 'Of the quantile that the interval was made with; NULL: a normal one';
COMMENT ON COLUMN round_energy.low_mj IS 'Lower edge of the 95 per cent interval, bias taken off, mJ a replay';
COMMENT ON COLUMN round_energy.high_mj IS 'Upper edge of the 95 per cent interval, bias taken off, mJ a replay';

CREATE TABLE round_trace (
    run_id UUID NOT NULL,
    arm TEXT NOT NULL,
    round SMALLINT NOT NULL,
    period_s DOUBLE PRECISION NOT NULL,
    power_kind TEXT,
    csv TEXT NOT NULL,
    error_code TEXT,
    error_message TEXT,
    CONSTRAINT round_trace_pk PRIMARY KEY (run_id, arm, round),
    CONSTRAINT round_trace_run_id_arm_round_fk
        FOREIGN KEY(run_id, arm, round) REFERENCES round (run_id, arm, round),
    CONSTRAINT round_trace_power_kind_check CHECK (power_kind IN ('instantaneous', 'average')),
    CONSTRAINT round_trace_period_s_check CHECK (period_s > 0),
    CONSTRAINT round_trace_error_check CHECK ((error_code IS NULL) = (error_message IS NULL))
);

COMMENT ON TABLE round_trace IS 'Power samples of a round; may be deleted when old, everything else stays complete without them';
COMMENT ON COLUMN round_trace.run_id IS 'Run';
COMMENT ON COLUMN round_trace.arm IS 'What was measured, as in round';
COMMENT ON COLUMN round_trace.round IS 'Number of the round';
COMMENT ON COLUMN round_trace.period_s IS 'Time from sample to sample that was asked for, s';
COMMENT ON COLUMN round_trace.power_kind IS 'instantaneous or average (of one second); NULL: no power was sampled';
COMMENT ON COLUMN round_trace.csv IS 'Samples as CSV with a header line; empty where a value could not be had';
COMMENT ON COLUMN round_trace.error_code IS 'Why sampling ended early or cannot be relied upon: documented snake_case word';
COMMENT ON COLUMN round_trace.error_message IS 'Why sampling ended early or cannot be relied upon: one line';

CREATE TABLE telemetry (
    run_id UUID NOT NULL,
    moment TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason_code TEXT,
    reason_message TEXT,
    energy_reason_code TEXT,
    energy_reason_message TEXT,
    tick_period_s DOUBLE PRECISION,
    read_latency_s DOUBLE PRECISION,
    idle_power_w DOUBLE PRECISION,
    idle_slope_w_per_s DOUBLE PRECISION,
    idle_walk_w_per_sqrt_s DOUBLE PRECISION,
    reference_size INTEGER,
    reference_repeats INTEGER,
    reference_operations DOUBLE PRECISION,
    reference_duration_s DOUBLE PRECISION,
    reference_energy_j DOUBLE PRECISION,
    reference_idle_w DOUBLE PRECISION,
    reference_above_idle_w DOUBLE PRECISION,
    reference_joules_per_1e12_operations DOUBLE PRECISION,
    reference_tera_operations_per_s DOUBLE PRECISION,
    reference_largest_error DOUBLE PRECISION,
    reference_result_verified BOOLEAN,
    readings JSONB NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT telemetry_pk PRIMARY KEY (run_id, moment),
    CONSTRAINT telemetry_moment_check CHECK (moment IN ('before', 'after')),
    CONSTRAINT telemetry_outcome_check
        CHECK (outcome IN ('ok', 'regression', 'bad_input', 'invalid_measurement', 'verification_mismatch', 'infrastructure_failure')),
    CONSTRAINT telemetry_reason_check CHECK (outcome = 'ok' OR reason_code IS NOT NULL),
    CONSTRAINT telemetry_tick_period_s_check CHECK (tick_period_s > 0),
    CONSTRAINT telemetry_read_latency_s_check CHECK (read_latency_s >= 0),
    CONSTRAINT telemetry_reference_size_check CHECK (least(reference_size, reference_repeats) > 0),
    CONSTRAINT telemetry_reference_work_check
        CHECK (least(reference_operations, reference_duration_s, reference_tera_operations_per_s) > 0),
    CONSTRAINT telemetry_reference_complete_check CHECK (num_nulls(
        reference_size, reference_repeats, reference_operations, reference_duration_s, reference_energy_j,
        reference_idle_w, reference_above_idle_w, reference_joules_per_1e12_operations,
        reference_tera_operations_per_s, reference_largest_error, reference_result_verified
    ) IN (0, 11)),
    CONSTRAINT telemetry_idle_complete_check
        CHECK (num_nulls(idle_power_w, idle_slope_w_per_s, idle_walk_w_per_sqrt_s) IN (0, 3)),
    CONSTRAINT telemetry_run_id_fk FOREIGN KEY(run_id) REFERENCES run (run_id)
);

COMMENT ON TABLE telemetry IS 'The energy sensor before and after the rounds: a known load, the properties of the counter';
COMMENT ON COLUMN telemetry.run_id IS 'Run';
COMMENT ON COLUMN telemetry.moment IS 'before or after the rounds';
COMMENT ON COLUMN telemetry.outcome IS 'Class of outcome';
COMMENT ON COLUMN telemetry.reason_code IS 'Documented snake_case word for why the outcome is not ok';
COMMENT ON COLUMN telemetry.reason_message IS 'One line for people: why the outcome is not ok';
COMMENT ON COLUMN telemetry.energy_reason_code IS 'Why the device has no energy to look at: documented snake_case word';
COMMENT ON COLUMN telemetry.energy_reason_message IS 'Why the device has no energy to look at: one line';
COMMENT ON COLUMN telemetry.tick_period_s IS 'Update period of the energy counter as measured, s';
COMMENT ON COLUMN telemetry.read_latency_s IS 'Duration of one reading of the counter, s';
COMMENT ON COLUMN telemetry.idle_power_w IS 'Mean power of a long idle stretch, context present, W';
COMMENT ON COLUMN telemetry.idle_slope_w_per_s IS 'Steady slope of the idle power, W/s';
COMMENT ON COLUMN telemetry.idle_walk_w_per_sqrt_s IS 'Random walk of the idle power, W a root of s';
COMMENT ON COLUMN telemetry.reference_size IS 'Reference load: n of its n x n x n matrix product';
COMMENT ON COLUMN telemetry.reference_repeats IS 'Reference load: products made';
COMMENT ON COLUMN telemetry.reference_operations IS 'Reference load: operations of all of them';
COMMENT ON COLUMN telemetry.reference_duration_s IS 'Reference load: time it took, s';
COMMENT ON COLUMN telemetry.reference_energy_j IS 'Reference load: energy by the counter, J';
COMMENT ON COLUMN telemetry.reference_idle_w IS 'Reference load: idle power that was taken off, W';
COMMENT ON COLUMN telemetry.reference_above_idle_w IS 'Reference load: power above idle, W';
COMMENT ON COLUMN telemetry.reference_joules_per_1e12_operations IS 'Reference load: energy above idle, J per 10^12 operations';
COMMENT ON COLUMN telemetry.reference_tera_operations_per_s IS 'Reference load: 10^12 operations a second';
COMMENT ON COLUMN telemetry.reference_largest_error IS 'Reference load: largest relative error of the elements checked';
COMMENT ON COLUMN telemetry.reference_result_verified IS 'Reference load: whether its result is right';
COMMENT ON COLUMN telemetry.readings IS 'States of the GPU before and after, counter steps and wander of the idle stretch';
COMMENT ON COLUMN telemetry.created_at IS 'When its record was written (UTC)';

CREATE TABLE telemetry_trace (
    run_id UUID NOT NULL,
    moment TEXT NOT NULL,
    period_s DOUBLE PRECISION NOT NULL,
    power_kind TEXT,
    csv TEXT NOT NULL,
    error_code TEXT,
    error_message TEXT,
    CONSTRAINT telemetry_trace_pk PRIMARY KEY (run_id, moment),
    CONSTRAINT telemetry_trace_run_id_moment_fk
        FOREIGN KEY(run_id, moment) REFERENCES telemetry (run_id, moment),
    CONSTRAINT telemetry_trace_power_kind_check CHECK (power_kind IN ('instantaneous', 'average')),
    CONSTRAINT telemetry_trace_period_s_check CHECK (period_s > 0),
    CONSTRAINT telemetry_trace_error_check CHECK ((error_code IS NULL) = (error_message IS NULL))
);

COMMENT ON TABLE telemetry_trace IS 'Power samples of the reference load; may be deleted when old';
COMMENT ON COLUMN telemetry_trace.run_id IS 'Run';
COMMENT ON COLUMN telemetry_trace.moment IS 'before or after the rounds';
COMMENT ON COLUMN telemetry_trace.period_s IS 'Time from sample to sample that was asked for, s';
COMMENT ON COLUMN telemetry_trace.power_kind IS 'instantaneous or average (of one second); NULL: no power was sampled';
COMMENT ON COLUMN telemetry_trace.csv IS 'Samples as CSV with a header line; empty where a value could not be had';
COMMENT ON COLUMN telemetry_trace.error_code IS 'Why sampling ended early or cannot be relied upon: documented snake_case word';
COMMENT ON COLUMN telemetry_trace.error_message IS 'Why sampling ended early or cannot be relied upon: one line';

CREATE TABLE telemetry_gate (
    run_id UUID NOT NULL,
    gate TEXT NOT NULL,
    at TEXT NOT NULL,
    passed BOOLEAN,
    value DOUBLE PRECISION,
    unit TEXT NOT NULL,
    low DOUBLE PRECISION,
    high DOUBLE PRECISION,
    reason_code TEXT,
    reason_message TEXT,
    CONSTRAINT telemetry_gate_pk PRIMARY KEY (run_id, gate, at),
    CONSTRAINT telemetry_gate_gate_check CHECK (gate IN (
        'reference_load', 'meters_agree', 'sham_window', 'round_spread', 'sampling', 'exclusive', 'output_verified'
    )),
    CONSTRAINT telemetry_gate_at_check CHECK (at ~ '^(before|after|run|round-[0-9]{2,4})$'),
    CONSTRAINT telemetry_gate_reason_check CHECK (passed IS TRUE OR reason_code IS NOT NULL),
    CONSTRAINT telemetry_gate_bounds_check CHECK (low <= high),
    CONSTRAINT telemetry_gate_run_id_fk FOREIGN KEY(run_id) REFERENCES run (run_id)
);

COMMENT ON TABLE telemetry_gate IS 'Telemetry gates: what vouches for the energy of a run, one row a check';
COMMENT ON COLUMN telemetry_gate.run_id IS 'Run';
COMMENT ON COLUMN telemetry_gate.gate IS 'Name of the gate';
COMMENT ON COLUMN telemetry_gate.at IS 'Where it was checked: before, after, run (over all rounds) or round-NN';
COMMENT ON COLUMN telemetry_gate.passed IS 'Whether it passed; NULL: unchecked, which does not pass';
COMMENT ON COLUMN telemetry_gate.value IS 'What was found';
COMMENT ON COLUMN telemetry_gate.unit IS 'Unit of value and bounds';
COMMENT ON COLUMN telemetry_gate.low IS 'Smallest value that passes';
COMMENT ON COLUMN telemetry_gate.high IS 'Largest value that passes';
COMMENT ON COLUMN telemetry_gate.reason_code IS 'Why it failed or could not be checked: documented snake_case word';
COMMENT ON COLUMN telemetry_gate.reason_message IS 'Why it failed or could not be checked: one line';

GRANT DELETE ON run_energy, round_energy, round_trace, telemetry, telemetry_trace, telemetry_gate TO nightly_writer;
