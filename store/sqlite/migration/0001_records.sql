-- Records are JSON in data; the other columns repeat what is searched.

CREATE TABLE session (
    id      TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    tenant  TEXT    NOT NULL,
    project TEXT    NOT NULL,
    user    TEXT    NOT NULL,
    thread  TEXT    NOT NULL,
    state   TEXT    NOT NULL,
    past    TEXT    NOT NULL, -- '' while the session is live, afterwards its id
    data    TEXT    NOT NULL
) STRICT;

-- Live sessions all have the same past, so that two of them cannot share a key;
-- those in error differ in it. One index is both the rule and the way to look up.
CREATE UNIQUE INDEX session_key ON session (tenant, thread, user, past)
    WHERE state <> 'ended' AND (user <> '' OR thread <> '');

-- Ended sessions are remembered for a while and can outnumber the rest by far:
-- lists of the rest must not step over them.
CREATE INDEX session_open   ON session (id) WHERE state <> 'ended';
CREATE INDEX session_tenant ON session (tenant, id) WHERE state <> 'ended';
CREATE INDEX session_ended  ON session (id) WHERE state = 'ended';

CREATE TABLE access_key (
    id   TEXT NOT NULL PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    data TEXT NOT NULL
) STRICT;

CREATE TABLE tenant (
    id   TEXT NOT NULL PRIMARY KEY, -- its name
    data TEXT NOT NULL
) STRICT;

-- Apart from tenant, since a tenant that nobody described uses time as well.
CREATE TABLE cpu (
    tenant TEXT    NOT NULL PRIMARY KEY,
    used   INTEGER NOT NULL -- nanoseconds
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshot (
    id      TEXT NOT NULL PRIMARY KEY,
    tenant  TEXT NOT NULL,
    session TEXT NOT NULL,
    data    TEXT NOT NULL
) STRICT;

CREATE INDEX snapshot_tenant  ON snapshot (tenant, id);
CREATE INDEX snapshot_session ON snapshot (session, id);

CREATE TABLE run (
    id    TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    data  TEXT NOT NULL
) STRICT;

CREATE INDEX run_state ON run (state, id);

CREATE TABLE claim (
    tenant     TEXT NOT NULL,
    key        TEXT NOT NULL,
    digest     TEXT NOT NULL,
    result     TEXT NOT NULL,
    expires_at TEXT NOT NULL, -- of one width, so that it sorts by time
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX claim_expiry ON claim (expires_at);
