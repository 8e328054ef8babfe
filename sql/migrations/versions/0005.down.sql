-- Back to rounds without a step: confirmation rounds stay, as if they had been asked for; why they were made goes.

COMMENT ON COLUMN check_result.step IS '0: first look; 1 and later: after confirmation rounds';
COMMENT ON COLUMN run.rounds_expected IS 'Measurement rounds asked for';
ALTER TABLE round DROP COLUMN step;
ALTER TABLE run
    DROP COLUMN confirmation_rounds,
    DROP COLUMN confirmation_reason_code,
    DROP COLUMN confirmation_reason_message,
    DROP COLUMN confirmation_looks;
