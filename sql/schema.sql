-- The results database as the migrations (sql/migrations) and the views (sql/views) make it, for reading.
-- Written by `./nightly schema`; a test fails when it is not what they make.

CREATE FUNCTION baseline_is_not_withdrawn() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public'
    AS $$
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

COMMENT ON FUNCTION baseline_is_not_withdrawn() IS 'Refuses a current baseline of what was withdrawn';

CREATE FUNCTION part_of_run_is_history() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public'
    AS $$
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

COMMENT ON FUNCTION part_of_run_is_history() IS 'Refuses changes of what belongs to a judged run';

CREATE FUNCTION run_is_history() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public'
    AS $$
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

COMMENT ON FUNCTION run_is_history() IS 'Refuses changes of a judged run but for its verdict';

CREATE TABLE alembic_version (
    version_num character varying(32) NOT NULL
);

COMMENT ON TABLE alembic_version IS 'Version of the schema, kept by the migrations';

COMMENT ON COLUMN alembic_version.version_num IS 'Migration that the database is at';

CREATE TABLE alert (
    alert_id integer NOT NULL,
    workload text NOT NULL,
    device_id integer,
    metric text NOT NULL,
    direction text NOT NULL,
    outcome text NOT NULL,
    state text NOT NULL,
    first_run_id uuid,
    last_run_id uuid,
    occurrences integer NOT NULL,
    value double precision,
    baseline_value double precision,
    unit text,
    baseline_id integer,
    text text NOT NULL,
    opened_at timestamp with time zone DEFAULT now() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    acknowledged_by text,
    acknowledged_at timestamp with time zone,
    acknowledged_reason text,
    muted_until timestamp with time zone,
    resolved_at timestamp with time zone,
    message text,
    tell_since timestamp with time zone,
    CONSTRAINT alert_acknowledged_at_check CHECK (((acknowledged_at >= opened_at) AND (acknowledged_at <= muted_until))),
    CONSTRAINT alert_acknowledged_check CHECK ((num_nulls(acknowledged_by, acknowledged_at, acknowledged_reason) = ANY (ARRAY[0, 3]))),
    CONSTRAINT alert_acknowledged_reason_check CHECK (((btrim(acknowledged_by) <> ''::text) AND (btrim(acknowledged_reason) <> ''::text))),
    CONSTRAINT alert_device_id_check CHECK ((device_id > 0)),
    CONSTRAINT alert_direction_check CHECK ((direction = ANY (ARRAY['lower'::text, 'higher'::text, 'changed'::text, 'missing'::text]))),
    CONSTRAINT alert_figures_check CHECK (((num_nonnulls(value, baseline_value) = 0) OR (unit IS NOT NULL))),
    CONSTRAINT alert_finite_check CHECK (((GREATEST(value, baseline_value) < 'Infinity'::double precision) AND (LEAST(value, baseline_value) > '-Infinity'::double precision))),
    CONSTRAINT alert_last_seen_at_check CHECK ((last_seen_at >= opened_at)),
    CONSTRAINT alert_life_cycle_check CHECK (
CASE state
    WHEN 'open'::text THEN ((acknowledged_at IS NULL) AND (muted_until IS NULL))
    WHEN 'acknowledged'::text THEN ((acknowledged_at IS NOT NULL) AND (muted_until IS NULL))
    WHEN 'muted'::text THEN ((acknowledged_at IS NOT NULL) AND (muted_until IS NOT NULL))
    ELSE ((muted_until IS NULL) OR (acknowledged_at IS NOT NULL))
END),
    CONSTRAINT alert_occurrences_check CHECK ((occurrences > 0)),
    CONSTRAINT alert_outcome_check CHECK ((outcome = ANY (ARRAY['regression'::text, 'bad_input'::text, 'invalid_measurement'::text, 'verification_mismatch'::text, 'infrastructure_failure'::text, 'environment_change'::text]))),
    CONSTRAINT alert_resolved_at_check CHECK ((((state = 'resolved'::text) = (resolved_at IS NOT NULL)) AND (resolved_at >= opened_at))),
    CONSTRAINT alert_runs_check CHECK (((first_run_id IS NULL) OR (last_run_id IS NOT NULL))),
    CONSTRAINT alert_state_check CHECK ((state = ANY (ARRAY['open'::text, 'acknowledged'::text, 'muted'::text, 'resolved'::text]))),
    CONSTRAINT alert_tell_since_check CHECK ((tell_since >= opened_at)),
    CONSTRAINT alert_text_check CHECK (((btrim(workload) <> ''::text) AND (btrim(metric) <> ''::text) AND (btrim(text) <> ''::text) AND (btrim(message) <> ''::text))),
    CONSTRAINT alert_unit_check CHECK ((unit = ANY (ARRAY['predictions'::text, 'mJ'::text, 'J'::text, 'ms'::text, 's'::text, 'W'::text, 'ratio'::text, 'J per 10^12 operations'::text, 'nights'::text, 'versions'::text, 'bytes'::text, 'checks'::text, 'hashes'::text])))
);

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

COMMENT ON COLUMN alert.text IS 'What people are told, in one line, as it was last told';

COMMENT ON COLUMN alert.opened_at IS 'When it was opened (UTC)';

COMMENT ON COLUMN alert.last_seen_at IS 'When it was last seen (UTC)';

COMMENT ON COLUMN alert.acknowledged_by IS 'Who has seen it';

COMMENT ON COLUMN alert.acknowledged_at IS 'When it was acknowledged (UTC)';

COMMENT ON COLUMN alert.acknowledged_reason IS 'What is known of its cause';

COMMENT ON COLUMN alert.muted_until IS 'When its mute ends or ended (UTC)';

COMMENT ON COLUMN alert.resolved_at IS 'When it was resolved (UTC); NULL while it is not';

COMMENT ON COLUMN alert.message IS 'The message that goes with that line; NULL: none';

COMMENT ON COLUMN alert.tell_since IS 'Since when a channel without a later event notified has something to tell, while the alert is open (UTC); NULL: none has';

ALTER TABLE alert ALTER COLUMN alert_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME alert_alert_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE alert_event (
    alert_event_id integer NOT NULL,
    alert_id integer NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    event text NOT NULL,
    author text NOT NULL,
    text text NOT NULL,
    run_id uuid,
    night timestamp with time zone,
    channel text,
    CONSTRAINT alert_event_author_check CHECK ((btrim(author) <> ''::text)),
    CONSTRAINT alert_event_channel_check CHECK ((channel = ANY (ARRAY['smtp'::text, 'slack'::text, 'webhook'::text]))),
    CONSTRAINT alert_event_delivery_check CHECK (((channel IS NULL) OR (event = ANY (ARRAY['notified'::text, 'notification_failed'::text])))),
    CONSTRAINT alert_event_event_check CHECK ((event = ANY (ARRAY['opened'::text, 'seen_again'::text, 'acknowledged'::text, 'muted'::text, 'mute_ended'::text, 'resolved'::text, 'reopened'::text, 'notified'::text, 'notification_failed'::text]))),
    CONSTRAINT alert_event_night_check CHECK ((num_nonnulls(run_id, night) <= 1))
);

COMMENT ON TABLE alert_event IS 'Everything that happened to alerts; rows are added and never changed';

COMMENT ON COLUMN alert_event.alert_event_id IS 'Key, in the order of what happened';

COMMENT ON COLUMN alert_event.alert_id IS 'Alert';

COMMENT ON COLUMN alert_event.at IS 'When it happened (UTC)';

COMMENT ON COLUMN alert_event.event IS 'opened, seen_again, acknowledged, muted, mute_ended, resolved, reopened, notified, ...';

COMMENT ON COLUMN alert_event.author IS 'Who did it, a person or a part of this system';

COMMENT ON COLUMN alert_event.text IS 'What was said, sent, or given as a reason';

COMMENT ON COLUMN alert_event.run_id IS 'Run that caused it';

COMMENT ON COLUMN alert_event.night IS 'Planned time of the night that caused it, where no run did (UTC)';

COMMENT ON COLUMN alert_event.channel IS 'Of a delivery: smtp, slack or webhook';

ALTER TABLE alert_event ALTER COLUMN alert_event_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME alert_event_alert_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE baseline (
    baseline_id integer NOT NULL,
    workload text NOT NULL,
    payload_id integer NOT NULL,
    device_id integer NOT NULL,
    protocol text NOT NULL,
    environment_id integer NOT NULL,
    environment_class text NOT NULL,
    run_id uuid NOT NULL,
    for_agreement boolean NOT NULL,
    for_time boolean NOT NULL,
    for_energy boolean NOT NULL,
    accepted_by text NOT NULL,
    accepted_at timestamp with time zone DEFAULT now() NOT NULL,
    reason text NOT NULL,
    retired_at timestamp with time zone,
    energy_trust text NOT NULL,
    retired_by text,
    retired_reason text,
    CONSTRAINT baseline_energy_trust_check CHECK (((NOT for_energy) OR (energy_trust <> 'failed'::text))),
    CONSTRAINT baseline_purpose_check CHECK ((for_agreement OR for_time OR for_energy)),
    CONSTRAINT baseline_reason_check CHECK (((btrim(accepted_by) <> ''::text) AND (btrim(reason) <> ''::text))),
    CONSTRAINT baseline_retired_at_check CHECK ((retired_at >= accepted_at)),
    CONSTRAINT baseline_retired_by_check CHECK (((retired_by IS NULL) OR (retired_at IS NOT NULL))),
    CONSTRAINT baseline_retired_check CHECK ((num_nulls(retired_by, retired_reason) = ANY (ARRAY[0, 2]))),
    CONSTRAINT baseline_retired_reason_check CHECK (((btrim(retired_by) <> ''::text) AND (btrim(retired_reason) <> ''::text)))
);

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

COMMENT ON COLUMN baseline.energy_trust IS 'Trust in the energy of the accepted run';

COMMENT ON COLUMN baseline.retired_by IS 'Who ended it; NULL while it is current, and for those of the first versions';

COMMENT ON COLUMN baseline.retired_reason IS 'Why it was ended';

ALTER TABLE baseline ALTER COLUMN baseline_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME baseline_baseline_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE device (
    device_id integer NOT NULL,
    kind text NOT NULL,
    uuid text NOT NULL,
    name text NOT NULL,
    memory_total_bytes bigint,
    multiprocessors integer,
    compute_capability text,
    CONSTRAINT device_compute_capability_check CHECK ((compute_capability ~ '^[0-9]+[.][0-9]+$'::text)),
    CONSTRAINT device_kind_check CHECK ((kind = ANY (ARRAY['cuda'::text, 'emulated'::text, 'reference'::text, 'simulated'::text]))),
    CONSTRAINT device_names_check CHECK (((btrim(uuid) <> ''::text) AND (btrim(name) <> ''::text))),
    CONSTRAINT device_size_check CHECK ((LEAST(memory_total_bytes, (multiprocessors)::bigint) > 0))
);

COMMENT ON TABLE device IS 'Devices that runs were made on, one row a board and model';

COMMENT ON COLUMN device.device_id IS 'Key';

COMMENT ON COLUMN device.kind IS 'cuda, emulated, reference or simulated; figures are never compared across kinds';

COMMENT ON COLUMN device.uuid IS 'Identity of one board (of one machine, for a CPU device)';

COMMENT ON COLUMN device.name IS 'Model name as the driver gives it';

COMMENT ON COLUMN device.memory_total_bytes IS 'Memory in bytes, as first seen';

COMMENT ON COLUMN device.multiprocessors IS 'Number of streaming multiprocessors, as first seen';

COMMENT ON COLUMN device.compute_capability IS 'CUDA compute capability, for example 8.0, as first seen';

CREATE TABLE payload (
    payload_id integer NOT NULL,
    name text NOT NULL,
    manifest_sha256 text NOT NULL,
    CONSTRAINT payload_manifest_sha256_check CHECK ((manifest_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT payload_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9_-]{0,63}$'::text))
);

COMMENT ON TABLE payload IS 'Named sets of frozen draws';

COMMENT ON COLUMN payload.payload_id IS 'Key';

COMMENT ON COLUMN payload.name IS 'Name of the set of frozen draws';

COMMENT ON COLUMN payload.manifest_sha256 IS 'sha256 of its manifest';

CREATE TABLE run (
    run_id uuid NOT NULL,
    dag_id text NOT NULL,
    dag_run_id text NOT NULL,
    workload text NOT NULL,
    trigger text NOT NULL,
    logical_date timestamp with time zone,
    device_id integer,
    environment_id integer,
    source_state_id integer,
    payload_id integer,
    protocol text NOT NULL,
    params jsonb NOT NULL,
    label text,
    note text,
    outcome text NOT NULL,
    reason_code text,
    reason_message text,
    started_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    energy_trust text NOT NULL,
    energy_trust_reason text,
    kernel_variant text,
    kernel_ptx_sha256 text,
    draws_expected integer NOT NULL,
    draws_validated integer NOT NULL,
    total integer,
    agreed integer,
    device_correct integer,
    reference_correct integer,
    all_replays_equal_eager boolean,
    rounds_expected integer NOT NULL,
    rounds_valid integer NOT NULL,
    cuda_ms_median double precision,
    wall_ms_median double precision,
    gross_mj_median double precision,
    adjusted_mj_median double precision,
    adjusted_mj_min double precision,
    adjusted_mj_max double precision,
    adjusted_mj_sample_sd double precision,
    negative_adjusted_rounds integer,
    provenance jsonb NOT NULL,
    verdict text,
    exit_code smallint,
    record_sha256 text NOT NULL,
    loaded_at timestamp with time zone DEFAULT now() NOT NULL,
    reference_joules_per_1e12_operations double precision,
    inject text,
    seed bigint,
    confirmation_rounds integer,
    confirmation_reason_code text,
    confirmation_reason_message text,
    confirmation_looks jsonb,
    candidate boolean DEFAULT false NOT NULL,
    candidate_origin jsonb,
    pinned_variant text,
    pinned_ptx_sha256 text,
    CONSTRAINT run_adjusted_mj_check CHECK ((num_nulls(adjusted_mj_median, adjusted_mj_min, adjusted_mj_max, negative_adjusted_rounds) = ANY (ARRAY[0, 4]))),
    CONSTRAINT run_adjusted_mj_median_check CHECK (((adjusted_mj_median >= adjusted_mj_min) AND (adjusted_mj_median <= adjusted_mj_max))),
    CONSTRAINT run_adjusted_mj_sample_sd_check CHECK ((adjusted_mj_sample_sd >= (0)::double precision)),
    CONSTRAINT run_agreed_check CHECK ((((total IS NULL) = (agreed IS NULL)) AND ((agreed >= 0) AND (agreed <= total)))),
    CONSTRAINT run_candidate_check CHECK ((candidate OR (num_nonnulls(candidate_origin, pinned_variant, pinned_ptx_sha256) = 0))),
    CONSTRAINT run_candidate_origin_object_check CHECK ((jsonb_typeof(candidate_origin) = 'object'::text)),
    CONSTRAINT run_completed_at_check CHECK ((completed_at >= started_at)),
    CONSTRAINT run_confirmation_check CHECK ((num_nulls(confirmation_rounds, confirmation_reason_code, confirmation_reason_message, confirmation_looks) = ANY (ARRAY[0, 4]))),
    CONSTRAINT run_confirmation_looks_array_check CHECK ((jsonb_typeof(confirmation_looks) = 'array'::text)),
    CONSTRAINT run_confirmation_rounds_check CHECK (((confirmation_rounds >= 0) AND (confirmation_rounds <= rounds_expected))),
    CONSTRAINT run_device_correct_check CHECK (((device_correct >= 0) AND (device_correct <= total))),
    CONSTRAINT run_draws_validated_check CHECK (((draws_validated >= 0) AND (draws_validated <= draws_expected))),
    CONSTRAINT run_energy_trust_check CHECK ((energy_trust = ANY (ARRAY['verified'::text, 'failed'::text, 'unverified'::text, 'unavailable'::text]))),
    CONSTRAINT run_exit_code_check CHECK ((((exit_code >= 0) AND (exit_code <= 5)) AND ((verdict IS NULL) = (exit_code IS NULL)))),
    CONSTRAINT run_finite_check CHECK (((GREATEST(cuda_ms_median, wall_ms_median, gross_mj_median, adjusted_mj_median, adjusted_mj_min, adjusted_mj_max, adjusted_mj_sample_sd, reference_joules_per_1e12_operations) < 'Infinity'::double precision) AND (LEAST(cuda_ms_median, wall_ms_median, gross_mj_median, adjusted_mj_median, adjusted_mj_min, adjusted_mj_max, adjusted_mj_sample_sd, reference_joules_per_1e12_operations) > '-Infinity'::double precision))),
    CONSTRAINT run_gross_mj_median_check CHECK ((gross_mj_median >= (0)::double precision)),
    CONSTRAINT run_inject_check CHECK (((inject IS NULL) OR ((btrim(inject) <> ''::text) AND (seed IS NOT NULL)))),
    CONSTRAINT run_kernel_ptx_sha256_check CHECK ((kernel_ptx_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT run_names_check CHECK (((btrim(dag_id) <> ''::text) AND (btrim(dag_run_id) <> ''::text) AND (btrim(workload) <> ''::text))),
    CONSTRAINT run_negative_adjusted_rounds_check CHECK (((negative_adjusted_rounds >= 0) AND (negative_adjusted_rounds <= rounds_valid))),
    CONSTRAINT run_outcome_check CHECK ((outcome = ANY (ARRAY['ok'::text, 'regression'::text, 'bad_input'::text, 'invalid_measurement'::text, 'verification_mismatch'::text, 'infrastructure_failure'::text]))),
    CONSTRAINT run_params_object_check CHECK ((jsonb_typeof(params) = 'object'::text)),
    CONSTRAINT run_pinned_check CHECK (((pinned_ptx_sha256 IS NULL) OR (pinned_variant IS NOT NULL))),
    CONSTRAINT run_pinned_ptx_sha256_check CHECK ((pinned_ptx_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT run_protocol_check CHECK ((protocol = ANY (ARRAY['classic'::text, 'audited'::text, 'interleaved'::text, 'trial'::text]))),
    CONSTRAINT run_provenance_object_check CHECK ((jsonb_typeof(provenance) = 'object'::text)),
    CONSTRAINT run_reason_check CHECK (((outcome = 'ok'::text) OR (reason_code IS NOT NULL))),
    CONSTRAINT run_record_sha256_check CHECK ((record_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT run_reference_correct_check CHECK (((reference_correct >= 0) AND (reference_correct <= total))),
    CONSTRAINT run_rounds_valid_check CHECK (((rounds_valid >= 0) AND (rounds_valid <= rounds_expected))),
    CONSTRAINT run_seed_check CHECK ((seed >= 0)),
    CONSTRAINT run_times_check CHECK ((LEAST(cuda_ms_median, wall_ms_median) > (0)::double precision)),
    CONSTRAINT run_trigger_check CHECK ((trigger = ANY (ARRAY['scheduled'::text, 'manual'::text, 'backfill'::text, 'import'::text]))),
    CONSTRAINT run_verdict_check CHECK ((verdict = ANY (ARRAY['ok'::text, 'inconclusive'::text, 'regression'::text, 'bad_input'::text, 'invalid_measurement'::text, 'verification_mismatch'::text, 'infrastructure_failure'::text]))),
    CONSTRAINT run_verdict_exit_code_check CHECK ((exit_code =
CASE verdict
    WHEN 'inconclusive'::text THEN 0
    WHEN 'ok'::text THEN 0
    WHEN 'regression'::text THEN 1
    WHEN 'bad_input'::text THEN 2
    WHEN 'invalid_measurement'::text THEN 3
    WHEN 'verification_mismatch'::text THEN 4
    WHEN 'infrastructure_failure'::text THEN 5
    ELSE NULL::integer
END))
);

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

COMMENT ON COLUMN run.energy_trust IS 'verified (every telemetry gate passed), failed (one did not), unverified (one was not made or could not be checked) or unavailable (no counter)';

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

COMMENT ON COLUMN run.rounds_expected IS 'Measurement rounds asked for, and the confirmation rounds that were planned';

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

COMMENT ON COLUMN run.reference_joules_per_1e12_operations IS 'Energy of the reference load, mean of before and after the rounds, J per 10^12 operations';

COMMENT ON COLUMN run.inject IS 'Effects that the simulated device was told to show; NULL: none';

COMMENT ON COLUMN run.seed IS 'Seed of what was random in the measurement; NULL where the request has none';

COMMENT ON COLUMN run.confirmation_rounds IS 'Confirmation rounds planned after a look at the first rounds; 0: nothing to confirm; NULL: nobody looked';

COMMENT ON COLUMN run.confirmation_reason_code IS 'Documented snake_case word for what is to be confirmed, or why nothing is';

COMMENT ON COLUMN run.confirmation_reason_message IS 'One line for people: what is to be confirmed, or why nothing is';

COMMENT ON COLUMN run.confirmation_looks IS 'The figures of the first rounds against the spread of their baselines: check, verdict, figures with unit, out_of_spread';

COMMENT ON COLUMN run.candidate IS 'Whether it tries a kernel that nights do not run; such a run is no night and in no series';

COMMENT ON COLUMN run.candidate_origin IS 'Where the tried kernel comes from: spec, origin, commit, modified, bundle, kernel, against_bundle, equals_pinned, notes; NULL: not known, or no candidate';

COMMENT ON COLUMN run.pinned_variant IS 'Variant of the kernels that it was held against';

COMMENT ON COLUMN run.pinned_ptx_sha256 IS 'sha256 of the PTX that it was held against';

CREATE VIEW baseline_current AS
 SELECT baseline.workload,
    payload.name AS payload,
    device.name AS device,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    baseline.protocol,
    baseline.environment_class,
    baseline.for_agreement,
    baseline.for_time,
    baseline.for_energy,
    run.agreed,
    run.total,
    run.adjusted_mj_median,
    run.adjusted_mj_min,
    run.adjusted_mj_max,
    run.cuda_ms_median,
    run.energy_trust,
    baseline.accepted_by,
    baseline.accepted_at,
    baseline.reason,
    run.started_at AS run_started_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    baseline.baseline_id
   FROM (((baseline
     JOIN run ON ((run.run_id = baseline.run_id)))
     JOIN device ON ((device.device_id = baseline.device_id)))
     JOIN payload ON ((payload.payload_id = baseline.payload_id)))
  WHERE (baseline.retired_at IS NULL);

COMMENT ON VIEW baseline_current IS 'Baselines that runs are compared with now';

COMMENT ON COLUMN baseline_current.workload IS 'Workload';

COMMENT ON COLUMN baseline_current.payload IS 'Name of the set of frozen draws';

COMMENT ON COLUMN baseline_current.device IS 'Model name of the device';

COMMENT ON COLUMN baseline_current.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN baseline_current.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN baseline_current.protocol IS 'Measurement protocol';

COMMENT ON COLUMN baseline_current.environment_class IS 'Versions that start a new baseline when they change';

COMMENT ON COLUMN baseline_current.for_agreement IS 'Whether predictions are compared with it (on every device)';

COMMENT ON COLUMN baseline_current.for_time IS 'Whether times are compared with it (same device only)';

COMMENT ON COLUMN baseline_current.for_energy IS 'Whether energies are compared with it (same device only)';

COMMENT ON COLUMN baseline_current.agreed IS 'Predictions of the accepted run equal to the frozen ones';

COMMENT ON COLUMN baseline_current.total IS 'Predictions of the accepted run';

COMMENT ON COLUMN baseline_current.adjusted_mj_median IS 'Median adjusted energy of the accepted run, mJ a replay';

COMMENT ON COLUMN baseline_current.adjusted_mj_min IS 'Lower edge of its round spread, mJ a replay';

COMMENT ON COLUMN baseline_current.adjusted_mj_max IS 'Upper edge of its round spread, mJ a replay';

COMMENT ON COLUMN baseline_current.cuda_ms_median IS 'Median CUDA-event time of the accepted run, ms a replay';

COMMENT ON COLUMN baseline_current.energy_trust IS 'Whether the energy of the accepted run is verified';

COMMENT ON COLUMN baseline_current.accepted_by IS 'Who accepted it';

COMMENT ON COLUMN baseline_current.accepted_at IS 'When it was accepted (UTC)';

COMMENT ON COLUMN baseline_current.reason IS 'Why it was accepted';

COMMENT ON COLUMN baseline_current.run_started_at IS 'When the accepted run was made (UTC)';

COMMENT ON COLUMN baseline_current.dag_id IS 'DAG of the accepted run';

COMMENT ON COLUMN baseline_current.dag_run_id IS 'DAG run of the accepted run';

COMMENT ON COLUMN baseline_current.run_id IS 'The accepted run';

COMMENT ON COLUMN baseline_current.baseline_id IS 'Key';

CREATE TABLE check_result (
    run_id uuid NOT NULL,
    check_name text NOT NULL,
    step smallint NOT NULL,
    verdict text NOT NULL,
    metric text NOT NULL,
    unit text NOT NULL,
    value double precision,
    baseline_value double precision,
    baseline_low double precision,
    baseline_high double precision,
    direction text,
    reason_code text NOT NULL,
    reason text NOT NULL,
    details jsonb NOT NULL,
    baseline_id integer,
    checked_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT check_result_baseline_spread_check CHECK ((baseline_low <= baseline_high)),
    CONSTRAINT check_result_details_object_check CHECK ((jsonb_typeof(details) = 'object'::text)),
    CONSTRAINT check_result_direction_check CHECK ((direction = ANY (ARRAY['lower'::text, 'higher'::text, 'changed'::text]))),
    CONSTRAINT check_result_finite_check CHECK (((GREATEST(value, baseline_value, baseline_low, baseline_high) < 'Infinity'::double precision) AND (LEAST(value, baseline_value, baseline_low, baseline_high) > '-Infinity'::double precision))),
    CONSTRAINT check_result_step_check CHECK ((step >= 0)),
    CONSTRAINT check_result_unit_check CHECK ((unit = ANY (ARRAY['predictions'::text, 'mJ'::text, 'J'::text, 'ms'::text, 's'::text, 'W'::text, 'ratio'::text, 'J per 10^12 operations'::text, 'nights'::text, 'versions'::text, 'bytes'::text, 'checks'::text, 'hashes'::text]))),
    CONSTRAINT check_result_verdict_check CHECK ((verdict = ANY (ARRAY['ok'::text, 'regressed'::text, 'improved'::text, 'inconclusive'::text, 'invalid'::text, 'unavailable'::text])))
);

COMMENT ON TABLE check_result IS 'Verdicts of the checks of each run';

COMMENT ON COLUMN check_result.run_id IS 'Run';

COMMENT ON COLUMN check_result.check_name IS 'agreement, energy, ...';

COMMENT ON COLUMN check_result.step IS '0: the first rounds alone; 1: first and confirmation rounds together; the last one counts';

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

CREATE TABLE comparison (
    run_id uuid NOT NULL,
    outcome text NOT NULL,
    reason_code text,
    reason_message text,
    candidate_ptx_lines integer,
    candidate_instructions integer,
    candidate_shared_bytes integer,
    candidate_modelled_cycles bigint,
    pinned_ptx_lines integer,
    pinned_instructions integer,
    pinned_shared_bytes integer,
    pinned_modelled_cycles bigint,
    differing_total integer NOT NULL,
    not_measured_reason_code text,
    not_measured_reason_message text,
    energy_trust text NOT NULL,
    energy_trust_reason_code text,
    energy_trust_reason_message text,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT comparison_candidate_static_check CHECK ((num_nulls(candidate_ptx_lines, candidate_instructions, candidate_shared_bytes, candidate_modelled_cycles) = ANY (ARRAY[0, 4]))),
    CONSTRAINT comparison_differing_total_check CHECK ((differing_total >= 0)),
    CONSTRAINT comparison_energy_trust_check CHECK ((energy_trust = ANY (ARRAY['verified'::text, 'failed'::text, 'unverified'::text, 'unavailable'::text]))),
    CONSTRAINT comparison_outcome_check CHECK ((outcome = ANY (ARRAY['ok'::text, 'regression'::text, 'bad_input'::text, 'invalid_measurement'::text, 'verification_mismatch'::text, 'infrastructure_failure'::text]))),
    CONSTRAINT comparison_pinned_static_check CHECK ((num_nulls(pinned_ptx_lines, pinned_instructions, pinned_shared_bytes, pinned_modelled_cycles) = ANY (ARRAY[0, 4]))),
    CONSTRAINT comparison_reason_check CHECK (((outcome = 'ok'::text) OR (reason_code IS NOT NULL))),
    CONSTRAINT comparison_static_figures_check CHECK ((LEAST((candidate_ptx_lines)::bigint, (candidate_instructions)::bigint, (candidate_shared_bytes)::bigint, candidate_modelled_cycles, (pinned_ptx_lines)::bigint, (pinned_instructions)::bigint, (pinned_shared_bytes)::bigint, pinned_modelled_cycles) >= 0))
);

COMMENT ON TABLE comparison IS 'Comparisons of a candidate with another kernel, usually the pinned one: one row a run that made one';

COMMENT ON COLUMN comparison.run_id IS 'Run';

COMMENT ON COLUMN comparison.outcome IS 'Class of outcome: regression when the candidate is wrong, whether or not the other kernel is';

COMMENT ON COLUMN comparison.reason_code IS 'Documented snake_case word for why the outcome is not ok';

COMMENT ON COLUMN comparison.reason_message IS 'One line for people: why the outcome is not ok';

COMMENT ON COLUMN comparison.candidate_ptx_lines IS 'Lines of the PTX of the candidate (counted)';

COMMENT ON COLUMN comparison.candidate_instructions IS 'Instructions of the candidate (counted in its PTX)';

COMMENT ON COLUMN comparison.candidate_shared_bytes IS 'Most shared memory of a block of the candidate, bytes (counted)';

COMMENT ON COLUMN comparison.candidate_modelled_cycles IS 'Critical path of the candidate, clock cycles (modelled)';

COMMENT ON COLUMN comparison.pinned_ptx_lines IS 'Lines of the PTX of the kernel that it was held against (counted)';

COMMENT ON COLUMN comparison.pinned_instructions IS 'Instructions of the kernel that it was held against (counted in its PTX)';

COMMENT ON COLUMN comparison.pinned_shared_bytes IS 'Most shared memory of a block of the kernel that it was held against, bytes (counted)';

COMMENT ON COLUMN comparison.pinned_modelled_cycles IS 'Critical path of the kernel that it was held against, clock cycles (modelled)';

COMMENT ON COLUMN comparison.differing_total IS 'Predictions on which candidate, the other kernel and the frozen ones differ';

COMMENT ON COLUMN comparison.not_measured_reason_code IS 'Why the two did not take turns: documented snake_case word';

COMMENT ON COLUMN comparison.not_measured_reason_message IS 'Why the two did not take turns: one line';

COMMENT ON COLUMN comparison.energy_trust IS 'Trust in the energy of the rounds in which they took turns: as in run';

COMMENT ON COLUMN comparison.energy_trust_reason_code IS 'Why that energy is not verified: documented snake_case word';

COMMENT ON COLUMN comparison.energy_trust_reason_message IS 'Why that energy is not verified: one line';

COMMENT ON COLUMN comparison.created_at IS 'When its record was written (UTC)';

CREATE TABLE comparison_block (
    run_id uuid NOT NULL,
    round smallint NOT NULL,
    block smallint NOT NULL,
    valid boolean NOT NULL,
    candidate_mj double precision,
    pinned_mj double precision,
    control_mj double precision,
    candidate_cuda_ms double precision,
    pinned_cuda_ms double precision,
    candidate_wall_ms double precision,
    pinned_wall_ms double precision,
    CONSTRAINT comparison_block_cuda_ms_check CHECK (((NOT valid) OR (num_nulls(candidate_cuda_ms, pinned_cuda_ms) = ANY (ARRAY[0, 2])))),
    CONSTRAINT comparison_block_energy_check CHECK (((NOT valid) OR (num_nulls(candidate_mj, pinned_mj) = ANY (ARRAY[0, 2])))),
    CONSTRAINT comparison_block_finite_check CHECK (((GREATEST(candidate_mj, pinned_mj, control_mj, candidate_cuda_ms, pinned_cuda_ms, candidate_wall_ms, pinned_wall_ms) < 'Infinity'::double precision) AND (LEAST(candidate_mj, pinned_mj, control_mj, candidate_cuda_ms, pinned_cuda_ms, candidate_wall_ms, pinned_wall_ms) > '-Infinity'::double precision))),
    CONSTRAINT comparison_block_numbers_check CHECK (((round >= 0) AND (block >= 0))),
    CONSTRAINT comparison_block_times_check CHECK (((NOT valid) OR (LEAST(candidate_cuda_ms, pinned_cuda_ms, candidate_wall_ms, pinned_wall_ms) > (0)::double precision))),
    CONSTRAINT comparison_block_wall_ms_check CHECK (((NOT valid) OR (num_nulls(candidate_wall_ms, pinned_wall_ms) = ANY (ARRAY[0, 2]))))
);

COMMENT ON TABLE comparison_block IS 'Blocks in which two kernels took turns within seconds: the pairs that a comparison is judged by';

COMMENT ON COLUMN comparison_block.run_id IS 'Run';

COMMENT ON COLUMN comparison_block.round IS 'Number of the round of arm comparison, from 0';

COMMENT ON COLUMN comparison_block.block IS 'Number of the block in its round, from 0';

COMMENT ON COLUMN comparison_block.valid IS 'Whether its round is valid: one that is not stays out of every statistic';

COMMENT ON COLUMN comparison_block.candidate_mj IS 'Energy of the candidate above idle, mJ a replay; NULL: no counter';

COMMENT ON COLUMN comparison_block.pinned_mj IS 'Energy of the other kernel above idle, mJ a replay';

COMMENT ON COLUMN comparison_block.control_mj IS 'Energy of the control above idle, mJ a replay';

COMMENT ON COLUMN comparison_block.candidate_cuda_ms IS 'CUDA-event time of the candidate, ms a replay; NULL without CUDA events';

COMMENT ON COLUMN comparison_block.pinned_cuda_ms IS 'CUDA-event time of the other kernel, ms a replay';

COMMENT ON COLUMN comparison_block.candidate_wall_ms IS 'Wall time of the candidate, ms a replay';

COMMENT ON COLUMN comparison_block.pinned_wall_ms IS 'Wall time of the other kernel, ms a replay';

CREATE TABLE environment (
    environment_id integer NOT NULL,
    fingerprint_sha256 text NOT NULL,
    environment_class text NOT NULL,
    python text NOT NULL,
    platform text NOT NULL,
    driver text,
    cuda text,
    packages jsonb NOT NULL,
    CONSTRAINT environment_fingerprint_sha256_check CHECK ((fingerprint_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT environment_packages_object_check CHECK ((jsonb_typeof(packages) = 'object'::text))
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

CREATE TABLE withdrawal (
    run_id uuid NOT NULL,
    scope text NOT NULL,
    withdrawn_by text NOT NULL,
    withdrawn_at timestamp with time zone DEFAULT now() NOT NULL,
    reason text NOT NULL,
    successor_run_id uuid,
    figures text,
    CONSTRAINT withdrawal_figures_check CHECK ((btrim(figures) <> ''::text)),
    CONSTRAINT withdrawal_reason_check CHECK (((btrim(withdrawn_by) <> ''::text) AND (btrim(reason) <> ''::text))),
    CONSTRAINT withdrawal_scope_check CHECK ((scope = ANY (ARRAY['energy'::text, 'all'::text]))),
    CONSTRAINT withdrawal_successor_check CHECK ((successor_run_id <> run_id))
);

COMMENT ON TABLE withdrawal IS 'Runs whose energy, or which altogether, must not be used any more; they stay readable';

COMMENT ON COLUMN withdrawal.run_id IS 'The withdrawn run';

COMMENT ON COLUMN withdrawal.scope IS 'What of it must not be used any more: energy, or all of it';

COMMENT ON COLUMN withdrawal.withdrawn_by IS 'Who withdrew it';

COMMENT ON COLUMN withdrawal.withdrawn_at IS 'When that was recorded (UTC)';

COMMENT ON COLUMN withdrawal.reason IS 'Why it was withdrawn';

COMMENT ON COLUMN withdrawal.successor_run_id IS 'Run to be used instead';

COMMENT ON COLUMN withdrawal.figures IS 'The figures that were published, and what holds instead, with their units';

CREATE VIEW candidate_runs AS
 SELECT ((run.started_at AT TIME ZONE 'UTC'::text))::date AS night,
    run.workload,
    device.name AS device,
    COALESCE(run.verdict, 'not judged'::text) AS verdict,
    COALESCE((run.candidate_origin ->> 'spec'::text), (run.params ->> 'candidate'::text)) AS spec,
    (run.candidate_origin ->> 'origin'::text) AS origin,
    (run.candidate_origin ->> 'commit'::text) AS commit,
    ((run.candidate_origin ->> 'modified'::text))::boolean AS modified,
    COALESCE(run.kernel_variant, (run.candidate_origin #>> '{kernel,variant}'::text[])) AS kernel_variant,
    COALESCE(run.kernel_ptx_sha256, (run.candidate_origin #>> '{kernel,ptx_sha256}'::text[])) AS kernel_ptx_sha256,
    run.pinned_variant,
    run.pinned_ptx_sha256,
    ((run.candidate_origin ->> 'equals_pinned'::text))::boolean AS equals_pinned,
    COALESCE((predictions.details ->> 'word'::text), predictions.verdict) AS predictions_word,
    COALESCE((cuda.details ->> 'word'::text), cuda.verdict) AS time_word,
    COALESCE((energy.details ->> 'word'::text), energy.verdict) AS energy_word,
    run.agreed,
    run.total,
    comparison.differing_total AS differing,
    ((cuda.details ->> 'effect_ms'::text))::double precision AS time_effect_ms,
    ((cuda.details ->> 'low_ms'::text))::double precision AS time_low_ms,
    ((cuda.details ->> 'high_ms'::text))::double precision AS time_high_ms,
    ((cuda.details ->> 'effect_percent'::text))::double precision AS time_effect_percent,
    ((cuda.details ->> 'detectable_percent'::text))::double precision AS time_detectable_percent,
    ((energy.details ->> 'effect_mj'::text))::double precision AS energy_effect_mj,
    ((energy.details ->> 'low_mj'::text))::double precision AS energy_low_mj,
    ((energy.details ->> 'high_mj'::text))::double precision AS energy_high_mj,
    ((energy.details ->> 'effect_percent'::text))::double precision AS energy_effect_percent,
    ((energy.details ->> 'detectable_percent'::text))::double precision AS energy_detectable_percent,
    ( SELECT count(*) AS count
           FROM comparison_block
          WHERE ((comparison_block.run_id = run.run_id) AND comparison_block.valid)) AS blocks,
    comparison.not_measured_reason_message AS not_measured_reason,
    comparison.energy_trust AS comparison_energy_trust,
    comparison.candidate_modelled_cycles AS modelled_cycles,
    comparison.pinned_modelled_cycles,
    comparison.candidate_instructions AS instructions,
    comparison.pinned_instructions,
    run.adjusted_mj_median,
    run.adjusted_mj_min,
    run.adjusted_mj_max,
    run.cuda_ms_median,
    run.wall_ms_median,
    run.rounds_valid,
    run.rounds_expected,
    run.energy_trust,
    accepted.accepted_at AS promoted_at,
    accepted.accepted_by AS promoted_by,
    (EXISTS ( SELECT
           FROM baseline
          WHERE ((baseline.run_id = run.run_id) AND (baseline.retired_at IS NULL)))) AS is_baseline,
    ( SELECT
                CASE
                    WHEN bool_or((withdrawal.scope = 'all'::text)) THEN 'all'::text
                    ELSE max(withdrawal.scope)
                END AS max
           FROM withdrawal
          WHERE (withdrawal.run_id = run.run_id)) AS withdrawn,
    run.inject,
    payload.name AS payload,
    run.protocol,
    environment.environment_class,
    (run.candidate_origin ->> 'bundle'::text) AS bundle,
    run.outcome,
    run.reason_code,
    run.reason_message,
    run.label,
    run.note,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    (EXTRACT(epoch FROM (run.completed_at - run.started_at)))::double precision AS duration_s,
    run.started_at,
    run.completed_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id
   FROM ((((((((run
     LEFT JOIN device ON ((device.device_id = run.device_id)))
     LEFT JOIN environment ON ((environment.environment_id = run.environment_id)))
     LEFT JOIN payload ON ((payload.payload_id = run.payload_id)))
     LEFT JOIN comparison ON ((comparison.run_id = run.run_id)))
     LEFT JOIN check_result predictions ON (((predictions.run_id = run.run_id) AND (predictions.check_name = 'compare_predictions'::text) AND (predictions.step = 0))))
     LEFT JOIN check_result cuda ON (((cuda.run_id = run.run_id) AND (cuda.check_name = 'compare_time'::text) AND (cuda.step = 0))))
     LEFT JOIN check_result energy ON (((energy.run_id = run.run_id) AND (energy.check_name = 'compare_energy'::text) AND (energy.step = 0))))
     LEFT JOIN LATERAL ( SELECT min(baseline.accepted_at) AS accepted_at,
            (array_agg(baseline.accepted_by ORDER BY baseline.accepted_at, baseline.baseline_id))[1] AS accepted_by
           FROM baseline
          WHERE (baseline.run_id = run.run_id)) accepted ON (true))
  WHERE run.candidate;

COMMENT ON VIEW candidate_runs IS 'One row a run that tries a kernel: where it comes from, how it did beside the other one, and alone as nights are measured';

COMMENT ON COLUMN candidate_runs.night IS 'Date in UTC on which the run began';

COMMENT ON COLUMN candidate_runs.workload IS 'What was tested';

COMMENT ON COLUMN candidate_runs.device IS 'Model name of the device; NULL when none could be chosen';

COMMENT ON COLUMN candidate_runs.verdict IS 'Verdict of the run, or "not judged" for one that ended before its report';

COMMENT ON COLUMN candidate_runs.spec IS 'What was to be tried, as it was asked for; NULL: the kernel of the working tree, in a night that was marked';

COMMENT ON COLUMN candidate_runs.origin IS 'Kind of the spec: variant, source, ptx, manifest, ref or bundle; NULL: not known';

COMMENT ON COLUMN candidate_runs.commit IS 'Commit of a ref; for a path, the one that the working tree was at';

COMMENT ON COLUMN candidate_runs.modified IS 'Whether the working tree differed from that commit';

COMMENT ON COLUMN candidate_runs.kernel_variant IS 'Variant of the kernels that were tried';

COMMENT ON COLUMN candidate_runs.kernel_ptx_sha256 IS 'sha256 of their PTX';

COMMENT ON COLUMN candidate_runs.pinned_variant IS 'Variant of the kernels that they were held against';

COMMENT ON COLUMN candidate_runs.pinned_ptx_sha256 IS 'sha256 of the PTX that they were held against';

COMMENT ON COLUMN candidate_runs.equals_pinned IS 'Whether both are the same: then every difference is chance';

COMMENT ON COLUMN candidate_runs.predictions_word IS 'better, worse, same, inconclusive, invalid or unavailable; NULL: not judged';

COMMENT ON COLUMN candidate_runs.time_word IS 'The same of the time';

COMMENT ON COLUMN candidate_runs.energy_word IS 'The same of the energy';

COMMENT ON COLUMN candidate_runs.agreed IS 'Predictions of the candidate equal to the frozen ones, over all draws';

COMMENT ON COLUMN candidate_runs.total IS 'Predictions of the candidate, over all draws';

COMMENT ON COLUMN candidate_runs.differing IS 'Predictions on which candidate, the other kernel and the frozen ones differ';

COMMENT ON COLUMN candidate_runs.time_effect_ms IS 'CUDA-event time of the candidate less that of the other kernel, ms a replay: mean of the blocks';

COMMENT ON COLUMN candidate_runs.time_low_ms IS 'Lower edge of its 95 per cent interval, ms';

COMMENT ON COLUMN candidate_runs.time_high_ms IS 'Upper edge of its 95 per cent interval, ms';

COMMENT ON COLUMN candidate_runs.time_effect_percent IS 'The same difference, per cent of the other kernel''s';

COMMENT ON COLUMN candidate_runs.time_detectable_percent IS 'Smallest difference that would be found in 80 of 100 cases, per cent';

COMMENT ON COLUMN candidate_runs.energy_effect_mj IS 'Energy of the candidate less that of the other kernel, mJ a replay: mean of the blocks';

COMMENT ON COLUMN candidate_runs.energy_low_mj IS 'Lower edge of its 95 per cent interval, mJ';

COMMENT ON COLUMN candidate_runs.energy_high_mj IS 'Upper edge of its 95 per cent interval, mJ';

COMMENT ON COLUMN candidate_runs.energy_effect_percent IS 'The same difference, per cent of the other kernel''s';

COMMENT ON COLUMN candidate_runs.energy_detectable_percent IS 'Smallest difference that would be found in 80 of 100 cases, per cent';

COMMENT ON COLUMN candidate_runs.blocks IS 'Valid blocks in which the two took turns';

COMMENT ON COLUMN candidate_runs.not_measured_reason IS 'Why the two did not take turns; NULL: they did, or nothing is known';

COMMENT ON COLUMN candidate_runs.comparison_energy_trust IS 'What the energy of those blocks is worth: verified, failed, unverified or unavailable';

COMMENT ON COLUMN candidate_runs.modelled_cycles IS 'Critical path of the candidate, clock cycles (modelled, not measured)';

COMMENT ON COLUMN candidate_runs.pinned_modelled_cycles IS 'Critical path of the other kernel, clock cycles (modelled, not measured)';

COMMENT ON COLUMN candidate_runs.instructions IS 'Instructions of the candidate (counted in its PTX)';

COMMENT ON COLUMN candidate_runs.pinned_instructions IS 'Instructions of the other kernel (counted in its PTX)';

COMMENT ON COLUMN candidate_runs.adjusted_mj_median IS 'Candidate alone, in rounds as nights have them: median energy a replay without idle energy, mJ';

COMMENT ON COLUMN candidate_runs.adjusted_mj_min IS 'Smallest adjusted energy of such a valid round, mJ a replay';

COMMENT ON COLUMN candidate_runs.adjusted_mj_max IS 'Largest adjusted energy of such a valid round, mJ a replay';

COMMENT ON COLUMN candidate_runs.cuda_ms_median IS 'Candidate alone: median CUDA-event time a replay, ms';

COMMENT ON COLUMN candidate_runs.wall_ms_median IS 'Candidate alone: median wall time a replay, ms';

COMMENT ON COLUMN candidate_runs.rounds_valid IS 'Such rounds whose figures may be used';

COMMENT ON COLUMN candidate_runs.rounds_expected IS 'Such rounds asked for';

COMMENT ON COLUMN candidate_runs.energy_trust IS 'verified (every telemetry gate passed), failed, unverified or unavailable (no counter)';

COMMENT ON COLUMN candidate_runs.promoted_at IS 'When it was accepted as a baseline, for the first time (UTC); NULL: it was not';

COMMENT ON COLUMN candidate_runs.promoted_by IS 'Who accepted it';

COMMENT ON COLUMN candidate_runs.is_baseline IS 'Whether it is a current baseline';

COMMENT ON COLUMN candidate_runs.withdrawn IS 'energy or all, where that was withdrawn: see the view withdrawn; NULL: nothing was';

COMMENT ON COLUMN candidate_runs.inject IS 'Effects that the simulated device was told to show; NULL: none';

COMMENT ON COLUMN candidate_runs.payload IS 'Name of the set of frozen draws';

COMMENT ON COLUMN candidate_runs.protocol IS 'Measurement protocol of the candidate''s own rounds';

COMMENT ON COLUMN candidate_runs.environment_class IS 'Versions that start a new baseline when they change';

COMMENT ON COLUMN candidate_runs.bundle IS 'Name of the frozen copy of the kernels: candidate- and 16 digits';

COMMENT ON COLUMN candidate_runs.outcome IS 'Worst outcome of the tasks, before any verdict';

COMMENT ON COLUMN candidate_runs.reason_code IS 'Word for why the outcome is not ok';

COMMENT ON COLUMN candidate_runs.reason_message IS 'Line for why the outcome is not ok';

COMMENT ON COLUMN candidate_runs.label IS 'Short name given at the trigger';

COMMENT ON COLUMN candidate_runs.note IS 'Free text given at the trigger';

COMMENT ON COLUMN candidate_runs.trigger IS 'scheduled, manual, backfill or import';

COMMENT ON COLUMN candidate_runs.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN candidate_runs.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN candidate_runs.duration_s IS 'Time from the accepted request to the record of the last part, s';

COMMENT ON COLUMN candidate_runs.started_at IS 'When the run began: when its request was accepted (UTC)';

COMMENT ON COLUMN candidate_runs.completed_at IS 'When the last of its parts was recorded (UTC)';

COMMENT ON COLUMN candidate_runs.dag_id IS 'Airflow DAG';

COMMENT ON COLUMN candidate_runs.dag_run_id IS 'Airflow DAG run';

COMMENT ON COLUMN candidate_runs.run_id IS 'Key of the run in every table';

CREATE TABLE comparison_difference (
    run_id uuid NOT NULL,
    draw smallint NOT NULL,
    index integer NOT NULL,
    candidate integer,
    pinned integer,
    frozen integer NOT NULL,
    candidate_score double precision,
    pinned_score double precision,
    gap double precision,
    CONSTRAINT comparison_difference_differs_check CHECK (((candidate IS DISTINCT FROM frozen) OR (pinned IS DISTINCT FROM frozen))),
    CONSTRAINT comparison_difference_finite_check CHECK (((GREATEST(candidate_score, pinned_score, gap) < 'Infinity'::double precision) AND (LEAST(candidate_score, pinned_score, gap) > '-Infinity'::double precision))),
    CONSTRAINT comparison_difference_numbers_check CHECK (((draw >= 0) AND (index >= 0)))
);

COMMENT ON TABLE comparison_difference IS 'Predictions on which candidate, the other kernel and the frozen ones differ: the first of each comparison';

COMMENT ON COLUMN comparison_difference.run_id IS 'Run';

COMMENT ON COLUMN comparison_difference.draw IS 'Number of the draw';

COMMENT ON COLUMN comparison_difference.index IS 'Number of the query in the draw, from 0';

COMMENT ON COLUMN comparison_difference.candidate IS 'Class that the candidate predicted; NULL: none';

COMMENT ON COLUMN comparison_difference.pinned IS 'Class that the other kernel predicted; NULL: none';

COMMENT ON COLUMN comparison_difference.frozen IS 'Frozen prediction';

COMMENT ON COLUMN comparison_difference.candidate_score IS 'Score of the candidate''s class by the float64 reference';

COMMENT ON COLUMN comparison_difference.pinned_score IS 'Score of the other kernel''s class (of the frozen one where they agree)';

COMMENT ON COLUMN comparison_difference.gap IS 'pinned_score less candidate_score: next to nothing where rounding decided';

ALTER TABLE device ALTER COLUMN device_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME device_device_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE run_setting (
    run_id uuid NOT NULL,
    name text NOT NULL,
    value text,
    origin text NOT NULL,
    CONSTRAINT run_setting_name_check CHECK ((btrim(name) <> ''::text)),
    CONSTRAINT run_setting_origin_check CHECK ((origin = ANY (ARRAY['environment'::text, 'program'::text, 'unset'::text]))),
    CONSTRAINT run_setting_unset_check CHECK (((origin = 'unset'::text) = (value IS NULL)))
);

COMMENT ON TABLE run_setting IS 'Settings of the libraries that a run computed with, as they were in force';

COMMENT ON COLUMN run_setting.run_id IS 'Run';

COMMENT ON COLUMN run_setting.name IS 'Setting of a library, for example CUBLAS_WORKSPACE_CONFIG';

COMMENT ON COLUMN run_setting.value IS 'What it was; NULL: unset';

COMMENT ON COLUMN run_setting.origin IS 'environment (set before the process began), program or unset';

CREATE TABLE source_state (
    source_state_id integer NOT NULL,
    fingerprint_sha256 text NOT NULL,
    sources_sha256 text,
    sources jsonb NOT NULL,
    CONSTRAINT source_state_fingerprint_sha256_check CHECK ((fingerprint_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT source_state_sources_object_check CHECK ((jsonb_typeof(sources) = 'object'::text)),
    CONSTRAINT source_state_sources_sha256_check CHECK ((sources_sha256 ~ '^[0-9a-f]{64}$'::text))
);

COMMENT ON TABLE source_state IS 'States of the pinned sources (GPU programs and kernels) that runs were made with';

COMMENT ON COLUMN source_state.source_state_id IS 'Key';

COMMENT ON COLUMN source_state.fingerprint_sha256 IS 'sha256 of the canonical JSON of the two fields below';

COMMENT ON COLUMN source_state.sources_sha256 IS 'sha256 of the file of pinned source hashes';

COMMENT ON COLUMN source_state.sources IS 'Every pinned source file: path to the sha256 found';

CREATE TABLE telemetry (
    run_id uuid NOT NULL,
    moment text NOT NULL,
    outcome text NOT NULL,
    reason_code text,
    reason_message text,
    energy_reason_code text,
    energy_reason_message text,
    tick_period_s double precision,
    read_latency_s double precision,
    idle_power_w double precision,
    idle_slope_w_per_s double precision,
    idle_walk_w_per_sqrt_s double precision,
    reference_size integer,
    reference_repeats integer,
    reference_operations double precision,
    reference_duration_s double precision,
    reference_energy_j double precision,
    reference_idle_w double precision,
    reference_above_idle_w double precision,
    reference_joules_per_1e12_operations double precision,
    reference_tera_operations_per_s double precision,
    reference_largest_error double precision,
    reference_result_verified boolean,
    readings jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    reference_low_duty_joules_per_1e12_operations double precision,
    power_limit_w double precision GENERATED ALWAYS AS ((((readings -> 'state_before'::text) ->> 'power_limit_w'::text))::double precision) STORED,
    CONSTRAINT telemetry_errors_check CHECK ((LEAST(reference_largest_error, idle_walk_w_per_sqrt_s) >= (0)::double precision)),
    CONSTRAINT telemetry_finite_check CHECK (((GREATEST(tick_period_s, read_latency_s, idle_power_w, idle_slope_w_per_s, idle_walk_w_per_sqrt_s, reference_operations, reference_duration_s, reference_energy_j, reference_idle_w, reference_above_idle_w, reference_joules_per_1e12_operations, reference_tera_operations_per_s, reference_largest_error, reference_low_duty_joules_per_1e12_operations, power_limit_w) < 'Infinity'::double precision) AND (LEAST(tick_period_s, read_latency_s, idle_power_w, idle_slope_w_per_s, idle_walk_w_per_sqrt_s, reference_operations, reference_duration_s, reference_energy_j, reference_idle_w, reference_above_idle_w, reference_joules_per_1e12_operations, reference_tera_operations_per_s, reference_largest_error, reference_low_duty_joules_per_1e12_operations, power_limit_w) > '-Infinity'::double precision))),
    CONSTRAINT telemetry_idle_complete_check CHECK ((num_nulls(idle_power_w, idle_slope_w_per_s, idle_walk_w_per_sqrt_s) = ANY (ARRAY[0, 3]))),
    CONSTRAINT telemetry_moment_check CHECK ((moment = ANY (ARRAY['before'::text, 'after'::text]))),
    CONSTRAINT telemetry_outcome_check CHECK ((outcome = ANY (ARRAY['ok'::text, 'regression'::text, 'bad_input'::text, 'invalid_measurement'::text, 'verification_mismatch'::text, 'infrastructure_failure'::text]))),
    CONSTRAINT telemetry_power_limit_w_check CHECK ((power_limit_w > (0)::double precision)),
    CONSTRAINT telemetry_read_latency_s_check CHECK ((read_latency_s >= (0)::double precision)),
    CONSTRAINT telemetry_readings_object_check CHECK ((jsonb_typeof(readings) = 'object'::text)),
    CONSTRAINT telemetry_reason_check CHECK (((outcome = 'ok'::text) OR (reason_code IS NOT NULL))),
    CONSTRAINT telemetry_reference_complete_check CHECK ((num_nulls(reference_size, reference_repeats, reference_operations, reference_duration_s, reference_energy_j, reference_idle_w, reference_above_idle_w, reference_joules_per_1e12_operations, reference_tera_operations_per_s, reference_largest_error, reference_result_verified) = ANY (ARRAY[0, 11]))),
    CONSTRAINT telemetry_reference_size_check CHECK ((LEAST(reference_size, reference_repeats) > 0)),
    CONSTRAINT telemetry_reference_work_check CHECK ((LEAST(reference_operations, reference_duration_s, reference_tera_operations_per_s) > (0)::double precision)),
    CONSTRAINT telemetry_tick_period_s_check CHECK ((tick_period_s > (0)::double precision))
)
WITH (toast_tuple_target='128');

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

COMMENT ON COLUMN telemetry.reference_low_duty_joules_per_1e12_operations IS 'The same products with pauses between them: energy above idle, J per 10^12 operations; NULL: not made';

COMMENT ON COLUMN telemetry.power_limit_w IS 'Power limit of the GPU before it, W; NULL: not known (taken from readings)';

CREATE VIEW environment_changes AS
 SELECT ((run.started_at AT TIME ZONE 'UTC'::text))::date AS night,
    run.workload,
    device.name AS device,
    change.what,
    change.from_value,
    change.to_value,
    change.detail,
    ((previous.started_at AT TIME ZONE 'UTC'::text))::date AS previous_night,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    previous.run_id AS previous_run_id
   FROM ((((((run
     JOIN device ON ((device.device_id = run.device_id)))
     JOIN environment found ON ((found.environment_id = run.environment_id)))
     LEFT JOIN LATERAL ( SELECT max(before.power_limit_w) AS power_limit_w
           FROM telemetry before
          WHERE ((before.run_id = run.run_id) AND (before.moment = 'before'::text))) telemetry ON (true))
     CROSS JOIN LATERAL ( SELECT earlier.run_id,
            earlier.started_at,
            earlier.environment_id,
                CASE
                    WHEN (run.source_state_id IS NOT NULL) THEN COALESCE(earlier.source_state_id, ( SELECT known.source_state_id
                       FROM run known
                      WHERE ((known.workload = run.workload) AND (known.device_id = run.device_id) AND (NOT known.candidate) AND (ROW(known.started_at, known.run_id) < ROW(earlier.started_at, earlier.run_id)) AND (known.source_state_id IS NOT NULL))
                      ORDER BY known.started_at DESC, known.run_id DESC
                     LIMIT 1))
                    ELSE NULL::integer
                END AS source_state_id,
                CASE
                    WHEN (run.payload_id IS NOT NULL) THEN COALESCE(earlier.payload_id, ( SELECT known.payload_id
                       FROM run known
                      WHERE ((known.workload = run.workload) AND (known.device_id = run.device_id) AND (NOT known.candidate) AND (ROW(known.started_at, known.run_id) < ROW(earlier.started_at, earlier.run_id)) AND (known.payload_id IS NOT NULL))
                      ORDER BY known.started_at DESC, known.run_id DESC
                     LIMIT 1))
                    ELSE NULL::integer
                END AS payload_id,
                CASE
                    WHEN (run.kernel_variant IS NOT NULL) THEN COALESCE((earlier.kernel_variant || COALESCE((' '::text || earlier.kernel_ptx_sha256), ''::text)), ( SELECT (known.kernel_variant || COALESCE((' '::text || known.kernel_ptx_sha256), ''::text))
                       FROM run known
                      WHERE ((known.workload = run.workload) AND (known.device_id = run.device_id) AND (NOT known.candidate) AND (ROW(known.started_at, known.run_id) < ROW(earlier.started_at, earlier.run_id)) AND (known.kernel_variant IS NOT NULL))
                      ORDER BY known.started_at DESC, known.run_id DESC
                     LIMIT 1))
                    ELSE NULL::text
                END AS kernel,
                CASE
                    WHEN (telemetry.power_limit_w IS NOT NULL) THEN COALESCE(( SELECT earlier_telemetry.power_limit_w
                       FROM telemetry earlier_telemetry
                      WHERE ((earlier_telemetry.run_id = earlier.run_id) AND (earlier_telemetry.moment = 'before'::text))), ( SELECT known_telemetry.power_limit_w
                       FROM (run known
                         JOIN telemetry known_telemetry ON (((known_telemetry.run_id = known.run_id) AND (known_telemetry.moment = 'before'::text))))
                      WHERE ((known.workload = run.workload) AND (known.device_id = run.device_id) AND (NOT known.candidate) AND (ROW(known.started_at, known.run_id) < ROW(earlier.started_at, earlier.run_id)) AND (known_telemetry.power_limit_w IS NOT NULL))
                      ORDER BY known.started_at DESC, known.run_id DESC
                     LIMIT 1))
                    ELSE NULL::double precision
                END AS power_limit_w
           FROM run earlier
          WHERE ((earlier.workload = run.workload) AND (earlier.device_id = run.device_id) AND (NOT earlier.candidate) AND (earlier.environment_id IS NOT NULL) AND (ROW(earlier.started_at, earlier.run_id) < ROW(run.started_at, run.run_id)))
          ORDER BY earlier.started_at DESC, earlier.run_id DESC
         LIMIT 1) previous)
     JOIN environment expected ON ((expected.environment_id = previous.environment_id)))
     CROSS JOIN LATERAL ( SELECT version.what,
            version.from_value,
            version.to_value,
            NULL::text AS detail
           FROM ( VALUES ('driver'::text,expected.driver,found.driver), ('cuda'::text,expected.cuda,found.cuda), ('python'::text,expected.python,found.python), ('platform'::text,expected.platform,found.platform)) version(what, from_value, to_value)
          WHERE ((previous.environment_id <> run.environment_id) AND (version.from_value IS DISTINCT FROM version.to_value) AND (NOT ((version.what = 'platform'::text) AND ((version.from_value = ANY (ARRAY['cuda'::text, 'emulated'::text, 'reference'::text, 'simulated'::text, 'not recorded'::text])) OR (version.to_value = ANY (ARRAY['cuda'::text, 'emulated'::text, 'reference'::text, 'simulated'::text, 'not recorded'::text]))))))
        UNION ALL
         SELECT name,
            old.version,
            new.version,
            NULL::text
           FROM (jsonb_each_text(expected.packages) old(name, version)
             FULL JOIN jsonb_each_text(found.packages) new(name, version) USING (name))
          WHERE ((previous.environment_id <> run.environment_id) AND (old.version IS DISTINCT FROM new.version))
        UNION ALL
         SELECT 'sources'::text,
            old.fingerprint_sha256,
            new.fingerprint_sha256,
            ( SELECT string_agg(COALESCE(was.path, is_now.path), ', '::text ORDER BY COALESCE(was.path, is_now.path)) AS string_agg
                   FROM (jsonb_each_text(old.sources) was(path, sha256)
                     FULL JOIN jsonb_each_text(new.sources) is_now(path, sha256) USING (path))
                  WHERE (was.sha256 IS DISTINCT FROM is_now.sha256)) AS string_agg
           FROM source_state old,
            source_state new
          WHERE ((previous.source_state_id <> run.source_state_id) AND (old.source_state_id = previous.source_state_id) AND (new.source_state_id = run.source_state_id))
        UNION ALL
         SELECT 'payload'::text,
            ((old.name || ' '::text) || old.manifest_sha256),
            ((new.name || ' '::text) || new.manifest_sha256),
            NULL::text
           FROM payload old,
            payload new
          WHERE ((previous.payload_id <> run.payload_id) AND (old.payload_id = previous.payload_id) AND (new.payload_id = run.payload_id))
        UNION ALL
         SELECT 'kernel'::text,
            previous.kernel,
            (run.kernel_variant || COALESCE((' '::text || run.kernel_ptx_sha256), ''::text)),
            NULL::text
          WHERE (previous.kernel <> (run.kernel_variant || COALESCE((' '::text || run.kernel_ptx_sha256), ''::text)))
        UNION ALL
         SELECT 'power_limit_w'::text,
            (previous.power_limit_w)::text AS power_limit_w,
            (telemetry.power_limit_w)::text AS power_limit_w,
            NULL::text
          WHERE (previous.power_limit_w <> telemetry.power_limit_w)
        UNION ALL
         SELECT name,
            old.value,
            new.value,
            ((('from '::text || COALESCE(old.origin, 'nothing'::text)) || ' to '::text) || COALESCE(new.origin, 'nothing'::text))
           FROM (( SELECT run_setting.run_id,
                    run_setting.name,
                    run_setting.value,
                    run_setting.origin
                   FROM run_setting
                  WHERE (run_setting.run_id = previous.run_id)) old
             FULL JOIN ( SELECT run_setting.run_id,
                    run_setting.name,
                    run_setting.value,
                    run_setting.origin
                   FROM run_setting
                  WHERE (run_setting.run_id = run.run_id)) new USING (name))
          WHERE (old.value IS DISTINCT FROM new.value)) change)
  WHERE (NOT run.candidate);

COMMENT ON VIEW environment_changes IS 'What changed around the kernels: one row a change since the previous run of a workload on a device, candidates apart';

COMMENT ON COLUMN environment_changes.night IS 'Date in UTC on which the first run with the new value began';

COMMENT ON COLUMN environment_changes.workload IS 'What was tested';

COMMENT ON COLUMN environment_changes.device IS 'Model name of the device';

COMMENT ON COLUMN environment_changes.what IS 'driver, cuda, python, platform, the name of a package or of a setting of a library, sources, payload, kernel or power_limit_w';

COMMENT ON COLUMN environment_changes.from_value IS 'Value in the previous run; NULL: there was none';

COMMENT ON COLUMN environment_changes.to_value IS 'Value in this run; NULL: there is none';

COMMENT ON COLUMN environment_changes.detail IS 'For sources: the files that differ; for a setting: where it came from and comes from';

COMMENT ON COLUMN environment_changes.previous_night IS 'Date in UTC on which the previous run began';

COMMENT ON COLUMN environment_changes.trigger IS 'scheduled, manual, backfill or import';

COMMENT ON COLUMN environment_changes.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN environment_changes.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN environment_changes.started_at IS 'When the run began (UTC)';

COMMENT ON COLUMN environment_changes.dag_id IS 'Airflow DAG';

COMMENT ON COLUMN environment_changes.dag_run_id IS 'Airflow DAG run';

COMMENT ON COLUMN environment_changes.run_id IS 'Key of the run in every table';

COMMENT ON COLUMN environment_changes.previous_run_id IS 'Latest earlier run of the workload on the device whose environment is known';

ALTER TABLE environment ALTER COLUMN environment_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME environment_environment_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW kernel_lineage AS
 SELECT baseline.workload,
    payload.name AS payload,
    device.name AS device,
    baseline.protocol,
    baseline.environment_class,
    baseline.accepted_at,
    run.kernel_variant,
    run.kernel_ptx_sha256,
    replaced.kernel_variant AS replaced_variant,
    replaced.kernel_ptx_sha256 AS replaced_ptx_sha256,
        CASE
            WHEN (replaced.run_id IS NOT NULL) THEN ((run.kernel_variant IS DISTINCT FROM replaced.kernel_variant) OR (run.kernel_ptx_sha256 IS DISTINCT FROM replaced.kernel_ptx_sha256))
            ELSE NULL::boolean
        END AS kernel_changed,
    baseline.accepted_by,
    baseline.reason,
    run.candidate AS promoted,
    (run.candidate_origin ->> 'spec'::text) AS spec,
    (run.candidate_origin ->> 'commit'::text) AS commit,
    ((run.candidate_origin ->> 'modified'::text))::boolean AS modified,
    run.pinned_variant,
    run.pinned_ptx_sha256,
    COALESCE((predictions.details ->> 'word'::text), predictions.verdict) AS predictions_word,
    COALESCE((cuda.details ->> 'word'::text), cuda.verdict) AS time_word,
    COALESCE((energy.details ->> 'word'::text), energy.verdict) AS energy_word,
    ((cuda.details ->> 'effect_percent'::text))::double precision AS time_effect_percent,
    ((energy.details ->> 'effect_percent'::text))::double precision AS energy_effect_percent,
    run.adjusted_mj_median,
    replaced.adjusted_mj_median AS replaced_adjusted_mj_median,
    run.cuda_ms_median,
    replaced.cuda_ms_median AS replaced_cuda_ms_median,
    run.energy_trust,
    baseline.for_agreement,
    baseline.for_time,
    baseline.for_energy,
    baseline.retired_at,
    baseline.retired_by,
    baseline.retired_reason,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    replaced.run_id AS replaced_run_id,
    baseline.baseline_id
   FROM ((((((((( SELECT baseline_1.baseline_id,
            baseline_1.workload,
            baseline_1.payload_id,
            baseline_1.device_id,
            baseline_1.protocol,
            baseline_1.environment_id,
            baseline_1.environment_class,
            baseline_1.run_id,
            baseline_1.for_agreement,
            baseline_1.for_time,
            baseline_1.for_energy,
            baseline_1.accepted_by,
            baseline_1.accepted_at,
            baseline_1.reason,
            baseline_1.retired_at,
            baseline_1.energy_trust,
            baseline_1.retired_by,
            baseline_1.retired_reason,
            lag(baseline_1.baseline_id) OVER (PARTITION BY baseline_1.workload, baseline_1.payload_id, baseline_1.device_id, baseline_1.protocol, baseline_1.environment_class ORDER BY baseline_1.accepted_at, baseline_1.baseline_id) AS replaced_baseline_id
           FROM baseline baseline_1) baseline
     JOIN run ON ((run.run_id = baseline.run_id)))
     JOIN device ON ((device.device_id = baseline.device_id)))
     JOIN payload ON ((payload.payload_id = baseline.payload_id)))
     LEFT JOIN baseline before ON ((before.baseline_id = baseline.replaced_baseline_id)))
     LEFT JOIN run replaced ON ((replaced.run_id = before.run_id)))
     LEFT JOIN check_result predictions ON (((predictions.run_id = run.run_id) AND (predictions.check_name = 'compare_predictions'::text) AND (predictions.step = 0))))
     LEFT JOIN check_result cuda ON (((cuda.run_id = run.run_id) AND (cuda.check_name = 'compare_time'::text) AND (cuda.step = 0))))
     LEFT JOIN check_result energy ON (((energy.run_id = run.run_id) AND (energy.check_name = 'compare_energy'::text) AND (energy.step = 0))));

COMMENT ON VIEW kernel_lineage IS 'Which kernels nights are compared with since when, which they replaced, who decided it and why; ended baselines too';

COMMENT ON COLUMN kernel_lineage.workload IS 'Workload';

COMMENT ON COLUMN kernel_lineage.payload IS 'Name of the set of frozen draws';

COMMENT ON COLUMN kernel_lineage.device IS 'Model name of the device';

COMMENT ON COLUMN kernel_lineage.protocol IS 'Measurement protocol';

COMMENT ON COLUMN kernel_lineage.environment_class IS 'Versions that start a new baseline when they change';

COMMENT ON COLUMN kernel_lineage.accepted_at IS 'When the run was accepted (UTC)';

COMMENT ON COLUMN kernel_lineage.kernel_variant IS 'Variant of the kernels that nights are compared with from then on';

COMMENT ON COLUMN kernel_lineage.kernel_ptx_sha256 IS 'sha256 of their PTX; NULL where the device runs none';

COMMENT ON COLUMN kernel_lineage.replaced_variant IS 'Variant of the kernels before, under the same key; NULL: there were none';

COMMENT ON COLUMN kernel_lineage.replaced_ptx_sha256 IS 'sha256 of the PTX before, under the same key';

COMMENT ON COLUMN kernel_lineage.kernel_changed IS 'Whether these are other kernels than before; NULL: there were none';

COMMENT ON COLUMN kernel_lineage.accepted_by IS 'Who accepted it';

COMMENT ON COLUMN kernel_lineage.reason IS 'Why it was accepted';

COMMENT ON COLUMN kernel_lineage.promoted IS 'Whether the accepted run tried a kernel; else it was a night, or an imported record';

COMMENT ON COLUMN kernel_lineage.spec IS 'Of a candidate: what was tried, as it was asked for';

COMMENT ON COLUMN kernel_lineage.commit IS 'Of a candidate: its commit';

COMMENT ON COLUMN kernel_lineage.modified IS 'Whether the working tree differed from that commit: the kernel is then not its';

COMMENT ON COLUMN kernel_lineage.pinned_variant IS 'Of a candidate: variant of the kernels that it was held against';

COMMENT ON COLUMN kernel_lineage.pinned_ptx_sha256 IS 'Of a candidate: sha256 of the PTX that it was held against';

COMMENT ON COLUMN kernel_lineage.predictions_word IS 'Of a candidate: better, worse, same, inconclusive, invalid or unavailable than that; NULL: not compared';

COMMENT ON COLUMN kernel_lineage.time_word IS 'The same of its time';

COMMENT ON COLUMN kernel_lineage.energy_word IS 'The same of its energy';

COMMENT ON COLUMN kernel_lineage.time_effect_percent IS 'Of a candidate: its time against the other kernel''s, per cent';

COMMENT ON COLUMN kernel_lineage.energy_effect_percent IS 'Of a candidate: its energy against the other kernel''s, per cent';

COMMENT ON COLUMN kernel_lineage.adjusted_mj_median IS 'Median adjusted energy of the accepted run, mJ a replay';

COMMENT ON COLUMN kernel_lineage.replaced_adjusted_mj_median IS 'That of the run before';

COMMENT ON COLUMN kernel_lineage.cuda_ms_median IS 'Median CUDA-event time of the accepted run, ms a replay';

COMMENT ON COLUMN kernel_lineage.replaced_cuda_ms_median IS 'That of the run before';

COMMENT ON COLUMN kernel_lineage.energy_trust IS 'Whether the energy of the accepted run is verified';

COMMENT ON COLUMN kernel_lineage.for_agreement IS 'Whether predictions are compared with it';

COMMENT ON COLUMN kernel_lineage.for_time IS 'Whether times are compared with it';

COMMENT ON COLUMN kernel_lineage.for_energy IS 'Whether energies are compared with it';

COMMENT ON COLUMN kernel_lineage.retired_at IS 'When it stopped being current (UTC); NULL while it is';

COMMENT ON COLUMN kernel_lineage.retired_by IS 'Who ended it';

COMMENT ON COLUMN kernel_lineage.retired_reason IS 'Why it was ended';

COMMENT ON COLUMN kernel_lineage.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN kernel_lineage.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN kernel_lineage.started_at IS 'When the accepted run began (UTC)';

COMMENT ON COLUMN kernel_lineage.dag_id IS 'DAG of the accepted run';

COMMENT ON COLUMN kernel_lineage.dag_run_id IS 'DAG run of the accepted run';

COMMENT ON COLUMN kernel_lineage.run_id IS 'The accepted run';

COMMENT ON COLUMN kernel_lineage.replaced_run_id IS 'The run that was accepted before, under the same key';

COMMENT ON COLUMN kernel_lineage.baseline_id IS 'Key';

CREATE TABLE memory_storage (
    run_id uuid NOT NULL,
    storage_id integer NOT NULL,
    device text NOT NULL,
    address bigint NOT NULL,
    bytes bigint NOT NULL,
    aliases text[] NOT NULL,
    CONSTRAINT memory_storage_device_check CHECK ((btrim(device) <> ''::text)),
    CONSTRAINT memory_storage_numbers_check CHECK ((LEAST((storage_id)::bigint, address, bytes) >= 0))
);

COMMENT ON TABLE memory_storage IS 'Storages behind the named tensors of a task';

COMMENT ON COLUMN memory_storage.run_id IS 'Run';

COMMENT ON COLUMN memory_storage.storage_id IS 'Number of the storage in its inventory';

COMMENT ON COLUMN memory_storage.device IS 'Where it is, for example cuda:0';

COMMENT ON COLUMN memory_storage.address IS 'Its address; says nothing beyond its process';

COMMENT ON COLUMN memory_storage.bytes IS 'Its size, bytes';

COMMENT ON COLUMN memory_storage.aliases IS 'Names of the tensors that share it';

CREATE TABLE memory_tensor (
    run_id uuid NOT NULL,
    name text NOT NULL,
    storage_id integer NOT NULL,
    shape bigint[] NOT NULL,
    stride bigint[] NOT NULL,
    dtype text NOT NULL,
    storage_offset bigint NOT NULL,
    logical_bytes bigint NOT NULL,
    CONSTRAINT memory_tensor_axes_check CHECK ((cardinality(shape) = cardinality(stride))),
    CONSTRAINT memory_tensor_names_check CHECK (((btrim(name) <> ''::text) AND (btrim(dtype) <> ''::text))),
    CONSTRAINT memory_tensor_numbers_check CHECK ((LEAST(storage_offset, logical_bytes) >= 0))
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

CREATE TABLE task_memory (
    run_id uuid NOT NULL,
    outcome text NOT NULL,
    reason_code text,
    reason_message text,
    draw smallint,
    allocated_before_prepare_bytes bigint,
    reserved_before_prepare_bytes bigint,
    allocated_after_prepare_bytes bigint,
    prepare_and_invoke_peak_allocated_bytes bigint,
    allocated_after_invoke_bytes bigint,
    reserved_after_invoke_bytes bigint,
    prepare_and_invoke_peak_reserved_bytes bigint,
    added_peak_over_entry_allocated_bytes bigint,
    memory_reason_code text,
    memory_reason_message text,
    named_storage_bytes bigint,
    allocator_allocated_bytes bigint,
    unassigned_bytes bigint,
    cache_bytes bigint,
    cache_reason_code text,
    cache_reason_message text,
    state_hashes jsonb,
    invocations integer,
    hashes_matched text[] NOT NULL,
    total integer,
    agreed integer,
    predictions_sha256 text,
    predictions_file text,
    profile jsonb,
    profile_reason_code text,
    profile_reason_message text,
    duration_s double precision,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT task_memory_added_peak_check CHECK ((added_peak_over_entry_allocated_bytes = (prepare_and_invoke_peak_allocated_bytes - allocated_before_prepare_bytes))),
    CONSTRAINT task_memory_agreed_check CHECK ((((total IS NULL) = (agreed IS NULL)) AND ((agreed >= 0) AND (agreed <= total)))),
    CONSTRAINT task_memory_allocator_check CHECK ((num_nulls(prepare_and_invoke_peak_allocated_bytes, allocated_before_prepare_bytes, allocated_after_invoke_bytes) = ANY (ARRAY[0, 3]))),
    CONSTRAINT task_memory_bytes_check CHECK ((LEAST(allocated_before_prepare_bytes, reserved_before_prepare_bytes, allocated_after_prepare_bytes, prepare_and_invoke_peak_allocated_bytes, allocated_after_invoke_bytes, reserved_after_invoke_bytes, prepare_and_invoke_peak_reserved_bytes, added_peak_over_entry_allocated_bytes, named_storage_bytes, cache_bytes) >= 0)),
    CONSTRAINT task_memory_cache_reason_check CHECK (((cache_reason_code IS NULL) OR (cache_bytes IS NULL))),
    CONSTRAINT task_memory_draw_check CHECK ((draw >= 0)),
    CONSTRAINT task_memory_duration_s_check CHECK ((duration_s >= (0)::double precision)),
    CONSTRAINT task_memory_finite_check CHECK (((GREATEST(duration_s) < 'Infinity'::double precision) AND (LEAST(duration_s) > '-Infinity'::double precision))),
    CONSTRAINT task_memory_hashes_matched_check CHECK (((hashes_matched = '{}'::text[]) OR (state_hashes IS NOT NULL))),
    CONSTRAINT task_memory_invocations_check CHECK ((invocations > 0)),
    CONSTRAINT task_memory_memory_reason_check CHECK (((memory_reason_code IS NULL) OR (prepare_and_invoke_peak_allocated_bytes IS NULL))),
    CONSTRAINT task_memory_outcome_check CHECK ((outcome = ANY (ARRAY['ok'::text, 'regression'::text, 'bad_input'::text, 'invalid_measurement'::text, 'verification_mismatch'::text, 'infrastructure_failure'::text]))),
    CONSTRAINT task_memory_peak_check CHECK (((GREATEST(allocated_before_prepare_bytes, allocated_after_prepare_bytes, allocated_after_invoke_bytes) <= prepare_and_invoke_peak_allocated_bytes) AND (prepare_and_invoke_peak_allocated_bytes <= prepare_and_invoke_peak_reserved_bytes))),
    CONSTRAINT task_memory_predictions_sha256_check CHECK ((predictions_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT task_memory_profile_object_check CHECK ((jsonb_typeof(profile) = 'object'::text)),
    CONSTRAINT task_memory_profile_reason_check CHECK (((profile_reason_code IS NULL) OR (profile IS NULL))),
    CONSTRAINT task_memory_reason_check CHECK (((outcome = 'ok'::text) OR (reason_code IS NOT NULL))),
    CONSTRAINT task_memory_state_hashes_object_check CHECK ((jsonb_typeof(state_hashes) = 'object'::text)),
    CONSTRAINT task_memory_unassigned_bytes_check CHECK ((NOT (unassigned_bytes IS DISTINCT FROM (allocator_allocated_bytes - named_storage_bytes))))
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

CREATE VIEW memory_history AS
 SELECT ((run.started_at AT TIME ZONE 'UTC'::text))::date AS night,
    run.workload,
    device.name AS device,
    payload.name AS payload,
    task_memory.draw,
    task_memory.prepare_and_invoke_peak_allocated_bytes AS peak_allocated_bytes,
    task_memory.prepare_and_invoke_peak_reserved_bytes AS peak_reserved_bytes,
    task_memory.named_storage_bytes,
    task_memory.unassigned_bytes,
    before.prepare_and_invoke_peak_allocated_bytes AS previous_peak_allocated_bytes,
    before.prepare_and_invoke_peak_reserved_bytes AS previous_peak_reserved_bytes,
    before.named_storage_bytes AS previous_named_storage_bytes,
    before.unassigned_bytes AS previous_unassigned_bytes,
    task_memory.allocated_before_prepare_bytes,
    task_memory.reserved_before_prepare_bytes,
    task_memory.allocated_after_prepare_bytes,
    task_memory.allocated_after_invoke_bytes,
    task_memory.reserved_after_invoke_bytes,
    task_memory.added_peak_over_entry_allocated_bytes,
    task_memory.allocator_allocated_bytes,
    task_memory.cache_bytes,
    ( SELECT (count(*))::integer AS count
           FROM memory_tensor
          WHERE (memory_tensor.run_id = run.run_id)) AS tensors,
    ( SELECT (count(*))::integer AS count
           FROM memory_storage
          WHERE (memory_storage.run_id = run.run_id)) AS storages,
    task_memory.invocations,
    ( SELECT array_agg(name.name ORDER BY name.name) AS array_agg
           FROM jsonb_object_keys(task_memory.state_hashes) name(name)
          WHERE (NOT (name.name = ANY (task_memory.hashes_matched)))) AS unmatched_states,
    task_memory.agreed,
    task_memory.total,
    task_memory.predictions_sha256,
    (before.predictions_sha256 <> task_memory.predictions_sha256) AS predictions_changed,
    task_memory.outcome,
    task_memory.reason_code,
    task_memory.reason_message,
    task_memory.memory_reason_code,
    (task_memory.profile IS NOT NULL) AS profiled,
    task_memory.duration_s,
    ( SELECT
                CASE
                    WHEN bool_or((withdrawal.scope = 'all'::text)) THEN 'all'::text
                    ELSE max(withdrawal.scope)
                END AS max
           FROM withdrawal
          WHERE (withdrawal.run_id = run.run_id)) AS withdrawn,
    environment.environment_class,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    before.run_id AS previous_run_id,
    run.dag_id,
    run.dag_run_id,
    run.run_id
   FROM (((((run
     JOIN task_memory ON ((task_memory.run_id = run.run_id)))
     LEFT JOIN payload ON ((payload.payload_id = run.payload_id)))
     LEFT JOIN device ON ((device.device_id = run.device_id)))
     LEFT JOIN environment ON ((environment.environment_id = run.environment_id)))
     LEFT JOIN LATERAL ( SELECT (array_agg(latest.run_id))[1] AS run_id,
            max(latest.prepare_and_invoke_peak_allocated_bytes) AS prepare_and_invoke_peak_allocated_bytes,
            max(latest.prepare_and_invoke_peak_reserved_bytes) AS prepare_and_invoke_peak_reserved_bytes,
            max(latest.named_storage_bytes) AS named_storage_bytes,
            max(latest.unassigned_bytes) AS unassigned_bytes,
            max(latest.predictions_sha256) AS predictions_sha256
           FROM ( SELECT earlier.run_id,
                    earlier.outcome,
                    earlier.reason_code,
                    earlier.reason_message,
                    earlier.draw,
                    earlier.allocated_before_prepare_bytes,
                    earlier.reserved_before_prepare_bytes,
                    earlier.allocated_after_prepare_bytes,
                    earlier.prepare_and_invoke_peak_allocated_bytes,
                    earlier.allocated_after_invoke_bytes,
                    earlier.reserved_after_invoke_bytes,
                    earlier.prepare_and_invoke_peak_reserved_bytes,
                    earlier.added_peak_over_entry_allocated_bytes,
                    earlier.memory_reason_code,
                    earlier.memory_reason_message,
                    earlier.named_storage_bytes,
                    earlier.allocator_allocated_bytes,
                    earlier.unassigned_bytes,
                    earlier.cache_bytes,
                    earlier.cache_reason_code,
                    earlier.cache_reason_message,
                    earlier.state_hashes,
                    earlier.invocations,
                    earlier.hashes_matched,
                    earlier.total,
                    earlier.agreed,
                    earlier.predictions_sha256,
                    earlier.predictions_file,
                    earlier.profile,
                    earlier.profile_reason_code,
                    earlier.profile_reason_message,
                    earlier.duration_s,
                    earlier.created_at
                   FROM (run known
                     JOIN task_memory earlier ON (((earlier.run_id = known.run_id) AND (earlier.named_storage_bytes IS NOT NULL))))
                  WHERE ((known.workload = run.workload) AND (known.device_id = run.device_id) AND (known.payload_id = run.payload_id) AND (NOT (earlier.draw IS DISTINCT FROM task_memory.draw)) AND (NOT known.candidate) AND (ROW(known.started_at, known.run_id) < ROW(run.started_at, run.run_id)))
                  ORDER BY known.started_at DESC, known.run_id DESC
                 LIMIT 1) latest) before ON (true))
  WHERE (NOT run.candidate);

COMMENT ON VIEW memory_history IS 'One row a run that looked at the memory of a task, imported ones too, but not of candidates, beside the one before on the same device';

COMMENT ON COLUMN memory_history.night IS 'Date in UTC on which the run began';

COMMENT ON COLUMN memory_history.workload IS 'What was looked at';

COMMENT ON COLUMN memory_history.device IS 'Model name of the device';

COMMENT ON COLUMN memory_history.payload IS 'Name of the set of frozen draws';

COMMENT ON COLUMN memory_history.draw IS 'Number of the draw';

COMMENT ON COLUMN memory_history.peak_allocated_bytes IS 'Most allocated while the task was made and run, bytes; NULL: nothing counts it';

COMMENT ON COLUMN memory_history.peak_reserved_bytes IS 'Most reserved meanwhile, bytes';

COMMENT ON COLUMN memory_history.named_storage_bytes IS 'All storages behind named tensors, each counted once, bytes';

COMMENT ON COLUMN memory_history.unassigned_bytes IS 'Allocated behind no named tensor, bytes';

COMMENT ON COLUMN memory_history.previous_peak_allocated_bytes IS 'Most allocated, in the run before, bytes';

COMMENT ON COLUMN memory_history.previous_peak_reserved_bytes IS 'Most reserved, in the run before, bytes';

COMMENT ON COLUMN memory_history.previous_named_storage_bytes IS 'Named storages in the run before, bytes';

COMMENT ON COLUMN memory_history.previous_unassigned_bytes IS 'Behind no named tensor in the run before, bytes';

COMMENT ON COLUMN memory_history.allocated_before_prepare_bytes IS 'Allocated before the task was made, bytes';

COMMENT ON COLUMN memory_history.reserved_before_prepare_bytes IS 'Reserved before the task was made, bytes';

COMMENT ON COLUMN memory_history.allocated_after_prepare_bytes IS 'Allocated after the task was made, bytes';

COMMENT ON COLUMN memory_history.allocated_after_invoke_bytes IS 'Allocated after the first run, bytes';

COMMENT ON COLUMN memory_history.reserved_after_invoke_bytes IS 'Reserved after the first run, bytes';

COMMENT ON COLUMN memory_history.added_peak_over_entry_allocated_bytes IS 'Most allocated, less what was allocated before, bytes';

COMMENT ON COLUMN memory_history.allocator_allocated_bytes IS 'Allocated when the tensors were counted, bytes';

COMMENT ON COLUMN memory_history.cache_bytes IS 'Size of the device''s L2 cache, bytes; nothing says what stays in it';

COMMENT ON COLUMN memory_history.tensors IS 'Named tensors';

COMMENT ON COLUMN memory_history.storages IS 'Storages behind them';

COMMENT ON COLUMN memory_history.invocations IS 'How often the task ran';

COMMENT ON COLUMN memory_history.unmatched_states IS 'Names of the hashes that were others after the last run; NULL: none, or none made';

COMMENT ON COLUMN memory_history.agreed IS 'Predictions equal to the frozen ones';

COMMENT ON COLUMN memory_history.total IS 'Predictions made';

COMMENT ON COLUMN memory_history.predictions_sha256 IS 'sha256 of the predictions as a file of int64 in the format of NumPy';

COMMENT ON COLUMN memory_history.predictions_changed IS 'Whether that is another than in the run before; NULL: nothing to compare';

COMMENT ON COLUMN memory_history.outcome IS 'Class of outcome: regression when the task does not repeat itself';

COMMENT ON COLUMN memory_history.reason_code IS 'Word for why the outcome is not ok';

COMMENT ON COLUMN memory_history.reason_message IS 'Line for why the outcome is not ok';

COMMENT ON COLUMN memory_history.memory_reason_code IS 'Word for why the allocator counts nothing';

COMMENT ON COLUMN memory_history.profiled IS 'Whether there is a profile by kernel';

COMMENT ON COLUMN memory_history.duration_s IS 'Time it took, s';

COMMENT ON COLUMN memory_history.withdrawn IS 'energy or all, where that was withdrawn of the run: see the view withdrawn; NULL: nothing was';

COMMENT ON COLUMN memory_history.environment_class IS 'Versions that start a new baseline when they change';

COMMENT ON COLUMN memory_history.trigger IS 'scheduled, manual, backfill or import';

COMMENT ON COLUMN memory_history.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN memory_history.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN memory_history.started_at IS 'When the run began (UTC)';

COMMENT ON COLUMN memory_history.previous_run_id IS 'Latest earlier run of the same workload, payload, draw and device that has an inventory';

COMMENT ON COLUMN memory_history.dag_id IS 'Airflow DAG';

COMMENT ON COLUMN memory_history.dag_run_id IS 'Airflow DAG run';

COMMENT ON COLUMN memory_history.run_id IS 'Key of the run in every table';

CREATE TABLE qualification (
    run_id uuid NOT NULL,
    outcome text NOT NULL,
    reason_code text,
    reason_message text,
    computed_on text,
    captured boolean,
    passed boolean,
    checks integer,
    maximum_abs_error double precision,
    tolerance jsonb NOT NULL,
    duration_s double precision,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT qualification_asked_check CHECK ((num_nulls(passed, checks) = ANY (ARRAY[0, 2]))),
    CONSTRAINT qualification_checks_check CHECK ((checks >= 0)),
    CONSTRAINT qualification_duration_s_check CHECK ((duration_s >= (0)::double precision)),
    CONSTRAINT qualification_finite_check CHECK (((GREATEST(maximum_abs_error, duration_s) < 'Infinity'::double precision) AND (LEAST(maximum_abs_error, duration_s) > '-Infinity'::double precision))),
    CONSTRAINT qualification_maximum_abs_error_check CHECK ((maximum_abs_error >= (0)::double precision)),
    CONSTRAINT qualification_outcome_check CHECK ((outcome = ANY (ARRAY['ok'::text, 'regression'::text, 'bad_input'::text, 'invalid_measurement'::text, 'verification_mismatch'::text, 'infrastructure_failure'::text]))),
    CONSTRAINT qualification_passed_check CHECK (((outcome = 'ok'::text) = (passed IS TRUE))),
    CONSTRAINT qualification_reason_check CHECK (((outcome = 'ok'::text) OR (reason_code IS NOT NULL))),
    CONSTRAINT qualification_tolerance_object_check CHECK ((jsonb_typeof(tolerance) = 'object'::text))
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

CREATE TABLE run_energy (
    run_id uuid NOT NULL,
    figure text NOT NULL,
    subject text NOT NULL,
    rounds integer NOT NULL,
    median_mj double precision NOT NULL,
    min_mj double precision NOT NULL,
    max_mj double precision NOT NULL,
    sample_sd_mj double precision,
    detectable_mj double precision,
    per_reference_load double precision,
    CONSTRAINT run_energy_detectable_mj_check CHECK ((detectable_mj >= (0)::double precision)),
    CONSTRAINT run_energy_figure_check CHECK ((figure = ANY (ARRAY['classic'::text, 'aligned'::text, 'audited'::text, 'interleaved'::text, 'trial'::text]))),
    CONSTRAINT run_energy_finite_check CHECK (((GREATEST(median_mj, min_mj, max_mj, sample_sd_mj, detectable_mj, per_reference_load) < 'Infinity'::double precision) AND (LEAST(median_mj, min_mj, max_mj, sample_sd_mj, detectable_mj, per_reference_load) > '-Infinity'::double precision))),
    CONSTRAINT run_energy_median_mj_check CHECK (((median_mj >= min_mj) AND (median_mj <= max_mj))),
    CONSTRAINT run_energy_rounds_check CHECK ((rounds > 0)),
    CONSTRAINT run_energy_sample_sd_mj_check CHECK ((sample_sd_mj >= (0)::double precision)),
    CONSTRAINT run_energy_spread_check CHECK (((rounds > 1) = (sample_sd_mj IS NOT NULL))),
    CONSTRAINT run_energy_subject_check CHECK ((btrim(subject) <> ''::text))
);

COMMENT ON TABLE run_energy IS 'Energy of a replay over the valid rounds of a run, one row a figure';

COMMENT ON COLUMN run_energy.run_id IS 'Run';

COMMENT ON COLUMN run_energy.figure IS 'How it was measured: classic, aligned, audited, interleaved or trial';

COMMENT ON COLUMN run_energy.subject IS 'What it is of: candidate, baseline, control, or a difference of two';

COMMENT ON COLUMN run_energy.rounds IS 'Valid rounds that have the figure';

COMMENT ON COLUMN run_energy.median_mj IS 'Median over those rounds, mJ a replay; may be negative';

COMMENT ON COLUMN run_energy.min_mj IS 'Smallest of them, mJ a replay';

COMMENT ON COLUMN run_energy.max_mj IS 'Largest of them, mJ a replay';

COMMENT ON COLUMN run_energy.sample_sd_mj IS 'Sample standard deviation (n-1), mJ a replay; NULL for one round';

COMMENT ON COLUMN run_energy.detectable_mj IS 'Smallest difference to another such run that is found in 80 of 100 cases at a level of 5 per cent, mJ';

COMMENT ON COLUMN run_energy.per_reference_load IS 'Median in units of 10^9 operations of the reference load: what may be compared across boards';

CREATE TABLE telemetry_gate (
    run_id uuid NOT NULL,
    gate text NOT NULL,
    at text NOT NULL,
    passed boolean,
    value double precision,
    unit text NOT NULL,
    low double precision,
    high double precision,
    reason_code text,
    reason_message text,
    CONSTRAINT telemetry_gate_at_check CHECK ((at ~ '^(before|after|run|round-[0-9]{2,4})$'::text)),
    CONSTRAINT telemetry_gate_bounds_check CHECK ((low <= high)),
    CONSTRAINT telemetry_gate_finite_check CHECK (((GREATEST(value, low, high) < 'Infinity'::double precision) AND (LEAST(value, low, high) > '-Infinity'::double precision))),
    CONSTRAINT telemetry_gate_gate_check CHECK ((gate = ANY (ARRAY['reference_load'::text, 'meters_agree'::text, 'sham_window'::text, 'round_spread'::text, 'sampling'::text, 'exclusive'::text, 'output_verified'::text, 'same_conditions'::text]))),
    CONSTRAINT telemetry_gate_reason_check CHECK (((passed IS TRUE) OR (reason_code IS NOT NULL))),
    CONSTRAINT telemetry_gate_unit_check CHECK ((btrim(unit) <> ''::text))
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

CREATE VIEW nightly AS
 SELECT ((run.started_at AT TIME ZONE 'UTC'::text))::date AS night,
    run.workload,
    device.name AS device,
    COALESCE(run.verdict, 'not judged'::text) AS verdict,
    run.agreed,
    run.total,
    run.adjusted_mj_median,
    run.adjusted_mj_min,
    run.adjusted_mj_max,
    run.cuda_ms_median,
    run.wall_ms_median,
    run.rounds_valid,
    run.rounds_expected,
    run.draws_validated,
    run.draws_expected,
    ( SELECT check_result.verdict
           FROM check_result
          WHERE ((check_result.run_id = run.run_id) AND (check_result.check_name = 'agreement'::text))
          ORDER BY check_result.step DESC
         LIMIT 1) AS agreement_verdict,
    ( SELECT check_result.verdict
           FROM check_result
          WHERE ((check_result.run_id = run.run_id) AND (check_result.check_name = 'energy'::text))
          ORDER BY check_result.step DESC
         LIMIT 1) AS energy_verdict,
    run.energy_trust,
    run.outcome,
    run.reason_code,
    run.reason_message,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    payload.name AS payload,
    run.protocol,
    run.kernel_variant,
    environment.environment_class,
    run.label,
    run.note,
    run.exit_code,
    (EXTRACT(epoch FROM (run.completed_at - run.started_at)))::double precision AS duration_s,
    run.started_at,
    run.completed_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    aligned.median_mj AS aligned_mj_median,
    run.reference_joules_per_1e12_operations,
    ARRAY( SELECT DISTINCT telemetry_gate.gate
           FROM telemetry_gate
          WHERE ((telemetry_gate.run_id = run.run_id) AND (telemetry_gate.passed IS FALSE))
          ORDER BY telemetry_gate.gate) AS failed_gates,
    run.inject,
    ( SELECT
                CASE
                    WHEN bool_or((withdrawal.scope = 'all'::text)) THEN 'all'::text
                    ELSE max(withdrawal.scope)
                END AS max
           FROM withdrawal
          WHERE (withdrawal.run_id = run.run_id)) AS withdrawn,
    ( SELECT check_result.verdict
           FROM check_result
          WHERE ((check_result.run_id = run.run_id) AND (check_result.check_name = 'time'::text))
          ORDER BY check_result.step DESC
         LIMIT 1) AS time_verdict,
    run.confirmation_rounds,
    run.confirmation_reason_message AS confirmation_reason,
    qualification.passed AS qualified,
    task_memory.prepare_and_invoke_peak_allocated_bytes AS peak_allocated_bytes,
    task_memory.named_storage_bytes
   FROM ((((((run
     LEFT JOIN device ON ((device.device_id = run.device_id)))
     LEFT JOIN environment ON ((environment.environment_id = run.environment_id)))
     LEFT JOIN payload ON ((payload.payload_id = run.payload_id)))
     LEFT JOIN run_energy aligned ON (((aligned.run_id = run.run_id) AND (aligned.figure = 'aligned'::text) AND (aligned.subject = 'candidate'::text))))
     LEFT JOIN qualification ON ((qualification.run_id = run.run_id)))
     LEFT JOIN task_memory ON ((task_memory.run_id = run.run_id)))
  WHERE ((run.trigger <> 'import'::text) AND (NOT run.candidate));

COMMENT ON VIEW nightly IS 'One row a night: scheduled, manual and backfill runs with their figures and verdicts; candidates are in candidate_runs';

COMMENT ON COLUMN nightly.night IS 'Date in UTC on which the run began';

COMMENT ON COLUMN nightly.workload IS 'What was tested';

COMMENT ON COLUMN nightly.device IS 'Model name of the device; NULL when none could be chosen';

COMMENT ON COLUMN nightly.verdict IS 'Verdict of the run, or "not judged" for a run that ended before its report';

COMMENT ON COLUMN nightly.agreed IS 'Predictions equal to the frozen ones, over all draws';

COMMENT ON COLUMN nightly.total IS 'Predictions made, over all draws';

COMMENT ON COLUMN nightly.adjusted_mj_median IS 'Median energy a replay without idle energy over valid rounds, mJ';

COMMENT ON COLUMN nightly.adjusted_mj_min IS 'Smallest adjusted energy of a valid round, mJ a replay';

COMMENT ON COLUMN nightly.adjusted_mj_max IS 'Largest adjusted energy of a valid round, mJ a replay';

COMMENT ON COLUMN nightly.cuda_ms_median IS 'Median CUDA-event time a replay over valid rounds, ms';

COMMENT ON COLUMN nightly.wall_ms_median IS 'Median wall time a replay over valid rounds, ms';

COMMENT ON COLUMN nightly.rounds_valid IS 'Rounds whose figures may be used';

COMMENT ON COLUMN nightly.rounds_expected IS 'Rounds asked for, and the confirmation rounds that were planned';

COMMENT ON COLUMN nightly.draws_validated IS 'Draws with a result';

COMMENT ON COLUMN nightly.draws_expected IS 'Draws asked for';

COMMENT ON COLUMN nightly.agreement_verdict IS 'Last verdict of the agreement check; NULL when it did not run';

COMMENT ON COLUMN nightly.energy_verdict IS 'Last verdict of the energy check; NULL when it did not run';

COMMENT ON COLUMN nightly.energy_trust IS 'verified (every telemetry gate passed), failed, unverified or unavailable (no counter)';

COMMENT ON COLUMN nightly.outcome IS 'Worst outcome of the tasks, before any comparison with a baseline';

COMMENT ON COLUMN nightly.reason_code IS 'Word for why the outcome is not ok';

COMMENT ON COLUMN nightly.reason_message IS 'Line for why the outcome is not ok';

COMMENT ON COLUMN nightly.trigger IS 'scheduled, manual or backfill';

COMMENT ON COLUMN nightly.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN nightly.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN nightly.payload IS 'Name of the set of frozen draws';

COMMENT ON COLUMN nightly.protocol IS 'Measurement protocol';

COMMENT ON COLUMN nightly.kernel_variant IS 'Variant of the kernels that ran';

COMMENT ON COLUMN nightly.environment_class IS 'Versions that start a new baseline when they change';

COMMENT ON COLUMN nightly.label IS 'Short name given at the trigger';

COMMENT ON COLUMN nightly.note IS 'Free text given at the trigger';

COMMENT ON COLUMN nightly.exit_code IS 'Exit status that goes with the verdict';

COMMENT ON COLUMN nightly.duration_s IS 'Time from the accepted request to the record of the last part, s';

COMMENT ON COLUMN nightly.started_at IS 'When the run began: when its request was accepted (UTC)';

COMMENT ON COLUMN nightly.completed_at IS 'When the last of its parts was recorded (UTC)';

COMMENT ON COLUMN nightly.dag_id IS 'Airflow DAG';

COMMENT ON COLUMN nightly.dag_run_id IS 'Airflow DAG run';

COMMENT ON COLUMN nightly.run_id IS 'Key of the run in every table';

COMMENT ON COLUMN nightly.aligned_mj_median IS 'Median energy a replay without idle energy, measured from counter step to counter step, mJ';

COMMENT ON COLUMN nightly.reference_joules_per_1e12_operations IS 'Energy of the reference load of that night, J per 10^12 operations';

COMMENT ON COLUMN nightly.failed_gates IS 'Telemetry gates that failed, by name; empty when none did';

COMMENT ON COLUMN nightly.inject IS 'Effects that the simulated device was told to show; NULL: none';

COMMENT ON COLUMN nightly.withdrawn IS 'energy or all, where that was withdrawn: see the view withdrawn; NULL: nothing was';

COMMENT ON COLUMN nightly.time_verdict IS 'Last verdict of the check of time; NULL when it did not run';

COMMENT ON COLUMN nightly.confirmation_rounds IS 'Confirmation rounds planned after a look at the first rounds; 0: nothing to confirm; NULL: nobody looked';

COMMENT ON COLUMN nightly.confirmation_reason IS 'What is to be confirmed, or why nothing is; NULL: nobody looked';

COMMENT ON COLUMN nightly.qualified IS 'Whether every check of its qualification holds; NULL: none was made';

COMMENT ON COLUMN nightly.peak_allocated_bytes IS 'Most allocated while a task was made and run, bytes; NULL: not looked at, or nothing counts it';

COMMENT ON COLUMN nightly.named_storage_bytes IS 'Storages behind the named tensors of a task, bytes; NULL: not looked at';

CREATE VIEW open_alerts AS
 SELECT alert.workload,
    device.name AS device,
    alert.metric,
    alert.direction,
    alert.outcome,
    alert.state,
    ((alert.state = 'muted'::text) AND (alert.muted_until > now())) AS is_muted,
    alert.value,
    alert.baseline_value,
    alert.unit,
    (((100)::double precision * (alert.value - alert.baseline_value)) / NULLIF(abs(alert.baseline_value), (0)::double precision)) AS change_percent,
    alert.text,
    alert.occurrences,
    ((first.started_at AT TIME ZONE 'UTC'::text))::date AS first_night,
    ((last.started_at AT TIME ZONE 'UTC'::text))::date AS last_night,
    alert.opened_at,
    alert.last_seen_at,
    alert.acknowledged_by,
    alert.acknowledged_at,
    alert.acknowledged_reason,
    alert.muted_until,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    alert.first_run_id,
    alert.last_run_id,
    last.dag_id AS last_dag_id,
    last.dag_run_id AS last_dag_run_id,
    alert.baseline_id,
    alert.alert_id
   FROM (((alert
     LEFT JOIN device ON ((device.device_id = alert.device_id)))
     LEFT JOIN run first ON ((first.run_id = alert.first_run_id)))
     LEFT JOIN run last ON ((last.run_id = alert.last_run_id)))
  WHERE (alert.state <> 'resolved'::text);

COMMENT ON VIEW open_alerts IS 'Alerts that are not resolved: at most one a workload, device, metric and direction';

COMMENT ON COLUMN open_alerts.workload IS 'Workload';

COMMENT ON COLUMN open_alerts.device IS 'Model name of the device; NULL where there was none, as of a missing night';

COMMENT ON COLUMN open_alerts.metric IS 'What went wrong: the metric of a check, or night for one that is missing';

COMMENT ON COLUMN open_alerts.direction IS 'Where the figure went: lower, higher, changed, or missing';

COMMENT ON COLUMN open_alerts.outcome IS 'Class of outcome: regression, invalid_measurement, infrastructure_failure, ...';

COMMENT ON COLUMN open_alerts.state IS 'open, acknowledged or muted';

COMMENT ON COLUMN open_alerts.is_muted IS 'Whether it is muted now: a mute ends at muted_until';

COMMENT ON COLUMN open_alerts.value IS 'Latest figure';

COMMENT ON COLUMN open_alerts.baseline_value IS 'Figure of the baseline';

COMMENT ON COLUMN open_alerts.unit IS 'Unit of the two figures';

COMMENT ON COLUMN open_alerts.change_percent IS 'How far the figure is from that of the baseline, per cent';

COMMENT ON COLUMN open_alerts.text IS 'What people are told, in one line, as it was last told';

COMMENT ON COLUMN open_alerts.occurrences IS 'Nights that showed it';

COMMENT ON COLUMN open_alerts.first_night IS 'Date in UTC of the run that opened it; NULL: no run did';

COMMENT ON COLUMN open_alerts.last_night IS 'Date in UTC of the latest run that showed it';

COMMENT ON COLUMN open_alerts.opened_at IS 'When it was opened (UTC)';

COMMENT ON COLUMN open_alerts.last_seen_at IS 'When it was last seen (UTC)';

COMMENT ON COLUMN open_alerts.acknowledged_by IS 'Who has seen it';

COMMENT ON COLUMN open_alerts.acknowledged_at IS 'When it was acknowledged (UTC)';

COMMENT ON COLUMN open_alerts.acknowledged_reason IS 'What is known of its cause';

COMMENT ON COLUMN open_alerts.muted_until IS 'When its mute ends or ended (UTC)';

COMMENT ON COLUMN open_alerts.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN open_alerts.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN open_alerts.first_run_id IS 'Run that opened it';

COMMENT ON COLUMN open_alerts.last_run_id IS 'Latest run that showed it';

COMMENT ON COLUMN open_alerts.last_dag_id IS 'Airflow DAG of that run';

COMMENT ON COLUMN open_alerts.last_dag_run_id IS 'Airflow DAG run of that run';

COMMENT ON COLUMN open_alerts.baseline_id IS 'Baseline compared with';

COMMENT ON COLUMN open_alerts.alert_id IS 'Key; its events are in alert_event';

CREATE TABLE payload_draw (
    payload_id integer NOT NULL,
    draw smallint NOT NULL,
    dataset_seed bigint NOT NULL,
    payload_sha256 text NOT NULL,
    frozen_prediction_sha256 text NOT NULL,
    CONSTRAINT payload_draw_draw_check CHECK ((draw >= 0)),
    CONSTRAINT payload_draw_frozen_prediction_sha256_check CHECK ((frozen_prediction_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT payload_draw_payload_sha256_check CHECK ((payload_sha256 ~ '^[0-9a-f]{64}$'::text))
);

COMMENT ON TABLE payload_draw IS 'Frozen draws of each payload, as its manifest names them';

COMMENT ON COLUMN payload_draw.payload_id IS 'Set of draws';

COMMENT ON COLUMN payload_draw.draw IS 'Number of the draw in its set, from 0';

COMMENT ON COLUMN payload_draw.dataset_seed IS 'Seed that the draw was made from';

COMMENT ON COLUMN payload_draw.payload_sha256 IS 'sha256 of the file with the draw''s arrays';

COMMENT ON COLUMN payload_draw.frozen_prediction_sha256 IS 'sha256 of the frozen predictions';

ALTER TABLE payload ALTER COLUMN payload_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME payload_payload_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE qualification_case (
    run_id uuid NOT NULL,
    case_name text NOT NULL,
    passed boolean NOT NULL,
    checks integer NOT NULL,
    failures jsonb NOT NULL,
    figures jsonb NOT NULL,
    CONSTRAINT qualification_case_case_name_check CHECK ((btrim(case_name) <> ''::text)),
    CONSTRAINT qualification_case_checks_check CHECK ((checks >= 0)),
    CONSTRAINT qualification_case_failures_array_check CHECK ((jsonb_typeof(failures) = 'array'::text)),
    CONSTRAINT qualification_case_figures_object_check CHECK ((jsonb_typeof(figures) = 'object'::text)),
    CONSTRAINT qualification_case_passed_check CHECK ((passed = (failures = '[]'::jsonb)))
);

COMMENT ON TABLE qualification_case IS 'Cases of qualifications with their figures';

COMMENT ON COLUMN qualification_case.run_id IS 'Run';

COMMENT ON COLUMN qualification_case.case_name IS 'What was checked';

COMMENT ON COLUMN qualification_case.passed IS 'Whether every check of the case holds';

COMMENT ON COLUMN qualification_case.checks IS 'Single comparisons of the case';

COMMENT ON COLUMN qualification_case.failures IS 'Names of those that do not hold';

COMMENT ON COLUMN qualification_case.figures IS 'The case''s own figures, by the names of the workload';

CREATE VIEW qualification_history AS
 SELECT ((run.started_at AT TIME ZONE 'UTC'::text))::date AS night,
    run.workload,
    device.name AS device,
    qualification.passed,
    qualification.checks,
    cases.cases,
    COALESCE(cases.cases_failed, '{}'::text[]) AS cases_failed,
    cases.failures,
    qualification.maximum_abs_error,
    before.maximum_abs_error AS previous_maximum_abs_error,
    before.checks AS previous_checks,
    qualification.tolerance,
    cases.figures,
    qualification.computed_on,
    qualification.captured,
    qualification.outcome,
    qualification.reason_code,
    qualification.reason_message,
    qualification.duration_s,
    ( SELECT
                CASE
                    WHEN bool_or((withdrawal.scope = 'all'::text)) THEN 'all'::text
                    ELSE max(withdrawal.scope)
                END AS max
           FROM withdrawal
          WHERE (withdrawal.run_id = run.run_id)) AS withdrawn,
    environment.environment_class,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    before.run_id AS previous_run_id,
    run.dag_id,
    run.dag_run_id,
    run.run_id
   FROM (((((run
     JOIN qualification ON ((qualification.run_id = run.run_id)))
     LEFT JOIN LATERAL ( SELECT (count(*))::integer AS cases,
            array_agg(qualification_case.case_name ORDER BY qualification_case.case_name) FILTER (WHERE (NOT qualification_case.passed)) AS cases_failed,
            jsonb_object_agg(qualification_case.case_name, qualification_case.failures) FILTER (WHERE (NOT qualification_case.passed)) AS failures,
            jsonb_object_agg(qualification_case.case_name, qualification_case.figures) AS figures
           FROM qualification_case
          WHERE (qualification_case.run_id = run.run_id)) cases ON (true))
     LEFT JOIN device ON ((device.device_id = run.device_id)))
     LEFT JOIN environment ON ((environment.environment_id = run.environment_id)))
     LEFT JOIN LATERAL ( SELECT (array_agg(latest.run_id))[1] AS run_id,
            max(latest.checks) AS checks,
            max(latest.maximum_abs_error) AS maximum_abs_error
           FROM ( SELECT earlier.run_id,
                    earlier.outcome,
                    earlier.reason_code,
                    earlier.reason_message,
                    earlier.computed_on,
                    earlier.captured,
                    earlier.passed,
                    earlier.checks,
                    earlier.maximum_abs_error,
                    earlier.tolerance,
                    earlier.duration_s,
                    earlier.created_at
                   FROM (run known
                     JOIN qualification earlier ON (((earlier.run_id = known.run_id) AND (earlier.passed IS NOT NULL))))
                  WHERE ((known.workload = run.workload) AND (known.device_id = run.device_id) AND (NOT known.candidate) AND (ROW(known.started_at, known.run_id) < ROW(run.started_at, run.run_id)))
                  ORDER BY known.started_at DESC, known.run_id DESC
                 LIMIT 1) latest) before ON (true))
  WHERE (NOT run.candidate);

COMMENT ON VIEW qualification_history IS 'One row a run with a qualification, imported ones too, but not of candidates, beside the one before on the same device';

COMMENT ON COLUMN qualification_history.night IS 'Date in UTC on which the run began';

COMMENT ON COLUMN qualification_history.workload IS 'What was qualified';

COMMENT ON COLUMN qualification_history.device IS 'Model name of the device';

COMMENT ON COLUMN qualification_history.passed IS 'Whether every check holds; NULL: none could be made';

COMMENT ON COLUMN qualification_history.checks IS 'Single comparisons over all cases';

COMMENT ON COLUMN qualification_history.cases IS 'Cases';

COMMENT ON COLUMN qualification_history.cases_failed IS 'Cases of which a check failed, by name; empty: none';

COMMENT ON COLUMN qualification_history.failures IS 'Checks that do not hold, as an object by case; NULL: none';

COMMENT ON COLUMN qualification_history.maximum_abs_error IS 'Largest absolute difference over all cases';

COMMENT ON COLUMN qualification_history.previous_maximum_abs_error IS 'The same of the run before; NULL: none, or not known';

COMMENT ON COLUMN qualification_history.previous_checks IS 'Comparisons of the run before; fewer are a check that was left out';

COMMENT ON COLUMN qualification_history.tolerance IS 'What differences are held against: atol (absolute), rtol (relative)';

COMMENT ON COLUMN qualification_history.figures IS 'Figures of the cases, as an object by case and name';

COMMENT ON COLUMN qualification_history.computed_on IS 'What the cases ran on where they ask for a device';

COMMENT ON COLUMN qualification_history.captured IS 'Whether they ran as captured CUDA graphs';

COMMENT ON COLUMN qualification_history.outcome IS 'Class of outcome: regression when a check failed';

COMMENT ON COLUMN qualification_history.reason_code IS 'Word for why the outcome is not ok';

COMMENT ON COLUMN qualification_history.reason_message IS 'Line for why the outcome is not ok';

COMMENT ON COLUMN qualification_history.duration_s IS 'Time it took, s';

COMMENT ON COLUMN qualification_history.withdrawn IS 'energy or all, where that was withdrawn of the run: see the view withdrawn; NULL: nothing was';

COMMENT ON COLUMN qualification_history.environment_class IS 'Versions that start a new baseline when they change';

COMMENT ON COLUMN qualification_history.trigger IS 'scheduled, manual, backfill or import';

COMMENT ON COLUMN qualification_history.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN qualification_history.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN qualification_history.started_at IS 'When the run began (UTC)';

COMMENT ON COLUMN qualification_history.previous_run_id IS 'Latest earlier run of the same workload and device whose device could be asked';

COMMENT ON COLUMN qualification_history.dag_id IS 'Airflow DAG';

COMMENT ON COLUMN qualification_history.dag_run_id IS 'Airflow DAG run';

COMMENT ON COLUMN qualification_history.run_id IS 'Key of the run in every table';

CREATE TABLE round (
    run_id uuid NOT NULL,
    arm text NOT NULL,
    round smallint NOT NULL,
    protocol text NOT NULL,
    outcome text NOT NULL,
    reason_code text,
    reason_message text,
    valid boolean NOT NULL,
    repeats bigint,
    cuda_ms double precision,
    wall_ms double precision,
    gross_mj double precision,
    adjusted_mj double precision,
    idle_before_w double precision,
    idle_after_w double precision,
    average_power_w double precision,
    cuda_ms_reason_code text,
    cuda_ms_reason_message text,
    energy_reason_code text,
    energy_reason_message text,
    counters jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    tick_period_s double precision,
    read_latency_s double precision,
    counter_j double precision,
    integrated_j double precision,
    meters_relative_difference double precision,
    power_integral_mj double precision,
    sham_adjusted_mj double precision,
    earlier_attempts jsonb NOT NULL,
    kernel_ptx_sha256 text,
    inject text,
    first_reading_s double precision GENERATED ALWAYS AS (((counters #>> '{idle_before,start,time_s}'::text[]))::double precision) STORED,
    first_reading_mj double precision GENERATED ALWAYS AS (((counters #>> '{idle_before,start,energy_mj}'::text[]))::double precision) STORED,
    last_reading_s double precision GENERATED ALWAYS AS (((counters #>> '{idle_after,end,time_s}'::text[]))::double precision) STORED,
    last_reading_mj double precision GENERATED ALWAYS AS (((counters #>> '{idle_after,end,energy_mj}'::text[]))::double precision) STORED,
    step smallint NOT NULL,
    calibration_ms double precision,
    CONSTRAINT round_arm_check CHECK ((btrim(arm) <> ''::text)),
    CONSTRAINT round_calibration_ms_check CHECK ((calibration_ms > (0)::double precision)),
    CONSTRAINT round_counters_object_check CHECK ((jsonb_typeof(counters) = 'object'::text)),
    CONSTRAINT round_cuda_ms_check CHECK (((NOT valid) OR (cuda_ms > (0)::double precision))),
    CONSTRAINT round_cuda_ms_reason_check CHECK (((NOT valid) OR ((cuda_ms IS NULL) = (cuda_ms_reason_code IS NOT NULL)))),
    CONSTRAINT round_earlier_attempts_check CHECK ((jsonb_typeof(earlier_attempts) = 'array'::text)),
    CONSTRAINT round_energy_reason_check CHECK (((NOT valid) OR ((adjusted_mj IS NULL) = (energy_reason_code IS NOT NULL)))),
    CONSTRAINT round_finite_check CHECK (((GREATEST(cuda_ms, wall_ms, gross_mj, adjusted_mj, idle_before_w, idle_after_w, average_power_w, tick_period_s, read_latency_s, counter_j, integrated_j, meters_relative_difference, power_integral_mj, sham_adjusted_mj, first_reading_s, first_reading_mj, last_reading_s, last_reading_mj, calibration_ms) < 'Infinity'::double precision) AND (LEAST(cuda_ms, wall_ms, gross_mj, adjusted_mj, idle_before_w, idle_after_w, average_power_w, tick_period_s, read_latency_s, counter_j, integrated_j, meters_relative_difference, power_integral_mj, sham_adjusted_mj, first_reading_s, first_reading_mj, last_reading_s, last_reading_mj, calibration_ms) > '-Infinity'::double precision))),
    CONSTRAINT round_gross_mj_check CHECK (((NOT valid) OR (gross_mj >= (0)::double precision))),
    CONSTRAINT round_inject_check CHECK ((btrim(inject) <> ''::text)),
    CONSTRAINT round_kernel_ptx_sha256_check CHECK ((kernel_ptx_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT round_meters_check CHECK ((num_nulls(counter_j, integrated_j, meters_relative_difference) = ANY (ARRAY[0, 3]))),
    CONSTRAINT round_meters_relative_difference_check CHECK ((meters_relative_difference >= ('-1'::integer)::double precision)),
    CONSTRAINT round_outcome_check CHECK ((outcome = ANY (ARRAY['ok'::text, 'regression'::text, 'bad_input'::text, 'invalid_measurement'::text, 'verification_mismatch'::text, 'infrastructure_failure'::text]))),
    CONSTRAINT round_power_check CHECK (((NOT valid) OR (LEAST(idle_before_w, idle_after_w, average_power_w) >= (0)::double precision))),
    CONSTRAINT round_power_integral_mj_check CHECK (((power_integral_mj IS NULL) OR (counter_j IS NOT NULL))),
    CONSTRAINT round_protocol_check CHECK ((protocol = ANY (ARRAY['classic'::text, 'audited'::text, 'interleaved'::text, 'trial'::text]))),
    CONSTRAINT round_read_latency_s_check CHECK ((read_latency_s >= (0)::double precision)),
    CONSTRAINT round_reason_check CHECK ((valid OR (reason_code IS NOT NULL))),
    CONSTRAINT round_repeats_check CHECK ((repeats > 0)),
    CONSTRAINT round_round_check CHECK ((round >= 0)),
    CONSTRAINT round_step_check CHECK ((step = ANY (ARRAY[0, 1]))),
    CONSTRAINT round_tick_period_s_check CHECK ((tick_period_s > (0)::double precision)),
    CONSTRAINT round_valid_check CHECK (((NOT valid) OR (outcome = 'ok'::text))),
    CONSTRAINT round_wall_ms_check CHECK (((NOT valid) OR (wall_ms > (0)::double precision)))
)
WITH (toast_tuple_target='128');

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

COMMENT ON COLUMN round.counters IS 'Raw readings and states that every figure comes from (mJ since driver load, s)';

COMMENT ON COLUMN round.created_at IS 'When its record was written (UTC)';

COMMENT ON COLUMN round.tick_period_s IS 'Update period of the energy counter that was reckoned with, s';

COMMENT ON COLUMN round.read_latency_s IS 'Duration of one reading of the counter, s';

COMMENT ON COLUMN round.counter_j IS 'Energy of the active window by the counter, J';

COMMENT ON COLUMN round.integrated_j IS 'Energy of the active window by the sampled power, J';

COMMENT ON COLUMN round.meters_relative_difference IS 'How far the two meters are apart, relative';

COMMENT ON COLUMN round.power_integral_mj IS 'Energy a replay without idle energy, by the sampled power alone, mJ';

COMMENT ON COLUMN round.sham_adjusted_mj IS 'What a window without work reads, over as many replays, mJ; NULL: none made';

COMMENT ON COLUMN round.earlier_attempts IS 'Why the round had to be measured again: code and message of each attempt';

COMMENT ON COLUMN round.kernel_ptx_sha256 IS 'sha256 of the PTX that the round ran; NULL: none, or not recorded';

COMMENT ON COLUMN round.inject IS 'Effects that the simulated device was told to show; NULL: none';

COMMENT ON COLUMN round.first_reading_s IS 'Moment of the reading before the first idle window, s (taken from counters)';

COMMENT ON COLUMN round.first_reading_mj IS 'Counter before the first idle window, mJ since driver load (taken from counters)';

COMMENT ON COLUMN round.last_reading_s IS 'Moment of the reading after the last idle window, s (taken from counters)';

COMMENT ON COLUMN round.last_reading_mj IS 'Counter after the last idle window, mJ since driver load (taken from counters)';

COMMENT ON COLUMN round.step IS '0: first rounds; 1: confirmation rounds, measured because the first ones called for it';

COMMENT ON COLUMN round.calibration_ms IS 'What a task took just before, ms, where its repeats follow from that';

CREATE TABLE round_energy (
    run_id uuid NOT NULL,
    arm text NOT NULL,
    round smallint NOT NULL,
    figure text NOT NULL,
    subject text NOT NULL,
    adjusted_mj double precision NOT NULL,
    gross_mj double precision,
    idle_w double precision,
    tick_mj double precision NOT NULL,
    timing_mj double precision NOT NULL,
    quantisation_mj double precision NOT NULL,
    drift_mj double precision NOT NULL,
    combined_mj double precision NOT NULL,
    bias_mj double precision NOT NULL,
    degrees_of_freedom double precision,
    low_mj double precision NOT NULL,
    high_mj double precision NOT NULL,
    CONSTRAINT round_energy_degrees_of_freedom_check CHECK ((degrees_of_freedom > (0)::double precision)),
    CONSTRAINT round_energy_figure_check CHECK ((figure = ANY (ARRAY['classic'::text, 'aligned'::text, 'audited'::text, 'interleaved'::text, 'trial'::text]))),
    CONSTRAINT round_energy_finite_check CHECK (((GREATEST(adjusted_mj, gross_mj, idle_w, tick_mj, timing_mj, quantisation_mj, drift_mj, combined_mj, bias_mj, degrees_of_freedom, low_mj, high_mj) < 'Infinity'::double precision) AND (LEAST(adjusted_mj, gross_mj, idle_w, tick_mj, timing_mj, quantisation_mj, drift_mj, combined_mj, bias_mj, degrees_of_freedom, low_mj, high_mj) > '-Infinity'::double precision))),
    CONSTRAINT round_energy_interval_check CHECK ((low_mj <= high_mj)),
    CONSTRAINT round_energy_subject_check CHECK ((btrim(subject) <> ''::text)),
    CONSTRAINT round_energy_uncertainty_check CHECK ((LEAST(tick_mj, timing_mj, quantisation_mj, drift_mj, combined_mj) >= (0)::double precision))
);

COMMENT ON TABLE round_energy IS 'Energy of a replay in one round with its uncertainty, one row a figure';

COMMENT ON COLUMN round_energy.run_id IS 'Run';

COMMENT ON COLUMN round_energy.arm IS 'What was measured, as in round';

COMMENT ON COLUMN round_energy.round IS 'Number of the round';

COMMENT ON COLUMN round_energy.figure IS 'How it was measured: classic, aligned, audited, interleaved or trial';

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
    run_id uuid NOT NULL,
    arm text NOT NULL,
    round smallint NOT NULL,
    period_s double precision NOT NULL,
    power_kind text,
    csv text NOT NULL,
    error_code text,
    error_message text,
    CONSTRAINT round_trace_error_check CHECK (((error_code IS NULL) = (error_message IS NULL))),
    CONSTRAINT round_trace_finite_check CHECK (((GREATEST(period_s) < 'Infinity'::double precision) AND (LEAST(period_s) > '-Infinity'::double precision))),
    CONSTRAINT round_trace_period_s_check CHECK ((period_s > (0)::double precision)),
    CONSTRAINT round_trace_power_kind_check CHECK ((power_kind = ANY (ARRAY['instantaneous'::text, 'average'::text])))
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

CREATE VIEW round_trend AS
 SELECT ((run.started_at AT TIME ZONE 'UTC'::text))::date AS night,
    run.workload,
    device.name AS device,
    round.round,
    round.valid,
    round.reason_code,
    round.protocol,
    round.adjusted_mj,
    round.gross_mj,
    round.cuda_ms,
    round.wall_ms,
    ((round.idle_before_w + round.idle_after_w) / (2)::double precision) AS idle_w,
    energy.classic_mj,
    energy.classic_low_mj,
    energy.classic_high_mj,
    energy.aligned_mj,
    energy.aligned_low_mj,
    energy.aligned_high_mj,
    energy.audited_mj,
    energy.audited_low_mj,
    energy.audited_high_mj,
    energy.interleaved_mj,
    energy.interleaved_low_mj,
    energy.interleaved_high_mj,
    round.idle_before_w,
    round.idle_after_w,
    round.average_power_w,
    round.meters_relative_difference,
    round.sham_adjusted_mj,
    round.repeats,
    jsonb_array_length(round.earlier_attempts) AS earlier_attempts,
    round.outcome,
    round.reason_message,
    round.arm,
    run.energy_trust,
    ( SELECT
                CASE
                    WHEN bool_or((withdrawal.scope = 'all'::text)) THEN 'all'::text
                    ELSE max(withdrawal.scope)
                END AS max
           FROM withdrawal
          WHERE (withdrawal.run_id = run.run_id)) AS withdrawn,
    run.kernel_variant,
    round.kernel_ptx_sha256,
    round.inject,
    environment.environment_class,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    round.created_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    round.step,
    energy.trial_mj,
    energy.trial_low_mj,
    energy.trial_high_mj,
    round.calibration_ms
   FROM ((((run
     JOIN round ON ((round.run_id = run.run_id)))
     LEFT JOIN device ON ((device.device_id = run.device_id)))
     LEFT JOIN environment ON ((environment.environment_id = run.environment_id)))
     LEFT JOIN LATERAL ( SELECT max(round_energy.adjusted_mj) FILTER (WHERE (round_energy.figure = 'classic'::text)) AS classic_mj,
            max(round_energy.low_mj) FILTER (WHERE (round_energy.figure = 'classic'::text)) AS classic_low_mj,
            max(round_energy.high_mj) FILTER (WHERE (round_energy.figure = 'classic'::text)) AS classic_high_mj,
            max(round_energy.adjusted_mj) FILTER (WHERE (round_energy.figure = 'aligned'::text)) AS aligned_mj,
            max(round_energy.low_mj) FILTER (WHERE (round_energy.figure = 'aligned'::text)) AS aligned_low_mj,
            max(round_energy.high_mj) FILTER (WHERE (round_energy.figure = 'aligned'::text)) AS aligned_high_mj,
            max(round_energy.adjusted_mj) FILTER (WHERE (round_energy.figure = 'audited'::text)) AS audited_mj,
            max(round_energy.low_mj) FILTER (WHERE (round_energy.figure = 'audited'::text)) AS audited_low_mj,
            max(round_energy.high_mj) FILTER (WHERE (round_energy.figure = 'audited'::text)) AS audited_high_mj,
            max(round_energy.adjusted_mj) FILTER (WHERE (round_energy.figure = 'interleaved'::text)) AS interleaved_mj,
            max(round_energy.low_mj) FILTER (WHERE (round_energy.figure = 'interleaved'::text)) AS interleaved_low_mj,
            max(round_energy.high_mj) FILTER (WHERE (round_energy.figure = 'interleaved'::text)) AS interleaved_high_mj,
            max(round_energy.adjusted_mj) FILTER (WHERE (round_energy.figure = 'trial'::text)) AS trial_mj,
            max(round_energy.low_mj) FILTER (WHERE (round_energy.figure = 'trial'::text)) AS trial_low_mj,
            max(round_energy.high_mj) FILTER (WHERE (round_energy.figure = 'trial'::text)) AS trial_high_mj
           FROM round_energy
          WHERE ((round_energy.run_id = round.run_id) AND (round_energy.arm = round.arm) AND (round_energy.round = round.round) AND (round_energy.subject = 'candidate'::text))) energy ON (true))
  WHERE (NOT run.candidate);

COMMENT ON VIEW round_trend IS 'One row a measurement round of every run, imported ones too, but not of candidates: figures, intervals, idle power';

COMMENT ON COLUMN round_trend.night IS 'Date in UTC on which the run began';

COMMENT ON COLUMN round_trend.workload IS 'What was measured';

COMMENT ON COLUMN round_trend.device IS 'Model name of the device';

COMMENT ON COLUMN round_trend.round IS 'Number of the round, from 0';

COMMENT ON COLUMN round_trend.valid IS 'Whether its figures may be used';

COMMENT ON COLUMN round_trend.reason_code IS 'Word for why it is not valid';

COMMENT ON COLUMN round_trend.protocol IS 'Measurement protocol; only rounds of one protocol are compared';

COMMENT ON COLUMN round_trend.adjusted_mj IS 'Energy a replay without idle energy by the protocol''s own figure, mJ; may be negative';

COMMENT ON COLUMN round_trend.gross_mj IS 'Energy a replay with idle energy, mJ';

COMMENT ON COLUMN round_trend.cuda_ms IS 'CUDA-event time a replay, ms; NULL without CUDA events';

COMMENT ON COLUMN round_trend.wall_ms IS 'Wall time a replay, ms';

COMMENT ON COLUMN round_trend.idle_w IS 'Mean of the idle power before and after, W';

COMMENT ON COLUMN round_trend.classic_mj IS 'Classic figure: adjusted energy a replay, mJ';

COMMENT ON COLUMN round_trend.classic_low_mj IS 'Classic figure: lower edge of its 95 per cent interval, bias taken off, mJ';

COMMENT ON COLUMN round_trend.classic_high_mj IS 'Classic figure: upper edge of its 95 per cent interval, bias taken off, mJ';

COMMENT ON COLUMN round_trend.aligned_mj IS 'Aligned figure (from counter step to counter step): adjusted energy a replay, mJ';

COMMENT ON COLUMN round_trend.aligned_low_mj IS 'Aligned figure: lower edge of its 95 per cent interval, bias taken off, mJ';

COMMENT ON COLUMN round_trend.aligned_high_mj IS 'Aligned figure: upper edge of its 95 per cent interval, bias taken off, mJ';

COMMENT ON COLUMN round_trend.audited_mj IS 'Audited figure (long idle windows after settling): adjusted energy a replay, mJ';

COMMENT ON COLUMN round_trend.audited_low_mj IS 'Audited figure: lower edge of its 95 per cent interval, bias taken off, mJ';

COMMENT ON COLUMN round_trend.audited_high_mj IS 'Audited figure: upper edge of its 95 per cent interval, bias taken off, mJ';

COMMENT ON COLUMN round_trend.interleaved_mj IS 'Interleaved figure of the candidate: adjusted energy a replay, mJ';

COMMENT ON COLUMN round_trend.interleaved_low_mj IS 'Interleaved figure: lower edge of its 95 per cent interval, bias taken off, mJ';

COMMENT ON COLUMN round_trend.interleaved_high_mj IS 'Interleaved figure: upper edge of its 95 per cent interval, bias taken off, mJ';

COMMENT ON COLUMN round_trend.idle_before_w IS 'Mean power of the idle window before, W';

COMMENT ON COLUMN round_trend.idle_after_w IS 'Mean power of the idle window after, W';

COMMENT ON COLUMN round_trend.average_power_w IS 'Mean power of the active window, W';

COMMENT ON COLUMN round_trend.meters_relative_difference IS 'Sampled power over counter, less one';

COMMENT ON COLUMN round_trend.sham_adjusted_mj IS 'What a window without work reads, over as many replays, mJ; NULL: none made';

COMMENT ON COLUMN round_trend.repeats IS 'Replays in the active window';

COMMENT ON COLUMN round_trend.earlier_attempts IS 'How often the round had to be measured again';

COMMENT ON COLUMN round_trend.outcome IS 'Class of outcome';

COMMENT ON COLUMN round_trend.reason_message IS 'Line for why it is not valid';

COMMENT ON COLUMN round_trend.arm IS 'What was measured, where a run measures more than one kernel';

COMMENT ON COLUMN round_trend.energy_trust IS 'verified (every telemetry gate of the run passed), failed, unverified or unavailable';

COMMENT ON COLUMN round_trend.withdrawn IS 'energy or all, where that was withdrawn of the run: see the view withdrawn; NULL: nothing was';

COMMENT ON COLUMN round_trend.kernel_variant IS 'Variant of the kernels that ran';

COMMENT ON COLUMN round_trend.kernel_ptx_sha256 IS 'sha256 of the PTX that the round ran; NULL: none, or not recorded';

COMMENT ON COLUMN round_trend.inject IS 'Effects that the simulated device was told to show; NULL: none';

COMMENT ON COLUMN round_trend.environment_class IS 'Versions that start a new baseline when they change';

COMMENT ON COLUMN round_trend.trigger IS 'scheduled, manual, backfill or import';

COMMENT ON COLUMN round_trend.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN round_trend.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN round_trend.started_at IS 'When the run began (UTC)';

COMMENT ON COLUMN round_trend.created_at IS 'When the record of the round was written (UTC)';

COMMENT ON COLUMN round_trend.dag_id IS 'Airflow DAG';

COMMENT ON COLUMN round_trend.dag_run_id IS 'Airflow DAG run';

COMMENT ON COLUMN round_trend.run_id IS 'Key of the run in every table';

COMMENT ON COLUMN round_trend.step IS '0: first rounds; 1: confirmation rounds, measured because the first ones called for it';

COMMENT ON COLUMN round_trend.trial_mj IS 'Trial figure (windows of the original learner records): adjusted energy a task, mJ';

COMMENT ON COLUMN round_trend.trial_low_mj IS 'Trial figure: lower edge of its 95 per cent interval, bias taken off, mJ';

COMMENT ON COLUMN round_trend.trial_high_mj IS 'Trial figure: upper edge of its 95 per cent interval, bias taken off, mJ';

COMMENT ON COLUMN round_trend.calibration_ms IS 'What a task took just before, ms, where the repeats follow from that';

CREATE TABLE validation (
    run_id uuid NOT NULL,
    case_name text NOT NULL,
    draw smallint,
    outcome text NOT NULL,
    reason_code text,
    reason_message text,
    payload_sha256 text,
    total integer,
    agreed integer,
    device_correct integer,
    reference_correct integer,
    predictions_int32_sha256 text,
    mismatches jsonb NOT NULL,
    replays_equal_eager boolean[] NOT NULL,
    scratch_poisoned boolean,
    graph_reused boolean,
    floats_equal_reference boolean,
    duration_s double precision,
    created_at timestamp with time zone NOT NULL,
    state_hashes jsonb,
    replay_states_equal boolean[] NOT NULL,
    reference_state_name text,
    reference_state_expected_sha256 text,
    reference_state_found_sha256 text,
    CONSTRAINT validation_agreed_check CHECK ((((total IS NULL) = (agreed IS NULL)) AND ((agreed >= 0) AND (agreed <= total)))),
    CONSTRAINT validation_all_agreed_check CHECK (((outcome <> 'ok'::text) OR (agreed = total))),
    CONSTRAINT validation_case_name_check CHECK ((btrim(case_name) <> ''::text)),
    CONSTRAINT validation_device_correct_check CHECK (((device_correct >= 0) AND (device_correct <= total))),
    CONSTRAINT validation_draw_check CHECK ((draw >= 0)),
    CONSTRAINT validation_duration_s_check CHECK ((duration_s >= (0)::double precision)),
    CONSTRAINT validation_finite_check CHECK (((GREATEST(duration_s) < 'Infinity'::double precision) AND (LEAST(duration_s) > '-Infinity'::double precision))),
    CONSTRAINT validation_mismatches_array_check CHECK ((jsonb_typeof(mismatches) = 'array'::text)),
    CONSTRAINT validation_mismatches_check CHECK ((jsonb_array_length(mismatches) = (total - agreed))),
    CONSTRAINT validation_outcome_check CHECK ((outcome = ANY (ARRAY['ok'::text, 'regression'::text, 'bad_input'::text, 'invalid_measurement'::text, 'verification_mismatch'::text, 'infrastructure_failure'::text]))),
    CONSTRAINT validation_payload_sha256_check CHECK ((payload_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT validation_predictions_int32_sha256_check CHECK ((predictions_int32_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT validation_reason_check CHECK (((outcome = 'ok'::text) OR (reason_code IS NOT NULL))),
    CONSTRAINT validation_reference_correct_check CHECK (((reference_correct >= 0) AND (reference_correct <= total))),
    CONSTRAINT validation_reference_state_check CHECK ((((reference_state_name IS NULL) = (reference_state_found_sha256 IS NULL)) AND ((reference_state_expected_sha256 IS NULL) OR (reference_state_name IS NOT NULL)))),
    CONSTRAINT validation_reference_state_expected_sha256_check CHECK ((reference_state_expected_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT validation_reference_state_found_sha256_check CHECK ((reference_state_found_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT validation_state_hashes_object_check CHECK ((jsonb_typeof(state_hashes) = 'object'::text)),
    CONSTRAINT validation_states_check CHECK (((outcome <> 'ok'::text) OR ((true = ALL (replay_states_equal)) AND COALESCE((reference_state_expected_sha256 = reference_state_found_sha256), true))))
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

COMMENT ON COLUMN validation.state_hashes IS 'sha256 by name of what the eager run started from and left behind; NULL: nothing but its predictions';

COMMENT ON COLUMN validation.replay_states_equal IS 'For each replay, whether it left all of these behind again';

COMMENT ON COLUMN validation.reference_state_name IS 'What is hashed of where the reference ended, for example state_grid_sha256; NULL: no reference was run';

COMMENT ON COLUMN validation.reference_state_expected_sha256 IS 'Where the reference ended when the draw was frozen; NULL: not known';

COMMENT ON COLUMN validation.reference_state_found_sha256 IS 'Where the reference ended now, on this host';

CREATE VIEW run_detail AS
 SELECT ((run.started_at AT TIME ZONE 'UTC'::text))::date AS night,
    run.workload,
    device.name AS device,
    COALESCE(run.verdict, 'not judged'::text) AS verdict,
    run.exit_code,
    run.outcome,
    run.reason_code,
    run.reason_message,
    ( SELECT
                CASE
                    WHEN bool_or((withdrawal.scope = 'all'::text)) THEN 'all'::text
                    ELSE max(withdrawal.scope)
                END AS max
           FROM withdrawal
          WHERE (withdrawal.run_id = run.run_id)) AS withdrawn,
    run.agreed,
    run.total,
    run.device_correct,
    run.reference_correct,
    run.all_replays_equal_eager,
    run.draws_validated,
    run.draws_expected,
    ARRAY( SELECT validation.case_name
           FROM validation
          WHERE ((validation.run_id = run.run_id) AND (validation.outcome <> 'ok'::text))
          ORDER BY validation.case_name) AS cases_not_ok,
    run.rounds_valid,
    run.rounds_expected,
    ARRAY( SELECT (((
                CASE
                    WHEN (round.arm = 'comparison'::text) THEN 'comparison '::text
                    ELSE ''::text
                END || round.round) || ': '::text) || round.reason_code)
           FROM round
          WHERE ((round.run_id = run.run_id) AND (NOT round.valid))
          ORDER BY round.arm, round.round) AS invalid_rounds,
    run.cuda_ms_median,
    run.wall_ms_median,
    run.gross_mj_median,
    run.adjusted_mj_median,
    run.adjusted_mj_min,
    run.adjusted_mj_max,
    run.adjusted_mj_sample_sd,
    run.negative_adjusted_rounds,
    ( SELECT jsonb_object_agg(
                CASE run_energy.subject
                    WHEN 'candidate'::text THEN run_energy.figure
                    ELSE ((run_energy.figure || ' '::text) || run_energy.subject)
                END, (to_jsonb(run_energy.*) - '{run_id,figure,subject}'::text[])) AS jsonb_object_agg
           FROM run_energy
          WHERE (run_energy.run_id = run.run_id)) AS figures,
    run.energy_trust,
    run.energy_trust_reason,
    ARRAY( SELECT ((telemetry_gate.gate || '@'::text) || telemetry_gate.at)
           FROM telemetry_gate
          WHERE ((telemetry_gate.run_id = run.run_id) AND (telemetry_gate.passed IS TRUE))
          ORDER BY ((telemetry_gate.gate || '@'::text) || telemetry_gate.at)) AS gates_passed,
    ARRAY( SELECT ((telemetry_gate.gate || '@'::text) || telemetry_gate.at)
           FROM telemetry_gate
          WHERE ((telemetry_gate.run_id = run.run_id) AND (telemetry_gate.passed IS FALSE))
          ORDER BY ((telemetry_gate.gate || '@'::text) || telemetry_gate.at)) AS gates_failed,
    ARRAY( SELECT ((telemetry_gate.gate || '@'::text) || telemetry_gate.at)
           FROM telemetry_gate
          WHERE ((telemetry_gate.run_id = run.run_id) AND (telemetry_gate.passed IS NULL))
          ORDER BY ((telemetry_gate.gate || '@'::text) || telemetry_gate.at)) AS gates_unchecked,
    run.reference_joules_per_1e12_operations,
    telemetry.power_limit_w,
    ( SELECT jsonb_object_agg(last.check_name, (to_jsonb(last.*) - 'check_name'::text)) AS jsonb_object_agg
           FROM ( SELECT DISTINCT ON (check_result.check_name) check_result.check_name,
                    check_result.step,
                    check_result.verdict,
                    check_result.metric,
                    check_result.unit,
                    check_result.value,
                    check_result.baseline_value,
                    check_result.baseline_low,
                    check_result.baseline_high,
                    check_result.direction,
                    check_result.reason_code,
                    check_result.reason,
                    check_result.baseline_id,
                    baseline.run_id AS baseline_run_id,
                    baseline.accepted_by,
                    baseline.accepted_at
                   FROM (check_result
                     LEFT JOIN LATERAL ( SELECT baseline_1.baseline_id,
                            baseline_1.workload,
                            baseline_1.payload_id,
                            baseline_1.device_id,
                            baseline_1.protocol,
                            baseline_1.environment_id,
                            baseline_1.environment_class,
                            baseline_1.run_id,
                            baseline_1.for_agreement,
                            baseline_1.for_time,
                            baseline_1.for_energy,
                            baseline_1.accepted_by,
                            baseline_1.accepted_at,
                            baseline_1.reason,
                            baseline_1.retired_at,
                            baseline_1.energy_trust,
                            baseline_1.retired_by,
                            baseline_1.retired_reason
                           FROM baseline baseline_1
                          WHERE (baseline_1.baseline_id = check_result.baseline_id)
                         OFFSET 0) baseline ON (true))
                  WHERE (check_result.run_id = run.run_id)
                  ORDER BY check_result.check_name, check_result.step DESC) last) AS checks,
    ( SELECT check_result.verdict
           FROM check_result
          WHERE ((check_result.run_id = run.run_id) AND (check_result.check_name = 'agreement'::text))
          ORDER BY check_result.step DESC
         LIMIT 1) AS agreement_verdict,
    ( SELECT check_result.reason
           FROM check_result
          WHERE ((check_result.run_id = run.run_id) AND (check_result.check_name = 'agreement'::text))
          ORDER BY check_result.step DESC
         LIMIT 1) AS agreement_reason,
    ( SELECT baseline.run_id
           FROM (check_result
             LEFT JOIN baseline ON ((baseline.baseline_id = check_result.baseline_id)))
          WHERE ((check_result.run_id = run.run_id) AND (check_result.check_name = 'agreement'::text))
          ORDER BY check_result.step DESC
         LIMIT 1) AS agreement_baseline_run_id,
    ( SELECT check_result.verdict
           FROM check_result
          WHERE ((check_result.run_id = run.run_id) AND (check_result.check_name = 'energy'::text))
          ORDER BY check_result.step DESC
         LIMIT 1) AS energy_verdict,
    ( SELECT check_result.reason
           FROM check_result
          WHERE ((check_result.run_id = run.run_id) AND (check_result.check_name = 'energy'::text))
          ORDER BY check_result.step DESC
         LIMIT 1) AS energy_reason,
    ( SELECT baseline.run_id
           FROM (check_result
             LEFT JOIN baseline ON ((baseline.baseline_id = check_result.baseline_id)))
          WHERE ((check_result.run_id = run.run_id) AND (check_result.check_name = 'energy'::text))
          ORDER BY check_result.step DESC
         LIMIT 1) AS energy_baseline_run_id,
    (EXISTS ( SELECT
           FROM baseline
          WHERE ((baseline.run_id = run.run_id) AND (baseline.retired_at IS NULL)))) AS is_baseline,
    run.protocol,
    run.kernel_variant,
    run.kernel_ptx_sha256,
    payload.name AS payload,
    payload.manifest_sha256 AS payload_manifest_sha256,
    source_state.sources_sha256,
    environment.environment_class,
    environment.driver,
    environment.cuda,
    environment.python,
    environment.platform,
    environment.packages,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    device.memory_total_bytes,
    device.multiprocessors,
    device.compute_capability,
    run.trigger,
    run.logical_date,
    run.params,
    run.label,
    run.note,
    run.inject,
    run.seed,
    run.provenance,
    (EXTRACT(epoch FROM (run.completed_at - run.started_at)))::double precision AS duration_s,
    run.started_at,
    run.completed_at,
    run.loaded_at,
    run.record_sha256,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    run.confirmation_rounds,
    run.confirmation_reason_code,
    run.confirmation_reason_message AS confirmation_reason,
    run.confirmation_looks,
    ( SELECT jsonb_object_agg(check_result.check_name, (to_jsonb(check_result.*) - '{run_id,check_name,step,details,checked_at}'::text[])) AS jsonb_object_agg
           FROM check_result
          WHERE ((check_result.run_id = run.run_id) AND (check_result.step = 0) AND (EXISTS ( SELECT
                   FROM check_result later
                  WHERE ((later.run_id = run.run_id) AND (later.check_name = check_result.check_name) AND (later.step > 0)))))) AS first_checks,
    run.candidate,
    run.candidate_origin,
    run.pinned_variant,
    run.pinned_ptx_sha256,
    ( SELECT (to_jsonb(comparison.*) - 'run_id'::text)
           FROM comparison
          WHERE (comparison.run_id = run.run_id)) AS comparison,
    ( SELECT jsonb_object_agg(run_setting.name, jsonb_build_object('value', run_setting.value, 'origin', run_setting.origin)) AS jsonb_object_agg
           FROM run_setting
          WHERE (run_setting.run_id = run.run_id)) AS settings,
    ( SELECT ((to_jsonb(qualification.*) - 'run_id'::text) || jsonb_build_object('cases', ARRAY( SELECT (to_jsonb(qualification_case.*) - '{run_id,figures}'::text[])
                   FROM qualification_case
                  WHERE (qualification_case.run_id = run.run_id)
                  ORDER BY qualification_case.case_name)))
           FROM qualification
          WHERE (qualification.run_id = run.run_id)) AS qualification,
    ( SELECT (to_jsonb(task_memory.*) - '{run_id,state_hashes,profile}'::text[])
           FROM task_memory
          WHERE (task_memory.run_id = run.run_id)) AS memory
   FROM (((((run
     LEFT JOIN device ON ((device.device_id = run.device_id)))
     LEFT JOIN environment ON ((environment.environment_id = run.environment_id)))
     LEFT JOIN source_state ON ((source_state.source_state_id = run.source_state_id)))
     LEFT JOIN payload ON ((payload.payload_id = run.payload_id)))
     LEFT JOIN telemetry ON (((telemetry.run_id = run.run_id) AND (telemetry.moment = 'before'::text))));

COMMENT ON VIEW run_detail IS 'One row a run, imported ones too: figures, trust, gates, checks with their baselines, kernel, request';

COMMENT ON COLUMN run_detail.night IS 'Date in UTC on which the run began';

COMMENT ON COLUMN run_detail.workload IS 'What was tested';

COMMENT ON COLUMN run_detail.device IS 'Model name of the device; NULL when none could be chosen';

COMMENT ON COLUMN run_detail.verdict IS 'Verdict of the run, or "not judged" for one that ended before its report or was imported';

COMMENT ON COLUMN run_detail.exit_code IS 'Exit status that goes with the verdict';

COMMENT ON COLUMN run_detail.outcome IS 'Worst outcome of the tasks, before any comparison with a baseline';

COMMENT ON COLUMN run_detail.reason_code IS 'Word for why the outcome is not ok';

COMMENT ON COLUMN run_detail.reason_message IS 'Line for why the outcome is not ok';

COMMENT ON COLUMN run_detail.withdrawn IS 'energy or all, where that was withdrawn: see the view withdrawn; NULL: nothing was';

COMMENT ON COLUMN run_detail.agreed IS 'Predictions equal to the frozen ones, over all draws';

COMMENT ON COLUMN run_detail.total IS 'Predictions made, over all draws';

COMMENT ON COLUMN run_detail.device_correct IS 'Predictions of the device equal to the true label';

COMMENT ON COLUMN run_detail.reference_correct IS 'Frozen predictions equal to the true label';

COMMENT ON COLUMN run_detail.all_replays_equal_eager IS 'Whether every replay gave the predictions of the eager run';

COMMENT ON COLUMN run_detail.draws_validated IS 'Draws with a result';

COMMENT ON COLUMN run_detail.draws_expected IS 'Draws asked for';

COMMENT ON COLUMN run_detail.cases_not_ok IS 'Draws that were not ok, by name of their case; pinned-: of the kernel held against, emulated-: on the emulator';

COMMENT ON COLUMN run_detail.rounds_valid IS 'Rounds whose figures may be used';

COMMENT ON COLUMN run_detail.rounds_expected IS 'Rounds asked for, and the confirmation rounds that were planned';

COMMENT ON COLUMN run_detail.invalid_rounds IS 'Rounds that may not be used, as "round: word of the reason"; "comparison" before those in which two kernels took turns';

COMMENT ON COLUMN run_detail.cuda_ms_median IS 'Median CUDA-event time a replay over valid rounds, ms';

COMMENT ON COLUMN run_detail.wall_ms_median IS 'Median wall time a replay over valid rounds, ms';

COMMENT ON COLUMN run_detail.gross_mj_median IS 'Median energy a replay with idle energy, mJ';

COMMENT ON COLUMN run_detail.adjusted_mj_median IS 'Median energy a replay without idle energy over valid rounds, by the figure of the protocol, mJ';

COMMENT ON COLUMN run_detail.adjusted_mj_min IS 'Smallest adjusted energy of a valid round, mJ a replay';

COMMENT ON COLUMN run_detail.adjusted_mj_max IS 'Largest adjusted energy of a valid round, mJ a replay';

COMMENT ON COLUMN run_detail.adjusted_mj_sample_sd IS 'Sample standard deviation (n-1) of the adjusted energy, mJ a replay';

COMMENT ON COLUMN run_detail.negative_adjusted_rounds IS 'Valid rounds with a negative adjusted energy';

COMMENT ON COLUMN run_detail.figures IS 'Energy by figure, as an object: rounds, median_mj, min_mj, max_mj, sample_sd_mj, detectable_mj, per_reference_load';

COMMENT ON COLUMN run_detail.energy_trust IS 'verified (every telemetry gate passed), failed, unverified or unavailable (no counter)';

COMMENT ON COLUMN run_detail.energy_trust_reason IS 'Why the energy is not verified';

COMMENT ON COLUMN run_detail.gates_passed IS 'Telemetry gates that passed, as gate@where';

COMMENT ON COLUMN run_detail.gates_failed IS 'Telemetry gates that failed, as gate@where';

COMMENT ON COLUMN run_detail.gates_unchecked IS 'Telemetry gates that could not be checked, which do not pass, as gate@where';

COMMENT ON COLUMN run_detail.reference_joules_per_1e12_operations IS 'Energy of the reference load, J per 10^12 operations';

COMMENT ON COLUMN run_detail.power_limit_w IS 'Power limit of the GPU before the rounds, W';

COMMENT ON COLUMN run_detail.checks IS 'Last step of each check by name, as an object: verdict, reason, figures, and the baseline it was compared with';

COMMENT ON COLUMN run_detail.agreement_verdict IS 'Last verdict of the agreement check; NULL when it did not run';

COMMENT ON COLUMN run_detail.agreement_reason IS 'Why the agreement check says so, in one line';

COMMENT ON COLUMN run_detail.agreement_baseline_run_id IS 'Run that the agreement check compared with; NULL: none';

COMMENT ON COLUMN run_detail.energy_verdict IS 'Last verdict of the energy check; NULL when it did not run';

COMMENT ON COLUMN run_detail.energy_reason IS 'Why the energy check says so, in one line';

COMMENT ON COLUMN run_detail.energy_baseline_run_id IS 'Run that the energy check compared with; NULL: none';

COMMENT ON COLUMN run_detail.is_baseline IS 'Whether it is a current baseline itself';

COMMENT ON COLUMN run_detail.protocol IS 'Measurement protocol';

COMMENT ON COLUMN run_detail.kernel_variant IS 'Variant of the kernels that ran';

COMMENT ON COLUMN run_detail.kernel_ptx_sha256 IS 'sha256 of the PTX that ran; NULL where the device runs none';

COMMENT ON COLUMN run_detail.payload IS 'Name of the set of frozen draws';

COMMENT ON COLUMN run_detail.payload_manifest_sha256 IS 'sha256 of its manifest';

COMMENT ON COLUMN run_detail.sources_sha256 IS 'sha256 of the file of pinned source hashes';

COMMENT ON COLUMN run_detail.environment_class IS 'Versions that start a new baseline when they change';

COMMENT ON COLUMN run_detail.driver IS 'Version of the GPU driver';

COMMENT ON COLUMN run_detail.cuda IS 'Version of CUDA';

COMMENT ON COLUMN run_detail.python IS 'Version of the interpreter of the GPU tasks';

COMMENT ON COLUMN run_detail.platform IS 'Operating system and machine';

COMMENT ON COLUMN run_detail.packages IS 'Installed packages: name to version';

COMMENT ON COLUMN run_detail.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN run_detail.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN run_detail.memory_total_bytes IS 'Memory of the device, bytes';

COMMENT ON COLUMN run_detail.multiprocessors IS 'Number of streaming multiprocessors';

COMMENT ON COLUMN run_detail.compute_capability IS 'CUDA compute capability';

COMMENT ON COLUMN run_detail.trigger IS 'scheduled, manual, backfill or import';

COMMENT ON COLUMN run_detail.logical_date IS 'Airflow logical date (UTC)';

COMMENT ON COLUMN run_detail.params IS 'The request as accepted, all parameters with defaults filled in';

COMMENT ON COLUMN run_detail.label IS 'Short name given at the trigger';

COMMENT ON COLUMN run_detail.note IS 'Free text given at the trigger';

COMMENT ON COLUMN run_detail.inject IS 'Effects that the simulated device was told to show; NULL: none';

COMMENT ON COLUMN run_detail.seed IS 'Seed of what was random in the measurement';

COMMENT ON COLUMN run_detail.provenance IS 'Where the record comes from, when not from a run of this system';

COMMENT ON COLUMN run_detail.duration_s IS 'Time from the accepted request to the record of the last part, s';

COMMENT ON COLUMN run_detail.started_at IS 'When the run began: when its request was accepted (UTC)';

COMMENT ON COLUMN run_detail.completed_at IS 'When the last of its parts was recorded (UTC)';

COMMENT ON COLUMN run_detail.loaded_at IS 'When its record was loaded (UTC)';

COMMENT ON COLUMN run_detail.record_sha256 IS 'sha256 of the record file that it was loaded from';

COMMENT ON COLUMN run_detail.dag_id IS 'Airflow DAG';

COMMENT ON COLUMN run_detail.dag_run_id IS 'Airflow DAG run';

COMMENT ON COLUMN run_detail.run_id IS 'Key of the run in every table';

COMMENT ON COLUMN run_detail.confirmation_rounds IS 'Confirmation rounds planned after a look at the first rounds; 0: nothing to confirm; NULL: nobody looked';

COMMENT ON COLUMN run_detail.confirmation_reason_code IS 'Word for what is to be confirmed, or why nothing is';

COMMENT ON COLUMN run_detail.confirmation_reason IS 'What is to be confirmed, or why nothing is; NULL: nobody looked';

COMMENT ON COLUMN run_detail.confirmation_looks IS 'The figures of the first rounds against the spread of their baselines, as an array of objects; NULL: nobody looked';

COMMENT ON COLUMN run_detail.first_checks IS 'Checks that judged again with confirmation rounds: what they said of the first rounds alone, by name; NULL: none did';

COMMENT ON COLUMN run_detail.candidate IS 'Whether it tries a kernel that nights do not run: no night, and in no series';

COMMENT ON COLUMN run_detail.candidate_origin IS 'Where the tried kernel comes from, as an object; NULL: not known, or no candidate';

COMMENT ON COLUMN run_detail.pinned_variant IS 'Variant of the kernels that it was held against';

COMMENT ON COLUMN run_detail.pinned_ptx_sha256 IS 'sha256 of the PTX that it was held against';

COMMENT ON COLUMN run_detail.comparison IS 'What the comparison of the two found beside its checks, as an object: outcome, counted and modelled figures, differing predictions, trust in its energy; NULL: none made';

COMMENT ON COLUMN run_detail.settings IS 'Settings of the libraries it computed with, as an object: name to value and origin; NULL: none';

COMMENT ON COLUMN run_detail.qualification IS 'Its qualification as an object, cases without their figures as an array; NULL: none made';

COMMENT ON COLUMN run_detail.memory IS 'The memory of a task as an object, in bytes, without hashes and profile; NULL: not looked at';

ALTER TABLE source_state ALTER COLUMN source_state_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME source_state_source_state_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE telemetry_trace (
    run_id uuid NOT NULL,
    moment text NOT NULL,
    period_s double precision NOT NULL,
    power_kind text,
    csv text NOT NULL,
    error_code text,
    error_message text,
    CONSTRAINT telemetry_trace_error_check CHECK (((error_code IS NULL) = (error_message IS NULL))),
    CONSTRAINT telemetry_trace_finite_check CHECK (((GREATEST(period_s) < 'Infinity'::double precision) AND (LEAST(period_s) > '-Infinity'::double precision))),
    CONSTRAINT telemetry_trace_period_s_check CHECK ((period_s > (0)::double precision)),
    CONSTRAINT telemetry_trace_power_kind_check CHECK ((power_kind = ANY (ARRAY['instantaneous'::text, 'average'::text])))
);

COMMENT ON TABLE telemetry_trace IS 'Power samples of the reference load; may be deleted when old';

COMMENT ON COLUMN telemetry_trace.run_id IS 'Run';

COMMENT ON COLUMN telemetry_trace.moment IS 'before or after the rounds';

COMMENT ON COLUMN telemetry_trace.period_s IS 'Time from sample to sample that was asked for, s';

COMMENT ON COLUMN telemetry_trace.power_kind IS 'instantaneous or average (of one second); NULL: no power was sampled';

COMMENT ON COLUMN telemetry_trace.csv IS 'Samples as CSV with a header line; empty where a value could not be had';

COMMENT ON COLUMN telemetry_trace.error_code IS 'Why sampling ended early or cannot be relied upon: documented snake_case word';

COMMENT ON COLUMN telemetry_trace.error_message IS 'Why sampling ended early or cannot be relied upon: one line';

CREATE VIEW validation_history AS
 SELECT ((run.started_at AT TIME ZONE 'UTC'::text))::date AS night,
    run.workload,
    device.name AS device,
    validation.draw,
    validation.agreed,
    validation.total,
    (COALESCE(before.predictions_int32_sha256, further_back.predictions_int32_sha256) <> validation.predictions_int32_sha256) AS changed,
    validation.predictions_int32_sha256,
    validation.outcome,
    validation.reason_code,
    validation.reason_message,
    validation.mismatches,
    validation.device_correct,
    validation.reference_correct,
        CASE
            WHEN (cardinality(validation.replays_equal_eager) > 0) THEN (true = ALL (validation.replays_equal_eager))
            ELSE NULL::boolean
        END AS all_replays_equal_eager,
    validation.floats_equal_reference,
    validation.duration_s,
    validation.case_name,
    payload.name AS payload,
    ( SELECT
                CASE
                    WHEN bool_or((withdrawal.scope = 'all'::text)) THEN 'all'::text
                    ELSE max(withdrawal.scope)
                END AS max
           FROM withdrawal
          WHERE (withdrawal.run_id = run.run_id)) AS withdrawn,
    run.kernel_variant,
    environment.environment_class,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    COALESCE(before.run_id, further_back.run_id) AS previous_run_id,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    validation.state_hashes,
        CASE
            WHEN (cardinality(validation.replay_states_equal) > 0) THEN (true = ALL (validation.replay_states_equal))
            ELSE NULL::boolean
        END AS all_replay_states_equal,
    validation.reference_state_name,
    validation.reference_state_expected_sha256,
    validation.reference_state_found_sha256,
    (COALESCE(before.state_hashes, further_back.state_hashes) <> validation.state_hashes) AS states_changed,
    ( SELECT array_agg(COALESCE(was.name, is_now.name) ORDER BY COALESCE(was.name, is_now.name)) AS array_agg
           FROM (jsonb_each(COALESCE(before.state_hashes, further_back.state_hashes)) was(name, sha256)
             FULL JOIN jsonb_each(validation.state_hashes) is_now(name, sha256) USING (name))
          WHERE ((COALESCE(before.state_hashes, further_back.state_hashes) <> validation.state_hashes) AND (was.sha256 IS DISTINCT FROM is_now.sha256))) AS changed_states
   FROM (((((((run
     JOIN validation ON ((validation.run_id = run.run_id)))
     LEFT JOIN device ON ((device.device_id = run.device_id)))
     LEFT JOIN payload ON ((payload.payload_id = run.payload_id)))
     LEFT JOIN environment ON ((environment.environment_id = run.environment_id)))
     LEFT JOIN LATERAL ( SELECT (array_agg(latest.run_id))[1] AS run_id
           FROM ( SELECT before_1.run_id
                   FROM run before_1
                  WHERE ((before_1.workload = run.workload) AND (before_1.device_id = run.device_id) AND (before_1.payload_id = run.payload_id) AND (NOT before_1.candidate) AND (ROW(before_1.started_at, before_1.run_id) < ROW(run.started_at, run.run_id)))
                  ORDER BY before_1.started_at DESC, before_1.run_id DESC
                 LIMIT 1) latest) run_before ON (true))
     LEFT JOIN validation before ON (((before.run_id = run_before.run_id) AND (before.case_name = validation.case_name) AND (before.predictions_int32_sha256 IS NOT NULL))))
     LEFT JOIN LATERAL ( SELECT max(latest.predictions_int32_sha256) AS predictions_int32_sha256,
            (array_agg(latest.state_hashes))[1] AS state_hashes,
            (array_agg(latest.run_id))[1] AS run_id
           FROM ( SELECT earlier.predictions_int32_sha256,
                    earlier.state_hashes,
                    earlier.run_id
                   FROM (run known
                     JOIN validation earlier ON (((earlier.run_id = known.run_id) AND (earlier.case_name = validation.case_name) AND (earlier.predictions_int32_sha256 IS NOT NULL))))
                  WHERE ((before.run_id IS NULL) AND (known.workload = run.workload) AND (known.device_id = run.device_id) AND (known.payload_id = run.payload_id) AND (NOT known.candidate) AND (ROW(known.started_at, known.run_id) < ROW(run.started_at, run.run_id)))
                  ORDER BY known.started_at DESC, known.run_id DESC
                 LIMIT 1) latest) further_back ON (true))
  WHERE (NOT run.candidate);

COMMENT ON VIEW validation_history IS 'One row a draw a run, imported ones too, but not of candidates, against the run before on the same device';

COMMENT ON COLUMN validation_history.night IS 'Date in UTC on which the run began';

COMMENT ON COLUMN validation_history.workload IS 'What was tested';

COMMENT ON COLUMN validation_history.device IS 'Model name of the device';

COMMENT ON COLUMN validation_history.draw IS 'Number of the draw, where the case is one';

COMMENT ON COLUMN validation_history.agreed IS 'Predictions equal to the frozen ones; NULL when the draw could not be run';

COMMENT ON COLUMN validation_history.total IS 'Predictions made';

COMMENT ON COLUMN validation_history.changed IS 'Whether any prediction differs from the previous run of that device and draw; NULL: nothing to compare';

COMMENT ON COLUMN validation_history.predictions_int32_sha256 IS 'sha256 of the predictions as little-endian int32';

COMMENT ON COLUMN validation_history.outcome IS 'Class of outcome: regression when a prediction or a replay differs';

COMMENT ON COLUMN validation_history.reason_code IS 'Word for why the outcome is not ok';

COMMENT ON COLUMN validation_history.reason_message IS 'Line for why the outcome is not ok';

COMMENT ON COLUMN validation_history.mismatches IS 'Every prediction that differs: index, expected, found';

COMMENT ON COLUMN validation_history.device_correct IS 'Predictions of the device equal to the true label';

COMMENT ON COLUMN validation_history.reference_correct IS 'Frozen predictions equal to the true label';

COMMENT ON COLUMN validation_history.all_replays_equal_eager IS 'Whether every replay gave the predictions of the eager run; NULL: none made';

COMMENT ON COLUMN validation_history.floats_equal_reference IS 'Whether intermediate floats equal the reference bit by bit';

COMMENT ON COLUMN validation_history.duration_s IS 'Time the draw took, s';

COMMENT ON COLUMN validation_history.case_name IS 'What was validated, for example draw-03';

COMMENT ON COLUMN validation_history.payload IS 'Name of the set of frozen draws';

COMMENT ON COLUMN validation_history.withdrawn IS 'energy or all, where that was withdrawn of the run: see the view withdrawn; NULL: nothing was';

COMMENT ON COLUMN validation_history.kernel_variant IS 'Variant of the kernels that ran';

COMMENT ON COLUMN validation_history.environment_class IS 'Versions that start a new baseline when they change';

COMMENT ON COLUMN validation_history.trigger IS 'scheduled, manual, backfill or import';

COMMENT ON COLUMN validation_history.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN validation_history.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN validation_history.started_at IS 'When the run began (UTC)';

COMMENT ON COLUMN validation_history.previous_run_id IS 'Latest earlier run of the same workload, payload and device that has predictions of the draw';

COMMENT ON COLUMN validation_history.dag_id IS 'Airflow DAG';

COMMENT ON COLUMN validation_history.dag_run_id IS 'Airflow DAG run';

COMMENT ON COLUMN validation_history.run_id IS 'Key of the run in every table';

COMMENT ON COLUMN validation_history.state_hashes IS 'sha256 by name of what the eager run started from and left behind; NULL: nothing but its predictions';

COMMENT ON COLUMN validation_history.all_replay_states_equal IS 'Whether every replay left all of these behind again; NULL: none made, or nothing to compare';

COMMENT ON COLUMN validation_history.reference_state_name IS 'What is hashed of where the reference ended; NULL: no reference was run';

COMMENT ON COLUMN validation_history.reference_state_expected_sha256 IS 'Where the reference ended when the draw was frozen; NULL: not known';

COMMENT ON COLUMN validation_history.reference_state_found_sha256 IS 'Where the reference ended that night';

COMMENT ON COLUMN validation_history.states_changed IS 'Whether any hash differs from the previous run of that device and draw; NULL: nothing to compare';

COMMENT ON COLUMN validation_history.changed_states IS 'Names of the hashes that differ, or are in one of the two only; NULL: none, or nothing to compare';

CREATE VIEW withdrawn AS
 SELECT ((run.started_at AT TIME ZONE 'UTC'::text))::date AS night,
    run.workload,
    device.name AS device,
    withdrawal.scope,
    withdrawal.reason,
    withdrawal.figures,
    withdrawal.withdrawn_by,
    withdrawal.withdrawn_at,
    run.adjusted_mj_median,
    run.energy_trust,
    ((successor.started_at AT TIME ZONE 'UTC'::text))::date AS successor_night,
    successor_device.name AS successor_device,
    successor.adjusted_mj_median AS successor_adjusted_mj_median,
    successor.energy_trust AS successor_energy_trust,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    withdrawal.successor_run_id
   FROM ((((withdrawal
     JOIN run ON ((run.run_id = withdrawal.run_id)))
     LEFT JOIN device ON ((device.device_id = run.device_id)))
     LEFT JOIN run successor ON ((successor.run_id = withdrawal.successor_run_id)))
     LEFT JOIN device successor_device ON ((successor_device.device_id = successor.device_id)));

COMMENT ON VIEW withdrawn IS 'Withdrawn runs with the reason and what to use instead; the runs stay readable in every other view';

COMMENT ON COLUMN withdrawn.night IS 'Date in UTC on which the withdrawn run began';

COMMENT ON COLUMN withdrawn.workload IS 'What was tested';

COMMENT ON COLUMN withdrawn.device IS 'Model name of the device';

COMMENT ON COLUMN withdrawn.scope IS 'What of it must not be used any more: energy, or all of it';

COMMENT ON COLUMN withdrawn.reason IS 'Why it was withdrawn';

COMMENT ON COLUMN withdrawn.figures IS 'The figures that were published, and what holds instead';

COMMENT ON COLUMN withdrawn.withdrawn_by IS 'Who withdrew it';

COMMENT ON COLUMN withdrawn.withdrawn_at IS 'When that was recorded (UTC)';

COMMENT ON COLUMN withdrawn.adjusted_mj_median IS 'Median adjusted energy that it had, mJ a replay';

COMMENT ON COLUMN withdrawn.energy_trust IS 'verified, failed, unverified or unavailable';

COMMENT ON COLUMN withdrawn.successor_night IS 'Date in UTC of the run to be used instead; NULL: none is named';

COMMENT ON COLUMN withdrawn.successor_device IS 'Model name of its device';

COMMENT ON COLUMN withdrawn.successor_adjusted_mj_median IS 'Its median adjusted energy, mJ a replay';

COMMENT ON COLUMN withdrawn.successor_energy_trust IS 'What its energy is worth: verified, failed, unverified or unavailable';

COMMENT ON COLUMN withdrawn.trigger IS 'scheduled, manual, backfill or import';

COMMENT ON COLUMN withdrawn.device_kind IS 'cuda, emulated, reference or simulated';

COMMENT ON COLUMN withdrawn.device_uuid IS 'Identity of the board or machine';

COMMENT ON COLUMN withdrawn.started_at IS 'When the withdrawn run began (UTC)';

COMMENT ON COLUMN withdrawn.dag_id IS 'Airflow DAG';

COMMENT ON COLUMN withdrawn.dag_run_id IS 'Airflow DAG run';

COMMENT ON COLUMN withdrawn.run_id IS 'Key of the withdrawn run in every table';

COMMENT ON COLUMN withdrawn.successor_run_id IS 'Run to be used instead';

ALTER TABLE ONLY alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY alert_event
    ADD CONSTRAINT alert_event_pk PRIMARY KEY (alert_event_id);

ALTER TABLE ONLY alert
    ADD CONSTRAINT alert_pk PRIMARY KEY (alert_id);

ALTER TABLE ONLY baseline
    ADD CONSTRAINT baseline_pk PRIMARY KEY (baseline_id);

ALTER TABLE ONLY check_result
    ADD CONSTRAINT check_result_pk PRIMARY KEY (run_id, check_name, step);

ALTER TABLE ONLY comparison_block
    ADD CONSTRAINT comparison_block_pk PRIMARY KEY (run_id, round, block);

ALTER TABLE ONLY comparison_difference
    ADD CONSTRAINT comparison_difference_pk PRIMARY KEY (run_id, draw, index);

ALTER TABLE ONLY comparison
    ADD CONSTRAINT comparison_pk PRIMARY KEY (run_id);

ALTER TABLE ONLY device
    ADD CONSTRAINT device_kind_uuid_name_key UNIQUE (kind, uuid, name);

ALTER TABLE ONLY device
    ADD CONSTRAINT device_pk PRIMARY KEY (device_id);

ALTER TABLE ONLY environment
    ADD CONSTRAINT environment_environment_id_environment_class_key UNIQUE (environment_id, environment_class);

ALTER TABLE ONLY environment
    ADD CONSTRAINT environment_fingerprint_sha256_key UNIQUE (fingerprint_sha256);

ALTER TABLE ONLY environment
    ADD CONSTRAINT environment_pk PRIMARY KEY (environment_id);

ALTER TABLE ONLY memory_storage
    ADD CONSTRAINT memory_storage_pk PRIMARY KEY (run_id, storage_id);

ALTER TABLE ONLY memory_tensor
    ADD CONSTRAINT memory_tensor_pk PRIMARY KEY (run_id, name);

ALTER TABLE ONLY payload_draw
    ADD CONSTRAINT payload_draw_pk PRIMARY KEY (payload_id, draw);

ALTER TABLE ONLY payload
    ADD CONSTRAINT payload_name_manifest_sha256_key UNIQUE (name, manifest_sha256);

ALTER TABLE ONLY payload
    ADD CONSTRAINT payload_pk PRIMARY KEY (payload_id);

ALTER TABLE ONLY qualification_case
    ADD CONSTRAINT qualification_case_pk PRIMARY KEY (run_id, case_name);

ALTER TABLE ONLY qualification
    ADD CONSTRAINT qualification_pk PRIMARY KEY (run_id);

ALTER TABLE ONLY round_energy
    ADD CONSTRAINT round_energy_pk PRIMARY KEY (run_id, arm, round, figure, subject);

ALTER TABLE ONLY round
    ADD CONSTRAINT round_pk PRIMARY KEY (run_id, arm, round);

ALTER TABLE ONLY round_trace
    ADD CONSTRAINT round_trace_pk PRIMARY KEY (run_id, arm, round);

ALTER TABLE ONLY run
    ADD CONSTRAINT run_baseline_key UNIQUE (run_id, workload, payload_id, device_id, protocol, environment_id, energy_trust);

ALTER TABLE ONLY run
    ADD CONSTRAINT run_dag_id_dag_run_id_key UNIQUE (dag_id, dag_run_id);

ALTER TABLE ONLY run_energy
    ADD CONSTRAINT run_energy_pk PRIMARY KEY (run_id, figure, subject);

ALTER TABLE ONLY run
    ADD CONSTRAINT run_pk PRIMARY KEY (run_id);

ALTER TABLE ONLY run_setting
    ADD CONSTRAINT run_setting_pk PRIMARY KEY (run_id, name);

ALTER TABLE ONLY source_state
    ADD CONSTRAINT source_state_fingerprint_sha256_key UNIQUE (fingerprint_sha256);

ALTER TABLE ONLY source_state
    ADD CONSTRAINT source_state_pk PRIMARY KEY (source_state_id);

ALTER TABLE ONLY task_memory
    ADD CONSTRAINT task_memory_pk PRIMARY KEY (run_id);

ALTER TABLE ONLY telemetry_gate
    ADD CONSTRAINT telemetry_gate_pk PRIMARY KEY (run_id, gate, at);

ALTER TABLE ONLY telemetry
    ADD CONSTRAINT telemetry_pk PRIMARY KEY (run_id, moment);

ALTER TABLE ONLY telemetry_trace
    ADD CONSTRAINT telemetry_trace_pk PRIMARY KEY (run_id, moment);

ALTER TABLE ONLY validation
    ADD CONSTRAINT validation_pk PRIMARY KEY (run_id, case_name);

ALTER TABLE ONLY validation
    ADD CONSTRAINT validation_run_id_draw_key UNIQUE (run_id, draw);

ALTER TABLE ONLY withdrawal
    ADD CONSTRAINT withdrawal_pk PRIMARY KEY (run_id, scope);

CREATE INDEX alert_event_alert_id_alert_event_id_idx ON alert_event USING btree (alert_id, alert_event_id);

CREATE UNIQUE INDEX alert_unresolved_key ON alert USING btree (workload, COALESCE(device_id, 0), metric, direction) WHERE (state <> 'resolved'::text);

CREATE UNIQUE INDEX baseline_current_key ON baseline USING btree (workload, payload_id, device_id, protocol, environment_class) WHERE (retired_at IS NULL);

CREATE INDEX round_invalid_idx ON round USING btree (run_id) WHERE (NOT valid);

CREATE INDEX run_candidate_idx ON run USING btree (started_at) WHERE candidate;

CREATE INDEX run_dag_run_id_idx ON run USING btree (dag_run_id);

CREATE INDEX run_night_idx ON run USING btree ((((started_at AT TIME ZONE 'UTC'::text))::date));

CREATE INDEX run_started_at_idx ON run USING btree (started_at);

CREATE INDEX run_workload_device_id_started_at_run_id_idx ON run USING btree (workload, device_id, started_at, run_id) INCLUDE (payload_id, candidate);

CREATE INDEX telemetry_power_limit_idx ON telemetry USING btree (run_id) INCLUDE (power_limit_w) WHERE (moment = 'before'::text);

CREATE TRIGGER baseline_is_not_withdrawn AFTER INSERT OR UPDATE ON baseline FOR EACH ROW EXECUTE FUNCTION baseline_is_not_withdrawn();

CREATE TRIGGER comparison_block_is_history BEFORE INSERT OR DELETE OR UPDATE ON comparison_block FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER comparison_difference_is_history BEFORE INSERT OR DELETE OR UPDATE ON comparison_difference FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER comparison_is_history BEFORE INSERT OR DELETE OR UPDATE ON comparison FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER memory_storage_is_history BEFORE INSERT OR DELETE OR UPDATE ON memory_storage FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER memory_tensor_is_history BEFORE INSERT OR DELETE OR UPDATE ON memory_tensor FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER qualification_case_is_history BEFORE INSERT OR DELETE OR UPDATE ON qualification_case FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER qualification_is_history BEFORE INSERT OR DELETE OR UPDATE ON qualification FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER round_energy_is_history BEFORE INSERT OR DELETE OR UPDATE ON round_energy FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER round_is_history BEFORE INSERT OR DELETE OR UPDATE ON round FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER run_energy_is_history BEFORE INSERT OR DELETE OR UPDATE ON run_energy FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER run_is_history BEFORE UPDATE ON run FOR EACH ROW WHEN (((old.verdict <> 'infrastructure_failure'::text) AND (NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text)))) EXECUTE FUNCTION run_is_history();

CREATE TRIGGER run_setting_is_history BEFORE INSERT OR DELETE OR UPDATE ON run_setting FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER task_memory_is_history BEFORE INSERT OR DELETE OR UPDATE ON task_memory FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER telemetry_gate_is_history BEFORE INSERT OR DELETE OR UPDATE ON telemetry_gate FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER telemetry_is_history BEFORE INSERT OR DELETE OR UPDATE ON telemetry FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER validation_is_history BEFORE INSERT OR DELETE OR UPDATE ON validation FOR EACH ROW WHEN ((NOT pg_has_role('nightly_owner'::name, 'MEMBER'::text))) EXECUTE FUNCTION part_of_run_is_history();

CREATE TRIGGER withdrawn_is_no_baseline AFTER INSERT OR UPDATE ON withdrawal FOR EACH ROW EXECUTE FUNCTION baseline_is_not_withdrawn();

ALTER TABLE ONLY alert
    ADD CONSTRAINT alert_baseline_id_fk FOREIGN KEY (baseline_id) REFERENCES baseline(baseline_id);

ALTER TABLE ONLY alert
    ADD CONSTRAINT alert_device_id_fk FOREIGN KEY (device_id) REFERENCES device(device_id);

ALTER TABLE ONLY alert_event
    ADD CONSTRAINT alert_event_alert_id_fk FOREIGN KEY (alert_id) REFERENCES alert(alert_id);

ALTER TABLE ONLY alert_event
    ADD CONSTRAINT alert_event_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY alert
    ADD CONSTRAINT alert_first_run_id_fk FOREIGN KEY (first_run_id) REFERENCES run(run_id);

ALTER TABLE ONLY alert
    ADD CONSTRAINT alert_last_run_id_fk FOREIGN KEY (last_run_id) REFERENCES run(run_id);

ALTER TABLE ONLY baseline
    ADD CONSTRAINT baseline_device_id_fk FOREIGN KEY (device_id) REFERENCES device(device_id);

ALTER TABLE ONLY baseline
    ADD CONSTRAINT baseline_environment_id_environment_class_fk FOREIGN KEY (environment_id, environment_class) REFERENCES environment(environment_id, environment_class);

ALTER TABLE ONLY baseline
    ADD CONSTRAINT baseline_payload_id_fk FOREIGN KEY (payload_id) REFERENCES payload(payload_id);

ALTER TABLE ONLY baseline
    ADD CONSTRAINT baseline_run_fk FOREIGN KEY (run_id, workload, payload_id, device_id, protocol, environment_id, energy_trust) REFERENCES run(run_id, workload, payload_id, device_id, protocol, environment_id, energy_trust);

ALTER TABLE ONLY check_result
    ADD CONSTRAINT check_result_baseline_id_fk FOREIGN KEY (baseline_id) REFERENCES baseline(baseline_id);

ALTER TABLE ONLY check_result
    ADD CONSTRAINT check_result_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY comparison_block
    ADD CONSTRAINT comparison_block_run_id_fk FOREIGN KEY (run_id) REFERENCES comparison(run_id);

ALTER TABLE ONLY comparison_difference
    ADD CONSTRAINT comparison_difference_run_id_fk FOREIGN KEY (run_id) REFERENCES comparison(run_id);

ALTER TABLE ONLY comparison
    ADD CONSTRAINT comparison_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY memory_storage
    ADD CONSTRAINT memory_storage_run_id_fk FOREIGN KEY (run_id) REFERENCES task_memory(run_id);

ALTER TABLE ONLY memory_tensor
    ADD CONSTRAINT memory_tensor_run_id_storage_id_fk FOREIGN KEY (run_id, storage_id) REFERENCES memory_storage(run_id, storage_id);

ALTER TABLE ONLY payload_draw
    ADD CONSTRAINT payload_draw_payload_id_fk FOREIGN KEY (payload_id) REFERENCES payload(payload_id);

ALTER TABLE ONLY qualification_case
    ADD CONSTRAINT qualification_case_run_id_fk FOREIGN KEY (run_id) REFERENCES qualification(run_id);

ALTER TABLE ONLY qualification
    ADD CONSTRAINT qualification_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY round_energy
    ADD CONSTRAINT round_energy_run_id_arm_round_fk FOREIGN KEY (run_id, arm, round) REFERENCES round(run_id, arm, round);

ALTER TABLE ONLY round
    ADD CONSTRAINT round_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY round_trace
    ADD CONSTRAINT round_trace_run_id_arm_round_fk FOREIGN KEY (run_id, arm, round) REFERENCES round(run_id, arm, round);

ALTER TABLE ONLY run
    ADD CONSTRAINT run_device_id_fk FOREIGN KEY (device_id) REFERENCES device(device_id);

ALTER TABLE ONLY run_energy
    ADD CONSTRAINT run_energy_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY run
    ADD CONSTRAINT run_environment_id_fk FOREIGN KEY (environment_id) REFERENCES environment(environment_id);

ALTER TABLE ONLY run
    ADD CONSTRAINT run_payload_id_fk FOREIGN KEY (payload_id) REFERENCES payload(payload_id);

ALTER TABLE ONLY run_setting
    ADD CONSTRAINT run_setting_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY run
    ADD CONSTRAINT run_source_state_id_fk FOREIGN KEY (source_state_id) REFERENCES source_state(source_state_id);

ALTER TABLE ONLY task_memory
    ADD CONSTRAINT task_memory_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY telemetry_gate
    ADD CONSTRAINT telemetry_gate_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY telemetry
    ADD CONSTRAINT telemetry_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY telemetry_trace
    ADD CONSTRAINT telemetry_trace_run_id_moment_fk FOREIGN KEY (run_id, moment) REFERENCES telemetry(run_id, moment);

ALTER TABLE ONLY validation
    ADD CONSTRAINT validation_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY withdrawal
    ADD CONSTRAINT withdrawal_run_id_fk FOREIGN KEY (run_id) REFERENCES run(run_id);

ALTER TABLE ONLY withdrawal
    ADD CONSTRAINT withdrawal_successor_run_id_fk FOREIGN KEY (successor_run_id) REFERENCES run(run_id);
