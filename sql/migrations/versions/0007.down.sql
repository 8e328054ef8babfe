-- Back to nights alone. Rounds in which two kernels took turns, and validations of another kernel than the run's, go:
-- the older version would take them for its own. A run that tried a kernel stays; its request still says that it did.

DROP TABLE comparison_difference;
DROP TABLE comparison_block;
DROP TABLE comparison;

DELETE FROM round_trace WHERE arm = 'comparison';
DELETE FROM round_energy WHERE arm = 'comparison';
DELETE FROM round WHERE arm = 'comparison';
DELETE FROM validation WHERE case_name LIKE 'pinned-draw-%' OR case_name LIKE 'emulated-draw-%';

DROP INDEX run_candidate_idx;
DROP INDEX run_workload_device_id_started_at_run_id_idx;
ALTER TABLE run
    DROP COLUMN candidate,
    DROP COLUMN candidate_origin,
    DROP COLUMN pinned_variant,
    DROP COLUMN pinned_ptx_sha256;
CREATE INDEX run_workload_device_id_started_at_run_id_idx ON run (workload, device_id, started_at, run_id)
    INCLUDE (payload_id);
