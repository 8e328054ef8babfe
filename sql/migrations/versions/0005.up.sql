-- Confirmation rounds: more rounds of the same run where the first ones left the spread of their baseline.

ALTER TABLE run
    ADD COLUMN confirmation_rounds INTEGER,
    ADD COLUMN confirmation_reason_code TEXT,
    ADD COLUMN confirmation_reason_message TEXT,
    ADD COLUMN confirmation_looks JSONB,
    ADD CONSTRAINT run_confirmation_check CHECK (
        num_nulls(confirmation_rounds, confirmation_reason_code, confirmation_reason_message, confirmation_looks)
        IN (0, 4)
    ),
    ADD CONSTRAINT run_confirmation_rounds_check CHECK (confirmation_rounds BETWEEN 0 AND rounds_expected),
    ADD CONSTRAINT run_confirmation_looks_array_check CHECK (jsonb_typeof(confirmation_looks) = 'array');

COMMENT ON COLUMN run.confirmation_rounds IS 'Confirmation rounds planned after a look at the first rounds; 0: nothing to confirm; NULL: nobody looked';
COMMENT ON COLUMN run.confirmation_reason_code IS 'Documented snake_case word for what is to be confirmed, or why nothing is';
COMMENT ON COLUMN run.confirmation_reason_message IS 'One line for people: what is to be confirmed, or why nothing is';
COMMENT ON COLUMN run.confirmation_looks IS 'The figures of the first rounds against the spread of their baselines: check, verdict, figures with unit, out_of_spread';
COMMENT ON COLUMN run.rounds_expected IS 'Measurement rounds asked for, and the confirmation rounds that were planned';

ALTER TABLE round
    ADD COLUMN step SMALLINT NOT NULL DEFAULT 0,
    ADD CONSTRAINT round_step_check CHECK (step IN (0, 1));
ALTER TABLE round ALTER COLUMN step DROP DEFAULT;  -- it was for the rounds that were there already

COMMENT ON COLUMN round.step IS '0: first rounds; 1: confirmation rounds, measured because the first ones called for it';
COMMENT ON COLUMN check_result.step IS '0: the first rounds alone; 1: first and confirmation rounds together; the last one counts';
