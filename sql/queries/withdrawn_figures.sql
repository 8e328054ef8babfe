-- Withdrawn figures, and what to use instead
-- Every run whose energy, or which altogether, must not be used any more: why, what was published, and the run that
-- holds instead.
--
-- workload (text): what was tested; empty: everything
\if :{?workload} \else \set workload '' \endif

SELECT w.night, w.workload, w.device, w.scope, w.reason, w.figures, w.adjusted_mj_median, w.successor_night,
       w.successor_device, w.successor_adjusted_mj_median, w.successor_energy_trust, w.withdrawn_by, w.withdrawn_at,
       w.trigger, w.dag_run_id, w.run_id, w.successor_run_id
FROM withdrawn AS w
WHERE :'workload' IN ('', w.workload)
ORDER BY w.withdrawn_at DESC, w.run_id, w.scope;
