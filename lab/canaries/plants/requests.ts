import { type Canary, integration, suite, unit } from "../canary.ts";

const ADMISSION = "src/http/admission.ts";
const FINGERPRINT = "src/core/fingerprint.ts";
const KEY = "src/core/key.ts";

/** Breaks of whose key it is, and of what a retry must match. */
export const REQUESTS: readonly Canary[] = [
  {
    id: "compared-after-wait",
    what: 'the fingerprint is compared after the wait: while the first request runs, another payload is told "in progress"',
    edits: [
      {
        file: "src/core/entry.ts",
        find: '  if (match === "different") return { kind: "mismatch", state: entry.state };\n',
        replace:
          '  if (match === "different" && entry.clock.claimableInMs <= 0) return { kind: "mismatch", state: entry.state };\n',
      },
    ],
    caughtBy: [
      integration(
        "engine-processes",
        "a phases operation raced by 16 processes refuses another payload while the first still runs",
      ),
    ],
  },
  {
    id: "mismatch-runs",
    what: "another payload goes on with what the first one left",
    edits: [
      {
        file: "src/core/entry.ts",
        find: '  if (match === "different") return { kind: "mismatch", state: entry.state };\n',
        replace: '  if (match === "different" && finished) return { kind: "mismatch", state: entry.state };\n',
      },
    ],
    caughtBy: [unit("engine-phases", "refuses another payload after a throw, at every recovery point (V15)")],
  },
  {
    id: "mismatch-replayed",
    what: "every request with a known key gets the stored answer",
    edits: [
      {
        file: FINGERPRINT,
        find: 'return sameDigest(comparedPart(entry.fingerprint), asked) ? "equal" : "different";',
        replace: 'return asked.length > 0 ? "equal" : "different";',
      },
    ],
    caughtBy: [
      unit("engine-transaction", "refuses another payload under the key, while the first runs and afterwards"),
    ],
  },
  {
    id: "shared-across-payloads",
    what: "requests of one process share a run by their key alone",
    edits: [
      {
        file: "src/engine/execute.ts",
        find: 'return Buffer.concat([identity.id, digest]).toString("base64");',
        replace: 'return Buffer.concat([identity.id, digest.subarray(0, 0)]).toString("base64");',
      },
    ],
    caughtBy: [
      unit("engine-transaction", "refuses another payload under the key, while the first runs and afterwards"),
    ],
  },
  {
    id: "newer-form-runs",
    what: "a fingerprint of a newer version is compared all the same",
    edits: [
      {
        file: FINGERPRINT,
        find: '  if (form === null || !proof.ring.understands(form)) return "version_unknown";\n',
        replace: '  if (form === null) return "version_unknown";\n',
      },
    ],
    caughtBy: [unit("engine-rollout", "compares under the secret an entry was made with")],
  },
  {
    id: "tenant-left-out",
    what: "the identity leaves the tenant out",
    edits: [{ file: "src/core/identity.ts", find: "[scope.tenant, scope.client,", replace: '["", scope.client,' }],
    caughtBy: [
      unit("engine-start", "keeps tenants, clients and operations apart"),
      suite("adapters", ": express", "keeps one key of other tenants, clients and operations apart"),
    ],
  },
  {
    id: "client-left-out",
    what: "the identity leaves the client out",
    edits: [{ file: "src/core/identity.ts", find: "[scope.tenant, scope.client,", replace: "[scope.tenant, null," }],
    caughtBy: [unit("engine-start", "keeps tenants, clients and operations apart")],
  },
  {
    id: "operation-left-out",
    what: "the identity leaves the operation out",
    edits: [
      {
        file: "src/core/identity.ts",
        find: 'keySpace === "account" ? null : operation, key];',
        replace: 'keySpace === "account" || operation !== "" ? null : operation, key];',
      },
    ],
    caughtBy: [unit("engine-start", "keeps tenants, clients and operations apart")],
  },
  {
    id: "parts-unframed",
    what: "the parts of a digest are joined without their lengths",
    edits: [
      {
        file: "src/core/framing.ts",
        find: `  out[at] = part === null ? 0 : 1;
  if (part === null) return at + 1;
  const start = at + PRESENT;
`,
        replace: `  if (part === null) return at;
  if (typeof part === "string") return at + out.write(part, at);
  out.set(part, at);
  if (at >= 0) return at + part.length;
  const start = at;
`,
      },
    ],
    caughtBy: [unit("mutants-core", "tells where one part ends and the next begins, however the same bytes are cut")],
  },
  {
    id: "replay-unauthorised",
    what: "a replay is not authorised: `authorize` is asked at the first sight of a key only",
    edits: [
      {
        file: ADMISSION,
        find: "  const scope = checkScope(await bound.options.scope(exchange.native));\n  const refusal = await refused(bound, exchange.native, asking.asked);\n",
        replace: `  const scope = checkScope(await bound.options.scope(exchange.native));
  const known: Set<string> = ((globalThis as { known?: Set<string> }).known ??= new Set());
  const refusal = known.has(JSON.stringify([scope, key])) ? null : await refused(bound, exchange.native, asking.asked);
  if (refusal === null) known.add(JSON.stringify([scope, key]));
`,
      },
    ],
    caughtBy: [
      unit("engine-misuse", "answers 403 where authorize refuses, replays included"),
      suite("adapters", ": express", "asks authorize on every attempt, replays included"),
    ],
  },
  {
    id: "missing-key-unasked",
    what: "leaving the key out is a way past the binding's own check",
    edits: [
      {
        file: ADMISSION,
        find: `    const refusal = await refused(bound, exchange.native, asking.asked);
    return refusal === null ? { kind: "pass" } : { kind: "answer", answer: refusal };
`,
        replace: '    return { kind: "pass" };\n',
      },
    ],
    caughtBy: [unit("http-gate", "asks authorize of a capture without a key too")],
  },
  {
    id: "empty-key-unprotected",
    what: "an empty key counts as none where none is required",
    edits: [
      {
        file: KEY,
        find: '  if (key.trim() === "") return invalid("it is empty");\n',
        replace: '  if (key.trim() === "") return { kind: "missing" };\n',
      },
    ],
    caughtBy: [unit("core-key", "is missing without a line, and malformed, never missing, when empty")],
  },
  {
    id: "comma-accepted",
    what: "a comma may stand in a key: two joined lines become one key",
    edits: [
      {
        file: KEY,
        find: '  if (key.includes(",")) return invalid("it holds a comma, which would be mistaken for two keys");\n',
        replace: "",
      },
    ],
    caughtBy: [unit("core-key", "is refused with a comma in any form")],
  },
  {
    id: "double-numbers",
    what: "canonical numbers pass through a double",
    edits: [
      {
        file: "src/core/json/canonical.ts",
        find: "      return decimalText(node);\n",
        replace: "      return String(Number(decimalText(node)));\n",
      },
    ],
    caughtBy: [unit("core-json", "keeps apart integers of any size that differ in one digit")],
  },
  {
    id: "members-repeated",
    what: "a repeated member name is accepted: the last one counts",
    edits: [
      {
        file: "src/core/json/parse.ts",
        find: '    if (members.has(name)) refuse(start, "a member name is repeated");\n',
        replace: "    void start;\n",
      },
    ],
    caughtBy: [unit("core-json", "refuses a repeated member name")],
  },
  {
    id: "unsafe-numbers-captured",
    what: "a captured handler is given numbers that its parser has spoiled",
    edits: [
      {
        file: "src/http/body.ts",
        find: '  if (rules.ordinaryNumbers && form.kind === "json" && !form.ordinaryNumbers) checkNumbers(form);\n',
        replace: "  void checkNumbers;\n",
      },
    ],
    caughtBy: [suite("adapters", ": express", "refuses numbers that an existing handler would see changed")],
  },
  {
    id: "mounted-url",
    what: "the target is taken from the URL that a mounted router sees",
    edits: [
      { file: "src/adapters/express.ts", find: "    target: req.originalUrl,\n", replace: "    target: req.url,\n" },
    ],
    caughtBy: [
      suite(
        "adapters",
        ": express",
        "compares the whole original path and the query, also behind routers of their own",
      ),
    ],
  },
  {
    id: "method-left-out",
    what: "the fingerprint leaves the method out",
    edits: [
      {
        file: "src/core/request-form.ts",
        find: '    "wire",\n    form.method,\n',
        replace: '    "wire",\n    "POST",\n',
      },
    ],
    caughtBy: [unit("core-request-form", "the wire form of a request differs for")],
  },
  {
    id: "cookies-replayed",
    what: "a route may declare cookies as headers that are replayed",
    edits: [{ file: "src/core/outcome.ts", find: '  "set-cookie",\n', replace: "" }],
    caughtBy: [unit("engine-start", "names, versions and replay headers that cannot be")],
  },
  {
    id: "handler-twice",
    what: "one request runs its captured handler a second time when the store is lost meanwhile",
    edits: [
      {
        file: "src/http/gate.ts",
        find: "    if (ran) return Promise.reject(ranAlready());\n",
        replace: "    void ranAlready;\n",
      },
    ],
    caughtBy: [unit("http-gate", "comes from one run of the handler, even if the engine turns to it again")],
  },
  {
    id: "validated-first",
    what: "a known key meets validation before its entry",
    edits: [
      {
        file: "src/engine/execute.ts",
        find: '  const match = entry === null ? "equal" : await matchRequest(entry, request.proof);\n  const decision = decide(entry, match, operation);\n  switch',
        replace:
          '  await request.input();\n  const match = entry === null ? "equal" : await matchRequest(entry, request.proof);\n  const decision = decide(entry, match, operation);\n  switch',
      },
    ],
    caughtBy: [unit("mutants-rollout", "is replayed, though its input would be refused as a new one")],
  },
  {
    id: "late-retry-runs",
    what: "a retry that says it is older than the retention runs",
    edits: [
      {
        file: "src/engine/execute.ts",
        find: '      if (await isTooLate(context, operation, request)) return done({ kind: "too_late" });\n',
        replace: "      void isTooLate;\n",
      },
    ],
    caughtBy: [unit("late-retries", "is refused once it is forgotten")],
  },
];
