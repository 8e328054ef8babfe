-- Storage by table
-- How large each table is with its indexes and long values, how many rows PostgreSQL reckons with, and what share of
-- the whole that is.

SELECT c.relname AS table_name, nullif(c.reltuples, -1)::bigint AS rows_estimated,
       pg_total_relation_size(c.oid) AS bytes, pg_indexes_size(c.oid) AS index_bytes,
       pg_size_pretty(pg_total_relation_size(c.oid)) AS size,
       100 * pg_total_relation_size(c.oid)::double precision / sum(pg_total_relation_size(c.oid)) OVER () AS percent
FROM pg_class AS c
WHERE c.relnamespace = 'public'::regnamespace
  AND c.relkind = 'r'
ORDER BY bytes DESC, table_name;
