-- The business, and the table of keys that the team wrote itself. Oncekey's own tables come from `oncekey migrate`.
CREATE TABLE IF NOT EXISTS accounts (
  tenant text PRIMARY KEY,
  balance_minor bigint NOT NULL CHECK (balance_minor >= 0)
);

-- No unique index on `reference`: what keeps a payment from being made twice is the key, and nothing else.
CREATE TABLE IF NOT EXISTS payments (
  id text PRIMARY KEY,
  tenant text NOT NULL,
  reference text NOT NULL,
  amount_minor bigint NOT NULL
);

-- `body` is text: jsonb would give back other bytes than were answered. A row without `status` is being worked on, since
-- `locked_at`.
CREATE TABLE IF NOT EXISTS idempotency_keys (
  tenant text NOT NULL,
  endpoint text NOT NULL,
  key text NOT NULL,
  request_hash text NOT NULL,
  status integer,
  body text,
  locked_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant, endpoint, key)
);
