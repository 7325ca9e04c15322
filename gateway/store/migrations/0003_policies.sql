-- Policies that organisations write for themselves. Times are UTC. Primary keys only.

-- `version` is the number of the step that stands.
CREATE TABLE org_policies (
  id VARCHAR PRIMARY KEY, org_id VARCHAR NOT NULL, name VARCHAR NOT NULL, description VARCHAR, version BIGINT NOT NULL,
  created_by VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL
);

-- One row a step, never changed. `previous` is where a rollback leads, `enforced` the step whose text decides meanwhile.
CREATE TABLE org_policy_versions (
  policy_id VARCHAR, number BIGINT, previous BIGINT, cedar_text VARCHAR NOT NULL, mode VARCHAR NOT NULL, enforced BIGINT,
  written_by VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL,
  PRIMARY KEY (policy_id, number)
);
