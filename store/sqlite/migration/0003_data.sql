-- Runs are listed by tenant, and chats have messages.

ALTER TABLE run ADD COLUMN tenant TEXT NOT NULL DEFAULT '';

UPDATE run SET tenant = coalesce(json_extract(data, '$.tenant'), '');

CREATE INDEX run_tenant ON run (tenant, id);

CREATE TABLE message (
    id         TEXT NOT NULL PRIMARY KEY,
    tenant     TEXT NOT NULL,
    owner      TEXT NOT NULL,
    thread     TEXT NOT NULL,
    created_at TEXT NOT NULL, -- of one width, so that it sorts by time
    data       TEXT NOT NULL
) STRICT;

CREATE INDEX message_thread ON message (tenant, owner, thread, id);

CREATE INDEX message_created ON message (created_at);
