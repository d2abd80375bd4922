import { type Canary, memoryCase, postgresCase, unit } from "../canary.ts";

const RECONCILE = "src/engine/reconcile.ts";

/** Breaks of what is known in the end: captured runs, reconciling, operators. */
export const OUTCOMES: readonly Canary[] = [
  {
    id: "store-after-send",
    what: "a captured answer goes out before its outcome is stored",
    edits: [
      {
        file: "src/engine/capture.ts",
        find: "  return done(await settle(context, operation, lease, first.outcome));",
        replace:
          '  settle(context, operation, lease, first.outcome).catch(() => {});\n  return done({ kind: "completed", outcome: first.outcome });',
      },
    ],
    caughtBy: [unit("http-capture-ends", "is sent after it is stored, which is after its effect")],
  },
  {
    id: "failure-is-final",
    what: "a captured handler's 5xx is stored as its final answer",
    edits: [{ file: "src/core/outcome-policy.ts", find: '  if (status >= 500) return "unknown";\n', replace: "" }],
    caughtBy: [unit("engine-capture", "takes a 5xx and a throw for unknown, never for failed (V13)")],
  },
  {
    id: "crash-runs-again",
    what: "a captured run whose owner is gone runs again",
    edits: [
      {
        file: "src/engine/capture.ts",
        find: '.afterCrash === "runAgain") {\n    return claimCapture',
        replace: '.afterCrash !== "never") {\n    return claimCapture',
      },
    ],
    caughtBy: [unit("engine-capture", "needs recovery after its process died, and never runs a second time (Q2)")],
  },
  {
    id: "not-done-believed",
    what: '"not done" is believed while an old attempt may still be at work',
    edits: [
      {
        file: RECONCILE,
        find: "        if (unsettledMs > 0) return await stillUnknown(context, operation, owned, NOT_YET, unsettledMs);\n",
        replace: "",
      },
    ],
    caughtBy: [unit("sweeper-captures", "does not believe an early `not done` after an answer")],
  },
  {
    id: "asked-at-once",
    what: "a run that lost its owner is asked about at once",
    edits: [
      {
        file: RECONCILE,
        find: 'return ANSWERED.includes(entry.reason ?? "") || settlesIn(context, operation, entry) <= 0;',
        replace: "return true;",
      },
    ],
    caughtBy: [unit("engine-capture", "is reconciled only when no old attempt can be at work any more (V11, V12)")],
  },
  {
    id: "begun-after-lease",
    what: "a captured handler begins although its lease ran out while it was claimed",
    edits: [{ file: "src/engine/capture.ts", find: "  await checkNotBegun(context, lease);\n", replace: "" }],
    caughtBy: [unit("engine-lost-lease", "does not begin a captured handler")],
  },
  {
    id: "blink-is-unknown",
    what: "one blink of the database leaves a known outcome unrecorded",
    edits: [{ file: "src/engine/capture.ts", find: "const STORE_TRIES = 10;", replace: "const STORE_TRIES = 1;" }],
    caughtBy: [unit("engine-capture", "is recorded although the database blinks")],
  },
  {
    id: "operator-early",
    what: "an operator decides while something sent may still land",
    edits: [
      {
        file: "src/stores/memory/resolve.ts",
        find: '    if (!isSettled && !resolution.force) return keep({ kind: "unsettled", openIntents, settlesInMs });\n',
        replace: "",
      },
    ],
    caughtBy: [
      unit("engine-schedules", "V14: an operator cannot call a charge failed"),
      memoryCase("while a call may still land its entry is not resolved"),
    ],
  },
  {
    id: "operator-early-sql",
    what: "the same in PostgreSQL",
    edits: [
      {
        file: "src/stores/postgres/resolve.ts",
        find: '  if (!isSettled && !resolution.force) return { kind: "unsettled", openIntents, settlesInMs };\n',
        replace: "",
      },
    ],
    caughtBy: [postgresCase("while a call may still land its entry is not resolved")],
  },
  {
    id: "operator-beside-owner",
    what: "an operator decides while the owner is at work",
    edits: [
      {
        file: "src/stores/memory/resolve.ts",
        find: '    if (row.state === "in_progress" && claimableInMs > 0) return keep({ kind: "running", claimableInMs });\n',
        replace: "",
      },
    ],
    caughtBy: [memoryCase("an identity without entry, a finished one and one at work are not resolved")],
  },
];
