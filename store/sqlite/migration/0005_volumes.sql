-- Volumes outlive the sessions that have them.

CREATE TABLE volume (
    id     TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    data   TEXT NOT NULL
) STRICT;

CREATE INDEX volume_tenant ON volume (tenant, id);
