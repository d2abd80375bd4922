import { type Canary, memoryCase, postgresCase, unit } from "../canary.ts";

const CALL = "src/engine/call.ts";
const END = "src/engine/attempt-end.ts";

/** Breaks of outside calls and of what is recorded for them. */
export const CALLS: readonly Canary[] = [
  {
    id: "intent-after-send",
    what: "the intent is written after its call was sent",
    edits: [
      {
        file: CALL,
        find: "    await openIntent(call, generation);\n    const tried = await send(call, generation, ready.value);\n",
        replace:
          "    const tried = await send(call, generation, ready.value);\n    await openIntent(call, generation);\n",
      },
    ],
    caughtBy: [unit("mutants-calls", "finds its intent committed when it is sent")],
  },
  {
    id: "find-skipped",
    what: "`find` is skipped: an open intent counts as not carried out",
    edits: [
      {
        file: CALL,
        find: '  const answer = await look(call, recover.find, generation);\n  if (answer.kind === "found") return answer;\n  if (answer.kind === "unknown") return comeBack(call, undefined, unsettledMs);\n',
        replace: "",
      },
    ],
    caughtBy: [unit("engine-giving-up", "is found, not repeated, where it had landed")],
  },
  {
    id: "none-believed-early",
    what: '"none" is believed while what was sent may still land',
    edits: [
      {
        file: CALL,
        find: "  return unsettledMs > 0 ? comeBack(call, undefined, unsettledMs) : generation;",
        replace: "  return generation;",
      },
    ],
    caughtBy: [unit("engine-calls", "does not believe `none` before the settle time")],
  },
  {
    id: "unknown-is-none",
    what: 'a look-up that cannot say counts as "none"',
    edits: [
      {
        file: CALL,
        find: '  if (answer.kind === "unknown") return comeBack(call, undefined, unsettledMs);\n',
        replace: "",
      },
    ],
    caughtBy: [unit("engine-calls", "stays unknown while the look-up throws, hangs, or cannot say")],
  },
  {
    id: "window-ignored",
    what: "a deduped call is repeated after the other side's window",
    edits: [
      {
        file: CALL,
        find: "  return ageMs + options.timeoutMs + WINDOW_MARGIN_MS <= dedupes.forMs;",
        replace: "  return ageMs + options.timeoutMs + WINDOW_MARGIN_MS <= dedupes.forMs * 1_000;",
      },
    ],
    caughtBy: [unit("engine-calls", "is not repeated once the dedupe window may be over")],
  },
  {
    id: "window-no-flight",
    what: "the window is tested without the time that a call may be on its way",
    edits: [
      {
        file: CALL,
        find: "return ageMs + options.timeoutMs + WINDOW_MARGIN_MS <= dedupes.forMs;",
        replace: "return ageMs <= dedupes.forMs && options.timeoutMs + WINDOW_MARGIN_MS > 0;",
      },
    ],
    caughtBy: [unit("engine-calls", "is not repeated once the dedupe window may be over")],
  },
  {
    id: "cancel-skipped",
    what: '"none" is believed without cancelling the old key',
    edits: [
      {
        file: CALL,
        find: "const gone = await bounded(call, generation, (args) => recover.cancel(args));",
        replace: "const gone = await bounded(call, generation, async () => {});",
      },
    ],
    caughtBy: [unit("engine-calls", "is made impossible by cancelling its key")],
  },
  {
    id: "cancel-uncommitted",
    what: "the next generation is sent before the cancelled one is written down",
    edits: [
      {
        file: CALL,
        find: '  if (!(await attempt.context.store.cancelIntent(id, fence, name, generation))) throw new LeaseLost("taken over");\n',
        replace: "  void [id, fence, name];\n",
      },
    ],
    caughtBy: [unit("mutants-calls", "of a next generation finds the one before written down as cancelled")],
  },
  {
    id: "generation-kept",
    what: "a cancelled key is used again",
    edits: [{ file: CALL, find: "  return generation + 1;", replace: "  return generation;" }],
    caughtBy: [unit("engine-calls", "is made impossible by cancelling its key")],
  },
  {
    id: "arguments-unchecked",
    what: "a resume sends other arguments under the old key",
    edits: [
      {
        file: CALL,
        find: "if (known !== undefined && !sameDigest(known.intent.requestDigest, call.digest)) {",
        replace: "if (known !== undefined && !sameDigest(known.intent.requestDigest, known.intent.requestDigest)) {",
      },
    ],
    caughtBy: [unit("engine-calls", "is caught by its digest when its arguments change")],
  },
  {
    id: "form-unchecked",
    what: "a call is settled by the rules of another form than it was sent under",
    edits: [{ file: CALL, find: "  checkRecoverForm(call, known);\n", replace: "" }],
    caughtBy: [unit("engine-recover-changed", "is not carried out twice")],
  },
  {
    id: "never-repeated",
    what: "a call that may be made at most once is sent again",
    edits: [
      {
        file: CALL,
        find: '  if (!("find" in recover) || recover.find === undefined) {\n',
        replace:
          '  if (!("find" in recover) || recover.find === undefined) {\n    if (generation > 0) return generation;\n',
      },
    ],
    caughtBy: [unit("engine-calls", "goes to needs_recovery where it may never be repeated")],
  },
  {
    id: "key-without-fingerprint",
    what: "the derived key leaves the stored fingerprint out",
    edits: [
      {
        file: "src/core/intent.ts",
        find: "const parts = [entry.id, entry.fingerprint, call, String(generation)];",
        replace: "const parts = [entry.id, call, String(generation)];",
      },
    ],
    caughtBy: [
      unit("engine-calls", "carries another key after a purge"),
      unit("core-intent", "differ from their neighbour in each single part"),
    ],
  },
  {
    id: "key-without-generation",
    what: "the derived key leaves the generation out",
    edits: [
      {
        file: "src/core/intent.ts",
        find: "const parts = [entry.id, entry.fingerprint, call, String(generation)];",
        replace: "const parts = [entry.id, entry.fingerprint, call, String(generation > 0)];",
      },
    ],
    caughtBy: [unit("core-intent", "differ from their neighbour in each single part")],
  },
  {
    id: "throw-frees-lease",
    what: "a throw gives the lease back at once although a call may still land",
    edits: [
      {
        file: END,
        find: "  await leave(attempt, Math.max(restMs, ...open.map((intent) => settlesIn(attempt, intent))), why);",
        replace: "  await leave(attempt, 0 * restMs, why);",
      },
    ],
    caughtBy: [unit("mutants-calls", "keeps everybody away until what was sent has settled")],
  },
  {
    id: "throw-deletes-entry",
    what: "a throw deletes the entry although a call was sent",
    edits: [
      {
        file: END,
        find: "  if (open.length === 0 && !hasBegun) {\n    await context.store.release(lease.id, lease.fence, false);\n    return true;\n  }\n",
        replace:
          "  if (!hasBegun || entry.attempt === 1) {\n    await context.store.release(lease.id, lease.fence, false);\n    return true;\n  }\n",
      },
    ],
    caughtBy: [unit("mutants-calls", "keeps its entry where nothing else tells of the call")],
  },
  {
    id: "release-deletes",
    what: "giving a claim back deletes the entry with its intents",
    edits: [
      {
        file: "src/stores/memory/entry-row.ts",
        find: "  return isUntold ? null :",
        replace: "  return isUntold || row !== null ? null :",
      },
    ],
    caughtBy: [memoryCase("a release with an intent keeps the row and the intent")],
  },
  {
    id: "release-deletes-sql",
    what: "the same in PostgreSQL: a first claim that needed recovery is deleted",
    edits: [
      {
        file: "sql/statements/release_fresh.sql",
        find: "  AND e.attempt = 1\n  AND e.recovery_point IS NULL\n  AND e.reason IS NULL\n",
        replace: "",
      },
    ],
    caughtBy: [postgresCase("a release after the entry needed recovery keeps the row")],
  },
  {
    id: "failure-swallowed",
    what: "code that catches the failure of a sent call may answer as if it had never been sent",
    edits: [
      {
        file: "src/engine/attempt.ts",
        find: "  if (result === null && !mayHaveLanded) return error;",
        replace: "  if (result === null) return error;",
      },
    ],
    caughtBy: [unit("engine-changed-code", "is not turned into a refusal by code that catches its error")],
  },
  {
    id: "records-forgotten",
    what: "a resume runs committed phases again",
    edits: [{ file: "src/engine/attempt.ts", find: "    records: [...journal.records],", replace: "    records: []," }],
    caughtBy: [unit("engine-phases", "resumes after a throw from its last recovery point")],
  },
  {
    id: "records-unmatched",
    what: "a resume takes the record at its position for its own, whatever it is of",
    edits: [
      {
        file: "src/engine/attempt.ts",
        find: "  if (record.kind === kind && record.name === name) return;\n",
        replace: "  if (record.kind === kind || record.name !== name) return;\n",
      },
    ],
    caughtBy: [unit("engine-phases", "sends the code whose phases no longer fit to needs_recovery")],
  },
];
