-- Memory of agents, remote agents and their grants. Times are UTC. Primary keys only.

-- An id is the network's; another organisation may have the same. Conversations of an older `generation` have ended.
CREATE TABLE remote_connections (
  org_id VARCHAR, id VARCHAR, agent_id VARCHAR NOT NULL, peer_did VARCHAR NOT NULL, name VARCHAR, status VARCHAR NOT NULL,
  replaces VARCHAR, created_at TIMESTAMP NOT NULL, generation BIGINT NOT NULL,
  PRIMARY KEY (org_id, id)
);

-- Lists and `limits` are JSON: they are read once, at start. A grant is never changed, only revoked.
CREATE TABLE memory_grants (
  id VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, connection_id VARCHAR NOT NULL, actions VARCHAR NOT NULL,
  project_id VARCHAR NOT NULL, tags VARCHAR NOT NULL, tags_match VARCHAR NOT NULL, classifications VARCHAR NOT NULL,
  provenance VARCHAR NOT NULL, expires_at TIMESTAMP, limits VARCHAR NOT NULL, template_version BIGINT NOT NULL,
  created_by VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL, revoked_at TIMESTAMP
);

-- Everything one agent remembers. `sources` are the connections in the provenance; `words` is how many tokens the text has.
CREATE TABLE memories (
  id VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, agent_id VARCHAR NOT NULL, layer VARCHAR NOT NULL, text VARCHAR NOT NULL,
  project_id VARCHAR, tags VARCHAR[] NOT NULL, classification VARCHAR NOT NULL,
  connection_id VARCHAR, source_did VARCHAR, sources VARCHAR[] NOT NULL,
  created_at TIMESTAMP NOT NULL, expires_at TIMESTAMP, retracted_at TIMESTAMP, superseded_by VARCHAR,
  title VARCHAR, occurred_at TIMESTAMP, channel VARCHAR, started_at TIMESTAMP, ended_at TIMESTAMP,
  words BIGINT NOT NULL
);

-- One row a connection and remote agent in the provenance of a memory; an empty text stands for none.
CREATE TABLE memory_provenance (
  memory_id VARCHAR, connection_id VARCHAR, source_did VARCHAR, PRIMARY KEY (memory_id, connection_id, source_did)
);

-- What was derived from what, one row a direct source.
CREATE TABLE memory_links (memory_id VARCHAR, source_id VARCHAR, PRIMARY KEY (memory_id, source_id));

-- Postings of the keyword search: how often a token stands in a memory. No key: an index would cost more than it finds.
CREATE TABLE memory_tokens (agent_id VARCHAR NOT NULL, token VARCHAR NOT NULL, memory_id VARCHAR NOT NULL, times BIGINT NOT NULL);

-- One vector a piece of a memory's text, by the model that made it.
CREATE TABLE memory_vectors (
  memory_id VARCHAR, piece BIGINT, agent_id VARCHAR NOT NULL, model VARCHAR NOT NULL, vector FLOAT[512] NOT NULL,
  PRIMARY KEY (memory_id, piece)
);

-- Connections of which everything was forgotten: nothing stamped with one is ever stored again.
CREATE TABLE memory_suppressions (
  org_id VARCHAR, connection_id VARCHAR, "at" TIMESTAMP NOT NULL, by_id VARCHAR NOT NULL, PRIMARY KEY (org_id, connection_id)
);

-- How many rows a connection has written on a UTC day: what was deleted since counts too.
CREATE TABLE memory_written (
  org_id VARCHAR, connection_id VARCHAR, day VARCHAR, written BIGINT NOT NULL, PRIMARY KEY (org_id, connection_id, day)
);
