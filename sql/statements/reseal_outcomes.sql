-- reseal_entries.sql for outcomes in partitions.
WITH given AS MATERIALIZED (
  SELECT
    decode(id, 'hex') AS given_id,
    decode(input_was, 'base64') AS old_input, decode(input, 'base64') AS new_input,
    decode(context_was, 'base64') AS old_context, decode(context, 'base64') AS new_context,
    decode(outcome_was, 'base64') AS old_outcome, decode(outcome, 'base64') AS new_outcome
  FROM jsonb_to_recordset($1::text::jsonb) AS sent(
    id text, input_was text, input text, context_was text, context text, outcome_was text, outcome text
  )
),
free AS MATERIALIZED (
  SELECT e.id
  FROM oncekey.outcome AS e, given AS g
  WHERE e.id = g.given_id AND e.expires_at > statement_timestamp()
    AND (g.old_input IS NULL OR sha256(e.input) = g.old_input)
    AND (g.old_context IS NULL OR sha256(e.context) = g.old_context)
    AND (g.old_outcome IS NULL OR sha256(e.outcome) = g.old_outcome)
  FOR UPDATE OF e SKIP LOCKED
),
resealed AS (
  UPDATE oncekey.outcome AS e
  SET
    input = coalesce(g.new_input, e.input),
    context = coalesce(g.new_context, e.context),
    outcome = coalesce(g.new_outcome, e.outcome)
  FROM free, given AS g
  WHERE e.id = free.id AND e.expires_at > statement_timestamp() AND g.given_id = free.id
  RETURNING num_nonnulls(g.new_input, g.new_context, g.new_outcome) AS taken
)
SELECT coalesce(sum(taken), 0)::int AS resealed FROM resealed;
