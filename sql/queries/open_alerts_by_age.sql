-- Alerts that nobody has resolved, with their age
-- What is still open, the oldest first: how old it is, how often it was seen, how far the figure is off, and what was
-- said about it.
--
-- workload (text): what was tested; empty: everything
\if :{?workload} \else \set workload '' \endif

SELECT a.workload, a.device, a.device_uuid, a.metric, a.direction, a.outcome, a.state, a.is_muted,
       extract(day FROM now() - a.opened_at)::integer AS age_days,
       extract(day FROM now() - a.last_seen_at)::integer AS unseen_days,
       a.occurrences, a.value, a.baseline_value, a.unit, a.change_percent, a.text, a.first_night, a.last_night,
       a.acknowledged_by, a.acknowledged_reason, a.muted_until, a.alert_id
FROM open_alerts AS a
WHERE :'workload' IN ('', a.workload)
ORDER BY a.opened_at, a.alert_id;
