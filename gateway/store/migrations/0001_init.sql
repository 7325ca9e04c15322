-- Everything the gateway keeps. Times are UTC. Primary keys only: no secondary index, no foreign key, no trigger.

-- who ---------------------------------------------------------------------------------------------------------------
CREATE TABLE meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);

CREATE TABLE orgs (
  id VARCHAR PRIMARY KEY, name VARCHAR NOT NULL, settings VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL
);

CREATE TABLE humans (
  id VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, email VARCHAR NOT NULL, display_name VARCHAR, role VARCHAR NOT NULL,
  password_hash VARCHAR, totp_secret VARCHAR, totp_confirmed BOOLEAN NOT NULL, totp_last_step BIGINT,
  generation BIGINT NOT NULL, created_at TIMESTAMP NOT NULL
);

CREATE TABLE agents (
  id VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, name VARCHAR NOT NULL, description VARCHAR NOT NULL,
  is_active BOOLEAN NOT NULL, created_by VARCHAR NOT NULL, parent_id VARCHAR, connection_id VARCHAR,
  approval_policy VARCHAR, token_ttl_seconds BIGINT NOT NULL, attributes VARCHAR NOT NULL,
  generation BIGINT NOT NULL, created_at TIMESTAMP NOT NULL, deleted_at TIMESTAMP
);

-- `principal_type` is Human, Agent or Platform. The secret itself is never stored. Revoked rows are deleted.
CREATE TABLE credentials (
  id VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, principal_type VARCHAR NOT NULL, principal_id VARCHAR NOT NULL,
  name VARCHAR NOT NULL, secret_hash VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL, expires_at TIMESTAMP
);

CREATE TABLE revoked_tokens (jti VARCHAR PRIMARY KEY, expires_at TIMESTAMP NOT NULL);

CREATE TABLE platform_apps (
  id VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, name VARCHAR NOT NULL, slug VARCHAR NOT NULL,
  created_by VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL
);

CREATE TABLE platform_templates (
  id VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, name VARCHAR NOT NULL, agents VARCHAR NOT NULL,
  created_by VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL
);

CREATE TABLE platform_connections (
  id VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, app_id VARCHAR NOT NULL, user_id VARCHAR NOT NULL,
  status VARCHAR NOT NULL, template_id VARCHAR, claimed_at TIMESTAMP, created_at TIMESTAMP NOT NULL
);

CREATE TABLE claims (
  token_hash VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, connection_id VARCHAR NOT NULL, expires_at TIMESTAMP NOT NULL
);

-- peers -------------------------------------------------------------------------------------------------------------
CREATE TABLE peers (
  id VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, peer_type VARCHAR NOT NULL, peer_ref VARCHAR NOT NULL,
  display_name VARCHAR, connection_id VARCHAR, status VARCHAR NOT NULL,
  pause_reading BOOLEAN NOT NULL, pause_learning BOOLEAN NOT NULL, pause_until TIMESTAMP, created_at TIMESTAMP NOT NULL
);

CREATE TABLE observers (
  peer_id VARCHAR, agent_id VARCHAR, added_by VARCHAR NOT NULL, added_at TIMESTAMP NOT NULL, expires_at TIMESTAMP,
  PRIMARY KEY (peer_id, agent_id)
);

-- Observers that a human took off a list; a platform's bootstrap does not bring them back.
CREATE TABLE removed_observers (peer_id VARCHAR, agent_id VARCHAR, removed_at TIMESTAMP NOT NULL, PRIMARY KEY (peer_id, agent_id));

-- `id` is the approval's id for the gateway's own evidence. `fact_key` is null for what is no evidence.
-- `learned` is false for what was recorded while learning was paused: never derived from, also later.
CREATE TABLE events (
  peer_id VARCHAR, id VARCHAR, org_id VARCHAR NOT NULL, event_type VARCHAR NOT NULL, content VARCHAR NOT NULL,
  content_hash VARCHAR NOT NULL, "at" TIMESTAMP NOT NULL, source VARCHAR NOT NULL,
  fact_key VARCHAR, decision VARCHAR, learned BOOLEAN NOT NULL,
  PRIMARY KEY (peer_id, id)
);

-- Buckets whose derivation failed and is owed.
CREATE TABLE pending_buckets (peer_id VARCHAR, fact_key VARCHAR, since TIMESTAMP NOT NULL, PRIMARY KEY (peer_id, fact_key));

-- `live` is false for a retired fact, which keeps its tombstones. `replaced` is the inference a correction replaced.
CREATE TABLE facts (
  peer_id VARCHAR, fact_key VARCHAR, org_id VARCHAR NOT NULL, live BOOLEAN NOT NULL, fact_value VARCHAR NOT NULL,
  confidence VARCHAR, edited_by_human BOOLEAN NOT NULL, disputed BOOLEAN NOT NULL, replaced VARCHAR,
  bands_version BIGINT NOT NULL, updated_at TIMESTAMP NOT NULL,
  PRIMARY KEY (peer_id, fact_key)
);

-- What outlives its event: tombstones and a person's own corrections. Live events are joined by `fact_key`.
CREATE TABLE provenance (
  peer_id VARCHAR, fact_key VARCHAR, id VARCHAR, kind VARCHAR NOT NULL, event_type VARCHAR, decision VARCHAR,
  "at" TIMESTAMP NOT NULL, user_id VARCHAR,
  PRIMARY KEY (peer_id, fact_key, id)
);

CREATE TABLE suppressions (peer_id VARCHAR, fact_key VARCHAR, "at" TIMESTAMP NOT NULL, by_user VARCHAR NOT NULL, PRIMARY KEY (peer_id, fact_key));

-- approvals ---------------------------------------------------------------------------------------------------------
-- `asked_by` is the human who asked, where the agent did not.
CREATE TABLE approvals (
  id VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, agent_id VARCHAR NOT NULL, asked_by VARCHAR, user_id VARCHAR NOT NULL,
  connection_id VARCHAR, action VARCHAR NOT NULL, target_type VARCHAR NOT NULL, target_id VARCHAR NOT NULL,
  risk_tier BIGINT NOT NULL, declared_risk_tier BIGINT, status VARCHAR NOT NULL,
  summary VARCHAR NOT NULL, human_summary VARCHAR, payload VARCHAR NOT NULL, payload_hash VARCHAR NOT NULL,
  understood VARCHAR NOT NULL, recipient VARCHAR,
  reason VARCHAR, decision_reason VARCHAR, decided_by VARCHAR, decided_at TIMESTAMP,
  created_at TIMESTAMP NOT NULL, expires_at TIMESTAMP NOT NULL
);

-- evidence ----------------------------------------------------------------------------------------------------------
CREATE TABLE log (
  seq BIGINT PRIMARY KEY, kind VARCHAR NOT NULL, id VARCHAR NOT NULL, "at" TIMESTAMP NOT NULL, org_id VARCHAR NOT NULL,
  principal_type VARCHAR NOT NULL, principal_id VARCHAR NOT NULL, action VARCHAR NOT NULL,
  resource_type VARCHAR NOT NULL, resource_id VARCHAR NOT NULL, outcome VARCHAR, deny_kind VARCHAR,
  policies VARCHAR NOT NULL, bundle VARCHAR NOT NULL, data_version BIGINT NOT NULL, slices VARCHAR NOT NULL,
  request_id VARCHAR NOT NULL, details VARCHAR NOT NULL, hash VARCHAR NOT NULL
);

CREATE TABLE slices (hash VARCHAR PRIMARY KEY, body VARCHAR NOT NULL);

-- Ids of what was erased: a slice that names one is never stored again.
CREATE TABLE erased (id VARCHAR PRIMARY KEY);

-- Every bundle that has decided, by hash: what is needed to decide again.
CREATE TABLE bundles (hash VARCHAR PRIMARY KEY, body VARCHAR NOT NULL, loaded_at TIMESTAMP NOT NULL);
