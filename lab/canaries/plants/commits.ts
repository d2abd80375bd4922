import { type Canary, integration, memoryCase, postgresCase, suite, unit } from "../canary.ts";

/** Breaks of what is kept: commits, retention, the purge, what start() refuses, sealed content. */
export const COMMITS: readonly Canary[] = [
  {
    id: "guard-v23",
    what: "partitioned layout: a claim looks at entries alone, an outcome at outcomes alone",
    edits: [
      {
        file: "sql/migrations/0004_partitioned_outcomes.sql",
        find: "; IF taken THEN\n",
        replace: "; IF taken AND NEW.id IS NULL THEN\n",
      },
    ],
    caughtBy: [
      unit("explore-postgres", "that phases code has claimed meanwhile (V23)"),
      integration("postgres-layout", "of the same identity is open: whoever commits second is refused"),
    ],
  },
  {
    id: "commit-tag-unread",
    what: "a COMMIT that the server answers with ROLLBACK counts as one",
    edits: [
      {
        file: "src/drivers/_pg-transaction.ts",
        find: '    if (command !== "COMMIT") throw new TransactionAborted("COMMIT was answered with ROLLBACK");\n',
        replace: "    void [command, TransactionAborted];\n",
      },
    ],
    caughtBy: [
      integration("postgres-store", "is aborted, not committed, when the handler swallowed an SQL error"),
      suite("drivers", ": pg ", "rejects where COMMIT was answered with ROLLBACK"),
    ],
  },
  {
    id: "xact-uncompared",
    what: "the last insert does not ask whether its transaction is still the one that began",
    edits: [
      {
        file: "sql/statements/insert_finished.sql",
        find: "WHERE $21::text IS NULL OR pg_current_xact_id()::text = $21::text",
        replace: "WHERE $21::text IS NULL OR $21::text <> ''",
      },
    ],
    caughtBy: [
      integration("postgres-store", "stores nothing and says so when the handler committed it before the last insert"),
    ],
  },
  {
    id: "xact-uncompared-complete",
    what: "a completion does not ask whether its transaction is still the one that began",
    edits: [
      {
        file: "sql/statements/complete.sql",
        find: "$9::text IS NULL OR pg_current_xact_id()::text = $9::text AS same",
        replace: "$9::text IS NULL OR $9::text <> '' AS same",
      },
    ],
    caughtBy: [
      integration(
        "postgres-store",
        "records no phase and no outcome outside the transaction that the phase began with",
      ),
    ],
  },
  {
    id: "lost-commit-believed",
    what: "an absent row after a lost COMMIT counts as rolled back",
    edits: [
      {
        file: "src/engine/transaction.ts",
        find: "  if (entry === null) return lost;\n",
        replace: '  if (entry === null) return done({ kind: "contention", retryAfterMs: 1_000 });\n',
      },
    ],
    caughtBy: [
      integration(
        "engine-lost-commit",
        "connection of pg is lost at the COMMIT of a transaction (V16) a COMMIT that never arrived is not called done",
      ),
    ],
  },
  {
    id: "lost-commit-repeated",
    what: "a COMMIT whose answer was lost counts as rolled back, and its transaction runs again",
    edits: [
      {
        file: "src/stores/postgres/errors.ts",
        find: '  if (state === null || NO_VERDICT.test(state)) return storeFailure("commit_unknown", error);',
        replace: '  if (state === null || NO_VERDICT.test(state)) return storeFailure("contention", error);',
      },
    ],
    caughtBy: [integration("engine-lost-commit", "connection of pg is lost at the COMMIT of a transaction (V16)")],
  },
  {
    id: "idle-unlimited",
    what: "the server does not end a transaction whose process sleeps",
    edits: [
      {
        file: "sql/statements/lock.sql",
        find: "set_config('idle_in_transaction_session_timeout', $4::text, true) AS idle_timeout",
        replace: "set_config('oncekey.idle', $4::text, true) AS idle_timeout",
      },
    ],
    caughtBy: [integration("postgres-connections", "lets the server end a transaction that idles too long")],
  },
  {
    id: "purge-unresolved",
    what: "the purge takes entries that are not resolved",
    edits: [
      {
        file: "src/stores/memory/sweep.ts",
        find: "    if (row.expiresAt === null || row.expiresAt > now || tables.locks.isLocked(key)) continue;\n    if (!isForgettable(row, now) && row.outcomeGone) continue;\n    putEntry(tables, key, isForgettable(row, now) ? null : tombstone(row));\n",
        replace:
          "    if ((row.expiresAt ?? row.createdAt) > now || tables.locks.isLocked(key)) continue;\n    if (row.expiresAt !== null && !isForgettable(row, now) && row.outcomeGone) continue;\n    putEntry(tables, key, row.expiresAt === null || isForgettable(row, now) ? null : tombstone(row));\n",
      },
    ],
    caughtBy: [
      memoryCase("a purge never removes an entry that is in progress, released or needs recovery"),
      unit("engine-phases", "purges expired outcomes, never unresolved entries"),
    ],
  },
  {
    id: "purge-unresolved-sql",
    what: "the same in PostgreSQL",
    edits: [
      {
        file: "sql/statements/purge.sql",
        find: "  WHERE expires_at IS NOT NULL\n    AND (CASE WHEN outcome_gone THEN greatest(expires_at, tombstone_until) ELSE expires_at END) <= statement_timestamp()\n",
        replace:
          "  WHERE (CASE WHEN outcome_gone THEN greatest(expires_at, tombstone_until) ELSE coalesce(expires_at, created_at) END) <= statement_timestamp()\n",
      },
    ],
    caughtBy: [
      postgresCase("a purge never removes an entry that is in progress, released or needs recovery"),
      integration("postgres-sweep", "never is what is unresolved purged"),
    ],
  },
  {
    id: "retention-from-claim",
    what: "retention counts from the claim, not from completion",
    edits: [
      {
        file: "src/stores/memory/entry-row.ts",
        find: "const expiresAt = now + completion.retentionMs;",
        replace: "const expiresAt = row.createdAt + completion.retentionMs;",
      },
    ],
    caughtBy: [memoryCase("retention counts from the completion, not from the claim")],
  },
  {
    id: "retention-from-claim-sql",
    what: "the same in PostgreSQL",
    edits: [
      {
        file: "sql/statements/complete.sql",
        find: "        clock.at + $7::float8 * interval '1 millisecond',\n",
        replace: "        entry.created_at + $7::float8 * interval '1 millisecond',\n",
      },
    ],
    caughtBy: [
      postgresCase("retention counts from the completion, not from the claim"),
      integration(
        "engine-fencing",
        "counts from completion, not from the claim: a retry right after a long run is replayed (V24)",
      ),
    ],
  },
  {
    id: "tombstone-ignored",
    what: "a very late retry runs although a tombstone stands",
    edits: [
      {
        file: "src/core/entry.ts",
        find: "  if (finished && entry.clock.expired && (isForgotten || !entry.clock.tombstoned))\n",
        replace: "  if (finished && entry.clock.expired && (isForgotten || entry.clock.expired))\n",
      },
    ],
    caughtBy: [
      unit("engine-rollout", "a late retry is refused while a tombstone stands"),
      unit("engine-schedules", "V20: a retry after the purge is refused"),
    ],
  },
  {
    id: "expired-replayed",
    what: "an outcome whose retention is over is replayed until the purge comes",
    edits: [
      {
        file: "src/core/entry.ts",
        find: '  if (finished && entry.clock.expired && (isForgotten || !entry.clock.tombstoned))\n    return { kind: "absent", expired: true };\n',
        replace: "  void isForgotten;\n",
      },
      {
        file: "src/core/entry.ts",
        find: "const gone = entry.outcomeGone || entry.clock.expired || entry.outcome === null;",
        replace: "const gone = entry.outcomeGone || entry.outcome === null;",
      },
    ],
    caughtBy: [unit("engine-rollout", "after retention a key runs anew")],
  },
  {
    id: "rejection-keeps-rows",
    what: "a refusal leaves its business rows behind",
    edits: [
      {
        file: "src/engine/settled-response.ts",
        find: "rollsBack: !returned.keepRows };",
        replace: "rollsBack: false && !returned.keepRows };",
      },
    ],
    caughtBy: [unit("engine-transaction", "stores a rejection and rolls its business rows back")],
  },
  {
    id: "asynchronous-accepted",
    what: "start() accepts asynchronous claims with captured handlers",
    edits: [{ file: "src/core/policy.ts", find: "  checkClaim(operation, of, times);\n", replace: "" }],
    caughtBy: [unit("engine-start", "asynchronous claims where one that is lost would have a second effect (V7, V8)")],
  },
  {
    id: "retention-unchecked",
    what: "start() accepts a retention shorter than the client's retry window",
    edits: [
      {
        file: "src/core/policy.ts",
        find: "  if (retentionMs < windowMs) {\n",
        replace: "  if (retentionMs < windowMs * 0) {\n",
      },
    ],
    caughtBy: [unit("engine-start", "start() refuses what would break a promise")],
  },
  {
    id: "sealed-anywhere",
    what: "sealed content leaves its owner out of the associated data: bytes open in another row",
    edits: [
      {
        file: "src/core/cipher.ts",
        find: 'createCipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_LENGTH }).setAAD(about)',
        replace:
          'createCipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_LENGTH }).setAAD(about.subarray(0, 0))',
      },
      {
        file: "src/core/cipher.ts",
        find: 'createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_LENGTH }).setAAD(about)',
        replace:
          'createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_LENGTH }).setAAD(about.subarray(0, 0))',
      },
    ],
    caughtBy: [
      unit("engine-sealed", "does not open in another entry"),
      unit("core-cipher", "does not open in another row or another column"),
    ],
  },
];
