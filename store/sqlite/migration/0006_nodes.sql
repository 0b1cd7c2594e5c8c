-- Claims say which node works on them; in one file there is only one.

ALTER TABLE claim ADD COLUMN node TEXT NOT NULL DEFAULT '';
