-- Kernels that are tried: which runs do, where the kernel comes from, and what was seen of it beside the other one.

ALTER TABLE run
    ADD COLUMN candidate BOOLEAN DEFAULT FALSE NOT NULL,
    ADD COLUMN candidate_origin JSONB,
    ADD COLUMN pinned_variant TEXT,
    ADD COLUMN pinned_ptx_sha256 TEXT;

-- None of the runs that were there before is one, unless this database came back from a newer version.
UPDATE run SET candidate = TRUE WHERE params ->> 'candidate' IS NOT NULL OR params -> 'kernel_changed' = 'true';

ALTER TABLE run
    ADD CONSTRAINT run_candidate_origin_object_check CHECK (jsonb_typeof(candidate_origin) = 'object'),
    ADD CONSTRAINT run_pinned_ptx_sha256_check CHECK (pinned_ptx_sha256 ~ '^[0-9a-f]{64}$'),
    ADD CONSTRAINT run_candidate_check
        CHECK (candidate OR num_nonnulls(candidate_origin, pinned_variant, pinned_ptx_sha256) = 0),
    ADD CONSTRAINT run_pinned_check CHECK (pinned_ptx_sha256 IS NULL OR pinned_variant IS NOT NULL);

-- The run before is never one of them, for every view that looks back.
DROP INDEX run_workload_device_id_started_at_run_id_idx;
CREATE INDEX run_workload_device_id_started_at_run_id_idx ON run (workload, device_id, started_at, run_id)
    INCLUDE (payload_id, candidate);
CREATE INDEX run_candidate_idx ON run (started_at) WHERE candidate;

COMMENT ON COLUMN run.candidate IS 'Whether it tries a kernel that nights do not run; such a run is no night and in no series';
COMMENT ON COLUMN run.candidate_origin IS 'Where the tried kernel comes from: spec, origin, commit, modified, bundle, kernel, against_bundle, equals_pinned, notes; NULL: not known, or no candidate';
COMMENT ON COLUMN run.pinned_variant IS 'Variant of the kernels that it was held against';
COMMENT ON COLUMN run.pinned_ptx_sha256 IS 'sha256 of the PTX that it was held against';

CREATE TABLE comparison (
    run_id UUID NOT NULL,
    outcome TEXT NOT NULL,
    reason_code TEXT,
    reason_message TEXT,
    candidate_ptx_lines INTEGER,
    candidate_instructions INTEGER,
    candidate_shared_bytes INTEGER,
    candidate_modelled_cycles BIGINT,
    pinned_ptx_lines INTEGER,
    pinned_instructions INTEGER,
    pinned_shared_bytes INTEGER,
    pinned_modelled_cycles BIGINT,
    differing_total INTEGER NOT NULL,
    not_measured_reason_code TEXT,
    not_measured_reason_message TEXT,
    energy_trust TEXT NOT NULL,
    energy_trust_reason_code TEXT,
    energy_trust_reason_message TEXT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT comparison_pk PRIMARY KEY (run_id),
    CONSTRAINT comparison_outcome_check
        CHECK (outcome IN ('ok', 'regression', 'bad_input', 'invalid_measurement', 'verification_mismatch',
            'infrastructure_failure')),
    CONSTRAINT comparison_reason_check CHECK (outcome = 'ok' OR reason_code IS NOT NULL),
    CONSTRAINT comparison_energy_trust_check
        CHECK (energy_trust IN ('verified', 'failed', 'unverified', 'unavailable')),
    CONSTRAINT comparison_candidate_static_check
        CHECK (num_nulls(candidate_ptx_lines, candidate_instructions, candidate_shared_bytes,
            candidate_modelled_cycles) IN (0, 4)),
    CONSTRAINT comparison_pinned_static_check
        CHECK (num_nulls(pinned_ptx_lines, pinned_instructions, pinned_shared_bytes, pinned_modelled_cycles) IN
            (0, 4)),
    CONSTRAINT comparison_static_figures_check
        CHECK (least(candidate_ptx_lines, candidate_instructions, candidate_shared_bytes, candidate_modelled_cycles,
            pinned_ptx_lines, pinned_instructions, pinned_shared_bytes, pinned_modelled_cycles) >= 0),
    CONSTRAINT comparison_differing_total_check CHECK (differing_total >= 0),
    CONSTRAINT comparison_run_id_fk FOREIGN KEY (run_id) REFERENCES run (run_id)
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
    run_id UUID NOT NULL,
    round SMALLINT NOT NULL,
    block SMALLINT NOT NULL,
    valid BOOLEAN NOT NULL,
    candidate_mj DOUBLE PRECISION,
    pinned_mj DOUBLE PRECISION,
    control_mj DOUBLE PRECISION,
    candidate_cuda_ms DOUBLE PRECISION,
    pinned_cuda_ms DOUBLE PRECISION,
    candidate_wall_ms DOUBLE PRECISION,
    pinned_wall_ms DOUBLE PRECISION,
    CONSTRAINT comparison_block_pk PRIMARY KEY (run_id, round, block),
    CONSTRAINT comparison_block_numbers_check CHECK (round >= 0 AND block >= 0),
    CONSTRAINT comparison_block_energy_check CHECK (NOT valid OR num_nulls(candidate_mj, pinned_mj) IN (0, 2)),
    CONSTRAINT comparison_block_cuda_ms_check CHECK (NOT valid OR num_nulls(candidate_cuda_ms, pinned_cuda_ms) IN (0, 2)),
    CONSTRAINT comparison_block_wall_ms_check CHECK (NOT valid OR num_nulls(candidate_wall_ms, pinned_wall_ms) IN (0, 2)),
    CONSTRAINT comparison_block_times_check
        CHECK (NOT valid OR least(candidate_cuda_ms, pinned_cuda_ms, candidate_wall_ms, pinned_wall_ms) > 0),
    CONSTRAINT comparison_block_finite_check
        CHECK (greatest(candidate_mj, pinned_mj, control_mj, candidate_cuda_ms, pinned_cuda_ms, candidate_wall_ms,
            pinned_wall_ms) < 'Infinity' AND least(candidate_mj, pinned_mj, control_mj, candidate_cuda_ms,
            pinned_cuda_ms, candidate_wall_ms, pinned_wall_ms) > '-Infinity'),
    CONSTRAINT comparison_block_run_id_fk FOREIGN KEY (run_id) REFERENCES comparison (run_id)
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

CREATE TABLE comparison_difference (
    run_id UUID NOT NULL,
    draw SMALLINT NOT NULL,
    index INTEGER NOT NULL,
    candidate INTEGER,
    pinned INTEGER,
    frozen INTEGER NOT NULL,
    candidate_score DOUBLE PRECISION,
    pinned_score DOUBLE PRECISION,
    gap DOUBLE PRECISION,
    CONSTRAINT comparison_difference_pk PRIMARY KEY (run_id, draw, index),
    CONSTRAINT comparison_difference_numbers_check CHECK (draw >= 0 AND index >= 0),
    CONSTRAINT comparison_difference_differs_check
        CHECK (candidate IS DISTINCT FROM frozen OR pinned IS DISTINCT FROM frozen),
    CONSTRAINT comparison_difference_finite_check
        CHECK (greatest(candidate_score, pinned_score, gap) < 'Infinity' AND least(candidate_score, pinned_score, gap)
            > '-Infinity'),
    CONSTRAINT comparison_difference_run_id_fk FOREIGN KEY (run_id) REFERENCES comparison (run_id)
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

-- Like every part of a run: added with it, taken out with it as long as it was not judged, and else history.

CREATE TRIGGER comparison_is_history BEFORE INSERT OR UPDATE OR DELETE ON comparison FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER comparison_block_is_history BEFORE INSERT OR UPDATE OR DELETE ON comparison_block FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();
CREATE TRIGGER comparison_difference_is_history BEFORE INSERT OR UPDATE OR DELETE ON comparison_difference FOR EACH ROW
    WHEN (NOT pg_has_role('nightly_owner', 'MEMBER')) EXECUTE FUNCTION part_of_run_is_history();

REVOKE UPDATE ON comparison, comparison_block, comparison_difference FROM nightly_writer;
GRANT DELETE ON comparison, comparison_block, comparison_difference TO nightly_writer;
