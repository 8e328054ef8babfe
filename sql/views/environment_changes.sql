-- One row a change since the previous run of the same workload and device. What that run does not know (it failed before
-- it came to it) is taken from the latest one that does, so that no change falls between two runs. What a run tries that
-- is no night changes nothing for the nights.
CREATE OR REPLACE VIEW environment_changes AS
SELECT
    (run.started_at AT TIME ZONE 'UTC')::date AS night,
    run.workload,
    device.name AS device,
    change.what,
    change.from_value,
    change.to_value,
    change.detail,
    (previous.started_at AT TIME ZONE 'UTC')::date AS previous_night,
    run.trigger,
    device.kind AS device_kind,
    device.uuid AS device_uuid,
    run.started_at,
    run.dag_id,
    run.dag_run_id,
    run.run_id,
    previous.run_id AS previous_run_id
FROM run
JOIN device ON device.device_id = run.device_id
JOIN environment AS found ON found.environment_id = run.environment_id
LEFT JOIN LATERAL (
    -- Of at most one row. As a join, all telemetry there is would be read for the runs of a month.
    SELECT max(before.power_limit_w) AS power_limit_w
    FROM telemetry AS before
    WHERE before.run_id = run.run_id AND before.moment = 'before'
) AS telemetry ON TRUE
CROSS JOIN LATERAL (
    SELECT
        earlier.run_id,
        earlier.started_at,
        earlier.environment_id,
        CASE WHEN run.source_state_id IS NOT NULL THEN COALESCE(earlier.source_state_id, (
            SELECT known.source_state_id FROM run AS known
            WHERE known.workload = run.workload AND known.device_id = run.device_id AND NOT known.candidate
                AND (known.started_at, known.run_id) < (earlier.started_at, earlier.run_id)
                AND known.source_state_id IS NOT NULL
            ORDER BY known.started_at DESC, known.run_id DESC
            LIMIT 1
        )) END AS source_state_id,
        CASE WHEN run.payload_id IS NOT NULL THEN COALESCE(earlier.payload_id, (
            SELECT known.payload_id FROM run AS known
            WHERE known.workload = run.workload AND known.device_id = run.device_id AND NOT known.candidate
                AND (known.started_at, known.run_id) < (earlier.started_at, earlier.run_id)
                AND known.payload_id IS NOT NULL
            ORDER BY known.started_at DESC, known.run_id DESC
            LIMIT 1
        )) END AS payload_id,
        CASE WHEN run.kernel_variant IS NOT NULL THEN COALESCE(
            earlier.kernel_variant || COALESCE(' ' || earlier.kernel_ptx_sha256, ''),
            (
                SELECT known.kernel_variant || COALESCE(' ' || known.kernel_ptx_sha256, '') FROM run AS known
                WHERE known.workload = run.workload AND known.device_id = run.device_id AND NOT known.candidate
                    AND (known.started_at, known.run_id) < (earlier.started_at, earlier.run_id)
                AND known.kernel_variant IS NOT NULL
                ORDER BY known.started_at DESC, known.run_id DESC
                LIMIT 1
            )
        ) END AS kernel,
        CASE WHEN telemetry.power_limit_w IS NOT NULL THEN COALESCE(
            (
                SELECT earlier_telemetry.power_limit_w FROM telemetry AS earlier_telemetry
                WHERE earlier_telemetry.run_id = earlier.run_id AND earlier_telemetry.moment = 'before'
            ),
            (
                SELECT known_telemetry.power_limit_w
                FROM run AS known
                JOIN telemetry AS known_telemetry
                    ON known_telemetry.run_id = known.run_id AND known_telemetry.moment = 'before'
                WHERE known.workload = run.workload AND known.device_id = run.device_id AND NOT known.candidate
                    AND (known.started_at, known.run_id) < (earlier.started_at, earlier.run_id)
                    AND known_telemetry.power_limit_w IS NOT NULL
                ORDER BY known.started_at DESC, known.run_id DESC
                LIMIT 1
            )
        ) END AS power_limit_w
    FROM run AS earlier
    WHERE earlier.workload = run.workload AND earlier.device_id = run.device_id AND NOT earlier.candidate
        AND earlier.environment_id IS NOT NULL
        AND (earlier.started_at, earlier.run_id) < (run.started_at, run.run_id)
    ORDER BY earlier.started_at DESC, earlier.run_id DESC
    LIMIT 1
) AS previous
JOIN environment AS expected ON expected.environment_id = previous.environment_id
CROSS JOIN LATERAL (
    SELECT version.what, version.from_value, version.to_value, NULL::text AS detail
    FROM (VALUES
        ('driver', expected.driver, found.driver),
        ('cuda', expected.cuda, found.cuda),
        ('python', expected.python, found.python),
        ('platform', expected.platform, found.platform)
    ) AS version (what, from_value, to_value)
    -- Records that ship are of no machine, and others may not have kept it: what stands there for the platform is none.
    WHERE previous.environment_id <> run.environment_id AND version.from_value IS DISTINCT FROM version.to_value
        AND NOT (version.what = 'platform' AND (
            version.from_value IN ('cuda', 'emulated', 'reference', 'simulated', 'not recorded')
            OR version.to_value IN ('cuda', 'emulated', 'reference', 'simulated', 'not recorded')
        ))
    UNION ALL
    SELECT name, old.version, new.version, NULL
    FROM jsonb_each_text(expected.packages) AS old (name, version)
    FULL JOIN jsonb_each_text(found.packages) AS new (name, version) USING (name)
    WHERE previous.environment_id <> run.environment_id AND old.version IS DISTINCT FROM new.version
    UNION ALL
    SELECT 'sources', old.fingerprint_sha256, new.fingerprint_sha256, (
        SELECT string_agg(path, ', ' ORDER BY path)
        FROM jsonb_each_text(old.sources) AS was (path, sha256)
        FULL JOIN jsonb_each_text(new.sources) AS is_now (path, sha256) USING (path)
        WHERE was.sha256 IS DISTINCT FROM is_now.sha256
    )
    FROM source_state AS old, source_state AS new
    WHERE previous.source_state_id <> run.source_state_id
        AND old.source_state_id = previous.source_state_id AND new.source_state_id = run.source_state_id
    UNION ALL
    SELECT 'payload', old.name || ' ' || old.manifest_sha256, new.name || ' ' || new.manifest_sha256, NULL
    FROM payload AS old, payload AS new
    WHERE previous.payload_id <> run.payload_id
        AND old.payload_id = previous.payload_id AND new.payload_id = run.payload_id
    UNION ALL
    SELECT 'kernel', previous.kernel, run.kernel_variant || COALESCE(' ' || run.kernel_ptx_sha256, ''), NULL
    WHERE previous.kernel <> run.kernel_variant || COALESCE(' ' || run.kernel_ptx_sha256, '')
    UNION ALL
    SELECT 'power_limit_w', previous.power_limit_w::text, telemetry.power_limit_w::text, NULL
    WHERE previous.power_limit_w <> telemetry.power_limit_w
    UNION ALL
    SELECT name, old.value, new.value, 'from ' || COALESCE(old.origin, 'nothing') || ' to ' || COALESCE(new.origin, 'nothing')
    FROM (SELECT * FROM run_setting WHERE run_setting.run_id = previous.run_id) AS old
    FULL JOIN (SELECT * FROM run_setting WHERE run_setting.run_id = run.run_id) AS new USING (name)
    WHERE old.value IS DISTINCT FROM new.value
) AS change
WHERE NOT run.candidate;

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
