-- Without messages and channels; alerts of a change of the surroundings become those of a regression.

ALTER TABLE alert_event
    DROP CONSTRAINT alert_event_channel_check,
    DROP CONSTRAINT alert_event_delivery_check,
    DROP CONSTRAINT alert_event_night_check,
    DROP COLUMN channel,
    DROP COLUMN night;

ALTER TABLE alert
    DROP CONSTRAINT alert_outcome_check,
    DROP CONSTRAINT alert_text_check,
    DROP CONSTRAINT alert_tell_since_check,
    DROP COLUMN message,
    DROP COLUMN tell_since;

UPDATE alert SET outcome = 'regression' WHERE outcome = 'environment_change';

ALTER TABLE alert
    ADD CONSTRAINT alert_outcome_check
        CHECK (outcome IN ('regression', 'bad_input', 'invalid_measurement', 'verification_mismatch',
            'infrastructure_failure')),
    ADD CONSTRAINT alert_text_check CHECK (btrim(workload) <> '' AND btrim(metric) <> '' AND btrim(text) <> '');

COMMENT ON COLUMN alert.text IS 'What people are told, as it was last sent';
