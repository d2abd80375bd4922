import { type Canary, integration, memoryCase, postgresCase, unit } from "../canary.ts";

const ROW = "src/stores/memory/entry-row.ts";
const LEASE = "src/engine/lease.ts";

/** Statements with a fence, each with the case that misses it. */
const UNTESTED: readonly (readonly [statement: string, name: string])[] = [
  ["complete", "a completion by a stale fence matches nothing and changes nothing"],
  ["record_phase", "a worker that lost its entry can neither enter a phase nor record one"],
  ["renew", "a renewal by a stale fence, or of an entry that is not in progress, matches nothing"],
  ["open_intent", "a worker that lost its entry can neither open, cancel nor settle an intent"],
  ["owns", "a fence that was replaced, released or has finished owns nothing"],
  ["record_call", "a worker that lost its entry can neither open, cancel nor settle an intent"],
  ["cancel_intent", "a worker that lost its entry can neither open, cancel nor settle an intent"],
  ["suspend", "a suspension by a fence that does not own the entry matches nothing"],
];

/** Breaks of ownership: the fence, the lease, the deadline. */
export const FENCES: readonly Canary[] = [
  {
    id: "fence-untested",
    what: "no fence test: whoever once owned the entry may end it",
    edits: [
      {
        file: ROW,
        find: `    row !== null && (row.state === "in_progress" || row.state === "needs_recovery") && sameDigest(row.fence, fence)
`,
        replace: `    row !== null && (row.state === "in_progress" || row.state === "needs_recovery") && fence.length > 0
`,
      },
    ],
    caughtBy: [memoryCase("a completion by a stale fence matches nothing")],
  },
  {
    id: "fence-untested-owned",
    what: "no fence test where a running entry is written to",
    edits: [
      {
        file: ROW,
        find: 'return row !== null && row.state === "in_progress" && sameDigest(row.fence, fence);',
        replace: 'return row !== null && row.state === "in_progress" && fence.length > 0;',
      },
    ],
    caughtBy: [
      memoryCase("a renewal by a stale fence"),
      memoryCase("a worker that lost its entry can neither enter a phase nor record one"),
    ],
  },
  ...UNTESTED.map(
    ([statement, name]): Canary => ({
      id: `fence-untested-${statement}`,
      what: `no fence test in ${statement}.sql`,
      edits: [
        {
          file: `sql/statements/${statement}.sql`,
          find: "id = $1::bytea AND fence = $2::bytea AND",
          replace: "id = $1::bytea AND $2::bytea IS NOT NULL AND",
        },
      ],
      caughtBy: [postgresCase(name)],
    }),
  ),
  {
    id: "fence-counter",
    what: "the fence is a counter: an entry that is claimed anew gets a fence that was given out before",
    edits: [
      {
        file: "src/engine/context.ts",
        find: "    fence: random.bytes(FENCE_LENGTH),",
        replace: "    fence: new Uint8Array(FENCE_LENGTH).fill(1),",
      },
    ],
    caughtBy: [unit("mutants-fences", "a claim that a database crash has lost is owned by nobody")],
  },
  {
    id: "fence-counter-async",
    what: "the fence is a counter, and the claim's commit is asynchronous",
    edits: [
      {
        file: "src/engine/context.ts",
        find: "    fence: random.bytes(FENCE_LENGTH),",
        replace: "    fence: new Uint8Array(FENCE_LENGTH).fill(1),",
      },
      {
        file: "sql/statements/claim.sql",
        find: "WHEN 'off' THEN set_config('synchronous_commit', 'on', true)",
        replace: "WHEN 'off' THEN 'off'",
      },
    ],
    caughtBy: [
      unit("mutants-fences", "a claim that a database crash has lost is owned by nobody"),
      integration("postgres-connections", "remembers a claim and a finished entry through its crash"),
    ],
  },
  {
    id: "fence-unseen-complete",
    what: "COMMIT is sent although the fenced completion matched no row",
    edits: [
      {
        file: "src/engine/complete.ts",
        find: '      if (!kept) throw new LeaseLost("another attempt took over");\n',
        replace: "      void kept;\n",
      },
    ],
    caughtBy: [integration("engine-fencing", "refuses an owner that slept at complete:before")],
  },
  {
    id: "fence-unseen-phase",
    what: "COMMIT is sent although the fenced record of a phase matched no row",
    edits: [
      {
        file: "src/engine/phases.ts",
        find: `kind: "phase", name, value });
        if (!kept) throw new LeaseLost("another attempt took over");
`,
        replace: `kind: "phase", name, value });
        void kept;
`,
      },
    ],
    caughtBy: [integration("engine-fencing", "refuses an owner that slept at record_phase:placed:before")],
  },
  {
    id: "fence-unseen-call",
    what: "an operation goes on although the record of its call matched no row",
    edits: [
      {
        file: "src/engine/phases.ts",
        find: `kind: "call", name, value });
      if (!kept) throw new LeaseLost("another attempt took over");
`,
        replace: `kind: "call", name, value });
      void kept;
`,
      },
    ],
    caughtBy: [unit("mutants-zombies", "does not go on behind a call whose result the store refuses")],
  },
  {
    id: "fence-unseen-intent",
    what: "a call is sent although its fenced intent matched no row",
    edits: [
      {
        file: "src/engine/call.ts",
        find: '  if (intent === null) throw new LeaseLost("another attempt took over");\n',
        replace: "  if (intent === null) return;\n",
      },
    ],
    caughtBy: [unit("mutants-zombies", "sends no call whose intent the store refuses")],
  },
  {
    id: "mark-takes-fence",
    what: "marking an entry as unknown takes its slow owner's fence away",
    edits: [
      {
        file: "sql/statements/mark_unknown.sql",
        find: "  state = 'needs_recovery',\n",
        replace: "  state = 'needs_recovery', fence = uuid_send(gen_random_uuid()),\n",
      },
    ],
    caughtBy: [integration("mutants-store", "(postgres) takes the completion of a slow owner")],
  },
  {
    id: "renewal-unheeded",
    what: "a renewal that matches no row does not stop the owner",
    edits: [{ file: LEASE, find: '    if (kept === false) return lose("another attempt took over");\n', replace: "" }],
    caughtBy: [unit("mutants-lease", "is lost at once where a renewal matches no row")],
  },
  {
    id: "renewal-hasty",
    what: "a renewal that fails loses the lease at once: one blink of the database ends every run",
    edits: [
      {
        file: LEASE,
        find: '    if (kept === false) return lose("another attempt took over");\n',
        replace: '    if (!kept) return lose("another attempt took over");\n',
      },
    ],
    caughtBy: [unit("engine-phases", "survives a database that blinks during renewals")],
  },
  {
    id: "renewal-endless",
    what: "a hung handler is renewed for ever",
    edits: [
      {
        file: LEASE,
        find: "const endAtMs = terms.claimSentAtMs + terms.maxDurationMs;",
        replace: "const endAtMs = Infinity;",
      },
    ],
    caughtBy: [unit("engine-phases", "ends a hung operation at maxDurationMs")],
  },
  {
    id: "renewal-late-count",
    what: "the local deadline counts from after a renewal's answer, not from before it was sent",
    edits: [
      {
        file: LEASE,
        find: "if (kept) deadlineAtMs = Math.min(sentAtMs + renewedMs - margin, endAtMs);",
        replace: "if (kept) deadlineAtMs = Math.min(clock.monotonicMs() + renewedMs - margin, endAtMs);",
      },
    ],
    caughtBy: [unit("mutants-lease", "counts its deadline from before the last good renewal was sent")],
  },
  {
    id: "deadline-untested",
    what: "the deadline is left to its timer and never tested: a paused process goes on when it wakes",
    edits: [
      {
        file: LEASE,
        find: '    if (!controller.signal.aborted && clock.monotonicMs() >= deadlineAtMs) lose("its time ran out");\n    controller',
        replace: "    controller",
      },
    ],
    caughtBy: [
      unit("engine-lost-lease", "does not begin a captured handler"),
      unit("mutants-calls", "is not sent where its process slept"),
    ],
  },
  {
    id: "deadline-untested-send",
    what: "the deadline is not tested directly before an outside call is sent",
    edits: [
      {
        file: "src/engine/call-tries.ts",
        find: "  attempt.lease.check();\n  attempt.sent = true;\n",
        replace: "  attempt.sent = true;\n",
      },
    ],
    caughtBy: [unit("mutants-calls", "is not sent where its process slept")],
  },
  {
    id: "owned-unasked",
    what: "assertOwned asks the local clock only, not the entry's row",
    edits: [
      {
        file: "src/engine/owned-attempt.ts",
        find: '  if (!(await context.store.owns(tx, lease.id, lease.fence))) throw new LeaseLost("another attempt took over");\n',
        replace: "  void [tx, context];\n",
      },
    ],
    caughtBy: [integration("engine-fencing", "reaches a captured handler's own transaction where it asks")],
  },
  {
    id: "decision-late",
    what: "an operator's decision counts whatever was attempted since the operator looked",
    edits: [
      {
        file: "src/stores/memory/resolve.ts",
        find: "resolution.attempt !== null && resolution.attempt !== row.attempt",
        replace: "resolution.attempt === -1",
      },
    ],
    caughtBy: [
      unit("worlds-regressions", "an operator's decision counts only for the attempt that the operator saw"),
      memoryCase("a decision about an older attempt changes nothing"),
    ],
  },
  {
    id: "decision-late-postgres",
    what: "the same on PostgreSQL",
    edits: [
      {
        file: "src/stores/postgres/resolve.ts",
        find: "resolution.attempt !== null && resolution.attempt !== attempt",
        replace: "resolution.attempt === -1",
      },
    ],
    caughtBy: [postgresCase("a decision about an older attempt changes nothing")],
  },
];
