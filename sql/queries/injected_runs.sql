-- Runs with injected effects, and whether they were noticed
-- What simulated devices were told to show, and the verdict that the night came to: an effect that is not noticed is a
-- hole in the checks. Nothing is said of a request that was refused and of a night without a verdict.
--
-- workload (text): what was tested
\if :{?workload} \else \set workload 'qda' \endif
-- since (date): first night
\if :{?since} \else \set since '-infinity' \endif
-- until (date): last night
\if :{?until} \else \set until 'infinity' \endif

SELECT n.night, n.inject, run.seed, n.verdict,
       CASE WHEN n.verdict NOT IN ('bad_input', 'not judged') THEN
           n.verdict NOT IN ('ok', 'inconclusive')
           OR n.energy_verdict IS NOT DISTINCT FROM 'improved'
           OR n.time_verdict IS NOT DISTINCT FROM 'improved'
       END AS noticed,
       n.energy_verdict, n.agreement_verdict, n.energy_trust, n.failed_gates, n.reason_code, n.dag_run_id
FROM nightly AS n
JOIN run USING (run_id)
WHERE n.workload = :'workload'
  AND n.started_at >= :'since'::timestamp AT TIME ZONE 'UTC'
  AND n.started_at < (:'until'::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  AND n.inject IS NOT NULL
ORDER BY n.started_at DESC;
