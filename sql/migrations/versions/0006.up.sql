-- Alerts that are sent: the message, since when it is to be told, on which channel it was, and planned nights without
-- a run.

ALTER TABLE alert
    ADD COLUMN message TEXT,
    ADD COLUMN tell_since TIMESTAMP WITH TIME ZONE,
    DROP CONSTRAINT alert_outcome_check,
    DROP CONSTRAINT alert_text_check,
    ADD CONSTRAINT alert_outcome_check
        CHECK (outcome IN ('regression', 'bad_input', 'invalid_measurement', 'verification_mismatch',
            'infrastructure_failure', 'environment_change')),
    ADD CONSTRAINT alert_text_check
        CHECK (btrim(workload) <> '' AND btrim(metric) <> '' AND btrim(text) <> '' AND btrim(message) <> ''),
    ADD CONSTRAINT alert_tell_since_check CHECK (tell_since >= opened_at);

COMMENT ON COLUMN alert.text IS 'What people are told, in one line, as it was last told';
COMMENT ON COLUMN alert.message IS 'The message that goes with that line; NULL: none';
COMMENT ON COLUMN alert.tell_since IS
    'Since when a channel without a later event notified has something to tell, while the alert is open (UTC); NULL: none has';

ALTER TABLE alert_event
    ADD COLUMN night TIMESTAMP WITH TIME ZONE,
    ADD COLUMN channel TEXT,
    ADD CONSTRAINT alert_event_channel_check CHECK (channel IN ('smtp', 'slack', 'webhook')),
    ADD CONSTRAINT alert_event_delivery_check
        CHECK (channel IS NULL OR event IN ('notified', 'notification_failed')),
    ADD CONSTRAINT alert_event_night_check CHECK (num_nonnulls(run_id, night) <= 1);

COMMENT ON COLUMN alert_event.night IS 'Planned time of the night that caused it, where no run did (UTC)';
COMMENT ON COLUMN alert_event.channel IS 'Of a delivery: smtp, slack or webhook';

GRANT UPDATE (message, tell_since) ON alert TO nightly_writer;
