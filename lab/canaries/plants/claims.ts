import { type Canary, integration, memoryCase, postgresCase, unit } from "../canary.ts";

const ENTRY = "src/core/entry.ts";
const TRANSACTION = "src/engine/transaction.ts";

/** Breaks of who may run: claim, takeover, the locks of a transaction. */
export const CLAIMS: readonly Canary[] = [
  {
    id: "claim-in-business",
    what: "the claim is part of the business transaction: nobody sees it before the outcome",
    edits: [
      {
        file: "src/stores/memory/index.ts",
        find: `claim: (entry, leaseMs) =>
      commitStep(tables, entry.id, steps.claimStep(copied(entry), leaseMs), { onlyInserts: true }),`,
        replace: `async claim(entry, leaseMs) {
      const change = steps.claimStep(copied(entry), leaseMs)(tables.entries.get(entryKey(entry.id)) ?? null, tables.now());
      if (change.kind === "write") UNSEEN.set(entryKey(entry.id), change.row);
      return copied(change.answer);
    },`,
      },
      {
        file: "src/stores/memory/index.ts",
        find: "complete: (id, fence, completion) => commitStep(tables, id, steps.completeStep(copied(fence), copied(completion))),",
        replace: `complete: (id, fence, completion) =>
      commitStep(tables, id, (row, now) =>
        steps.completeStep(copied(fence), copied(completion))((row ?? UNSEEN.get(entryKey(id)) ?? null) as never, now)),`,
      },
      {
        file: "src/stores/memory/index.ts",
        find: "type Statements<Name extends keyof Store> =",
        replace: "const UNSEEN = new Map<string, unknown>();\n\ntype Statements<Name extends keyof Store> =",
      },
    ],
    caughtBy: [unit("engine-capture", "needs recovery after its process died, and never runs a second time (Q2)")],
  },
  {
    id: "claim-do-update",
    what: "the claim is INSERT … ON CONFLICT DO UPDATE … WHERE the lease has lapsed",
    edits: [
      {
        file: "sql/statements/claim.sql",
        find: "ON CONFLICT (id) DO NOTHING",
        replace: `ON CONFLICT (id) DO UPDATE SET fence = excluded.fence, lease_until = excluded.lease_until
  WHERE entry.state = 'in_progress' AND entry.lease_until <= clock_timestamp()`,
      },
    ],
    caughtBy: [integration("mutants-store", "(postgres) gives a claim nothing of an entry whose lease has lapsed")],
  },
  {
    id: "claim-asynchronous",
    what: "the claim's commit does not wait for the disk where the database's default is asynchronous",
    edits: [
      {
        file: "sql/statements/claim.sql",
        find: "WHEN 'off' THEN set_config('synchronous_commit', 'on', true)",
        replace: "WHEN 'off' THEN 'off'",
      },
    ],
    caughtBy: [integration("postgres-connections", "remembers a claim and a finished entry through its crash")],
  },
  {
    id: "claim-resent-unknown",
    what: "a claim whose answer was lost is not known again by its fence",
    edits: [
      {
        file: "src/stores/postgres/store.ts",
        find: "return (await insertClaim(entry, leaseMs, commit)) ?? (await ownRow(entry.id, entry.fence));",
        replace: "return insertClaim(entry, leaseMs, commit);",
      },
    ],
    caughtBy: [postgresCase("a claim sent again with the same fence is the same claim")],
  },
  {
    id: "group-won-by-id",
    what: "members of a group of claims with one id are all told that the row is theirs",
    edits: [
      {
        file: "src/stores/postgres/group-statements.ts",
        find: 'return row !== undefined && sameDigest(bytes(row, "fence"), entry.fence) ? storedEntry(row) : null;',
        replace: 'return row !== undefined && sameDigest(bytes(row, "id"), entry.id) ? storedEntry(row) : null;',
      },
    ],
    caughtBy: [integration("postgres-groups", "of one identity have one winner, the first")],
  },
  {
    id: "group-unfenced",
    what: "a group of completions completes entries whatever fence its members have",
    edits: [
      {
        file: "sql/statements/complete_group.sql",
        find: "    FROM oncekey.entry\n    WHERE id = given_id AND fence = given_fence AND",
        replace: "    FROM oncekey.entry\n    WHERE id = given_id AND given_fence IS NOT NULL AND",
      },
      {
        file: "sql/statements/complete_group.sql",
        find: "FROM held\nWHERE id = given_id AND fence = given_fence AND",
        replace: "FROM held\nWHERE id = given_id AND",
      },
    ],
    caughtBy: [integration("postgres-groups", "a fence that owns nothing is told so")],
  },
  {
    id: "group-unordered",
    what: "groups of claims insert their rows in the order in which they were asked for",
    edits: [
      {
        file: "sql/statements/claim_group.sql",
        find: "ORDER BY decode(id_hex, 'hex'), place",
        replace: "ORDER BY place",
      },
    ],
    caughtBy: [integration("postgres-groups", "never wait for each other in a circle")],
  },
  {
    id: "group-asynchronous",
    what: "a group of claims does not wait for the disk where the database's default is asynchronous",
    edits: [
      {
        file: "sql/statements/claim_group.sql",
        find: "WHEN 'off' THEN set_config('synchronous_commit', 'on', true)",
        replace: "WHEN 'off' THEN 'off'",
      },
    ],
    caughtBy: [integration("postgres-groups", "is synchronous where commits are asynchronous by default")],
  },
  {
    id: "group-resent",
    what: "members of a group whose fate nobody knows are asked again by themselves",
    edits: [
      {
        file: "src/stores/postgres/group.ts",
        find: "if (work.isUndone(error)) settle",
        replace: "if (work.isUndone(error) || error !== null) settle",
      },
    ],
    caughtBy: [integration("postgres-groups", "are all told that nobody knows where the connection is lost")],
  },
  {
    id: "kind-ignored",
    what: "code of another run kind takes an entry over",
    edits: [
      {
        file: ENTRY,
        find: "  if (entry.runKind !== taker.runKind) return unknown(",
        replace: "  if (entry.runKind !== taker.runKind && taker.version < 0) return unknown(",
      },
    ],
    caughtBy: [integration("engine-fencing", "another run kind under the same operation name")],
  },
  {
    id: "version-ignored",
    what: "old code takes over what newer code left",
    edits: [
      {
        file: ENTRY,
        find: '  if (entry.operationVersion > taker.version) return unknown(entry, "left by a newer version of the operation");\n',
        replace: "",
      },
    ],
    caughtBy: [
      unit("engine-phases", "leaves entries of a newer version alone during a rollout (Q3)"),
      unit("sweeper-captures", "is left alone by a sweeper and a retry of older code (Q3)"),
    ],
  },
  {
    id: "takeover-uncompared",
    what: "a takeover compares nothing with what it saw: two of them both win",
    edits: [
      {
        file: "sql/statements/take_over.sql",
        find: "  AND fence = $2::bytea\n  AND attempt = $3::int\n  AND state = $4::text\n",
        replace: "  AND $2::bytea IS NOT NULL AND $3::int IS NOT NULL AND $4::text IS NOT NULL\n",
      },
    ],
    caughtBy: [postgresCase("a taker that saw another fence or attempt gets nothing")],
  },
  {
    id: "takeover-uncompared-memory",
    what: "the same in the memory store",
    edits: [
      {
        file: "src/stores/memory/entry-row.ts",
        find: "  if (row === null || row.state !== seen.state || row.attempt !== seen.attempt) return false;\n  if (!sameDigest(row.fence, seen.fence)) return false;\n",
        replace: "  if (row === null) return false;\n",
      },
    ],
    caughtBy: [memoryCase("a taker that saw another fence or attempt gets nothing")],
  },
  {
    id: "takeover-early",
    what: "an entry is taken over while its owner's lease runs",
    edits: [
      {
        file: "sql/statements/take_over.sql",
        find: "  AND (state <> 'in_progress' OR greatest(lease_until, not_before) <= clock_timestamp())\n",
        replace: "",
      },
    ],
    caughtBy: [postgresCase("an entry whose lease has not lapsed is not taken over")],
  },
  {
    id: "takeover-early-memory",
    what: "the same in the memory store and in the rule before it",
    edits: [
      {
        file: "src/stores/memory/entry-row.ts",
        find: 'return row.state !== "in_progress" || claimableAt(row) <= now;',
        replace: "return true;",
      },
      {
        file: ENTRY,
        find: "  if (entry.clock.claimableInMs > 0)\n",
        replace: "  if (entry.clock.claimableInMs > Infinity)\n",
      },
    ],
    caughtBy: [
      memoryCase("an entry whose lease has not lapsed is not taken over"),
      unit("engine-calls", "keeps the key busy after a time-out, until what was sent has settled (V1)"),
    ],
  },
  {
    id: "takeover-same-fence",
    what: "the sweeper takes an entry over and leaves it the old owner's fence",
    edits: [
      {
        file: "sql/statements/take_due.sql",
        find: "fence = uuid_send(gen_random_uuid())",
        replace: "fence = from_fence",
      },
    ],
    caughtBy: [
      postgresCase(
        "what was taken is not taken again before its lease lapses, and its owner before can commit nothing more",
      ),
    ],
  },
  {
    id: "sweep-alive",
    what: "the sweeper takes entries whose owner is alive",
    edits: [
      {
        file: "src/stores/memory/sweep.ts",
        find: "(dueAt(row) ?? Infinity) <= now && claimableAt(row) <= now",
        replace: '(row.state === "in_progress" || (dueAt(row) ?? Infinity) <= now)',
      },
    ],
    caughtBy: [memoryCase("finished, released and suspended entries")],
  },
  {
    id: "lock-unheeded",
    what: "a transaction runs although another one holds the identity",
    edits: [
      {
        file: TRANSACTION,
        find: '  if (lock === "busy") throw new LeaveTransaction(() => ({ kind: "wait", retryAfterMs: 1_000 }));\n  if (lock === "mismatch") throw new LeaveTransaction(() => ({ kind: "suspect" }));\n',
        replace: "",
      },
    ],
    caughtBy: [
      integration(
        "engine-processes",
        "transaction operation raced by 16 processes refuses another payload while the first still runs",
      ),
    ],
  },
  {
    id: "index-unheeded",
    what: "the last insert of a transaction replaces an entry that somebody else finished first",
    edits: [
      {
        file: "src/stores/memory/session.ts",
        find: "    if (row !== null) {\n",
        replace: "    if (row !== null && row.completedAt === null) {\n",
      },
    ],
    caughtBy: [memoryCase("a second finished entry of one identity is a conflict")],
  },
  {
    id: "input-unstored-poison",
    what: "a run that kills its process is resumed for ever",
    edits: [
      {
        file: "src/engine/phases.ts",
        find: '  if (from === "in_progress" && entry.attempt > maxAttemptsOf(operation)) return restPoisoned(context, owned);\n',
        replace: "",
      },
    ],
    caughtBy: [unit("engine-giving-up", "is marked before it is run once more than its attempts")],
  },
];
