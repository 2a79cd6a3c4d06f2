-- A key is the kind, a slash and the id; a kind has no slash.
CREATE TABLE IF NOT EXISTS record (key BLOB PRIMARY KEY, state TEXT, head BLOB, sum BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entry (key BLOB, seq INTEGER, revision INTEGER, data BLOB, sum BLOB, PRIMARY KEY (key, seq));
CREATE TABLE IF NOT EXISTS settled (key BLOB, revision INTEGER, chain TEXT, commit_id TEXT, what TEXT, PRIMARY KEY (key, revision));
CREATE UNIQUE INDEX IF NOT EXISTS settled_commit ON settled (key, commit_id);
CREATE TABLE IF NOT EXISTS grave (key BLOB PRIMARY KEY, birth INTEGER) WITHOUT ROWID;
