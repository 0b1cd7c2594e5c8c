-- What a tenant has consumed in all. CPU time was all that was counted before.

CREATE TABLE usage (
    tenant     TEXT    NOT NULL PRIMARY KEY,
    held       INTEGER NOT NULL DEFAULT 0, -- nanoseconds that sandboxes were held
    memory     REAL    NOT NULL DEFAULT 0, -- GB times seconds
    cpu        INTEGER NOT NULL DEFAULT 0, -- nanoseconds
    executions INTEGER NOT NULL DEFAULT 0,
    up         INTEGER NOT NULL DEFAULT 0, -- bytes
    down       INTEGER NOT NULL DEFAULT 0  -- bytes
) STRICT, WITHOUT ROWID;

INSERT INTO usage (tenant, cpu) SELECT tenant, used FROM cpu;

DROP TABLE cpu;
