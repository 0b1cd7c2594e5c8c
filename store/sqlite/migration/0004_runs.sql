-- Runs are forgotten by their age, and the oldest of a tenant when there are many.

ALTER TABLE run ADD COLUMN created_at TEXT NOT NULL DEFAULT ''; -- of one width, so that it sorts by time

UPDATE run SET created_at = coalesce(strftime('%Y-%m-%dT%H:%M:%S', json_extract(data, '$.created_at')), '') || '.000000000Z';

-- All that the question needs is in the index: the rows are long.
CREATE INDEX run_created ON run (tenant, created_at, id, state);
