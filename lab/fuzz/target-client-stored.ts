import { headersFor } from "../../src/client/attempt.ts";
import { fromBase64, toBase64 } from "../../src/client/bytes.ts";
import type { Settings } from "../../src/client/settings.ts";
import { parseStored } from "../../src/client/stored-form.ts";
import type { StoredSubmission } from "../../src/client/submission.ts";
import { storedResult } from "../../src/client/verdict.ts";
import { Finding, laterOutcomeOf, MARKER, must, outcomeOf } from "./finding.ts";
import { bytesOfAll, type FuzzTarget, repeated, type Verdict } from "./target.ts";

const REFUSES = ["oncekey_store_broken"];
const NAME = "order-1";
const record: StoredSubmission = {
  form: 1,
  name: NAME,
  key: "9b0c1a5e-3f57-4c1e-8a53-0d8f5b6a7c11",
  request: {
    method: "POST",
    url: "https://api.example.test/v1/orders",
    headers: [["content-type", "application/json"]],
    bodyBase64: toBase64(Buffer.from(`{"note":"${MARKER}"}`)),
    keyHeader: "idempotency-key",
  },
  ...{ createdAt: 1_790_000_000_000, firstSentAt: 1_790_000_000_500, attempts: 1, spentMs: 10 },
  ...{ spentAt: 1_790_000_000_600, retentionMs: 86_400_000, settled: null },
};
const settled: StoredSubmission = {
  ...record,
  settled: { kind: "succeeded", at: 1, replayed: true, status: 201, headers: [["a", "b"]], bodyBase64: "e30=" },
};
/** What is used of the settings here. */
const settings = { firstSentHeader: "idempotency-first-sent" } as Settings;

/** Submissions as a browser or a file kept them, damaged in any way. */
export const clientStoredTarget: FuzzTarget = {
  name: "client-stored",
  about: "submissions as a client kept them: refused as damaged, or fit to be sent and answered",
  seeds: bytesOfAll([JSON.stringify(record), JSON.stringify(settled), "null", "", "[]", `{"form":1,"name":"${NAME}"}`]),
  words: [
    ...[
      '"headers":',
      "[]",
      '[["a","b"]]',
      '[["a"]]',
      "[1]",
      "null",
      '"bodyBase64":',
      '"!"',
      '"AA=="',
      '"key":',
      '"\\n"',
      '"é"',
    ],
    ...[
      '"settled":',
      '"kind":"refused"',
      '"status":',
      "200",
      "1e999",
      "-1",
      '"firstSentAt":',
      '"url":',
      '"keyHeader":',
      '""',
      "{}",
    ],
  ],
  run: (input) => parseStored(Buffer.from(input).toString(), NAME, "A storage"),
  try: tryKept,
  properties: [],
  families: [
    repeated("open arrays", "", "["),
    repeated("headers", '{"form":1,"request":{"headers":[', '["a","b"],', '["a","b"]]}}'),
    repeated("a long body", '{"form":1,"request":{"bodyBase64":"', "AAAA", '"}}'),
  ],
};

async function tryKept(input: Uint8Array): Promise<Verdict> {
  const outcome = outcomeOf(REFUSES, () => parseStored(Buffer.from(input).toString(), NAME, "A storage"));
  if (outcome.kind === "refused") return "refused";
  const { value } = outcome;
  await mustPass("the headers of an attempt", () => headersFor(value, value.firstSentAt ?? value.createdAt, settings));
  await mustPass("the body of an attempt", async () => fromBase64(value.request.bodyBase64 ?? ""));
  await mustPass("its address", async () => new Request(value.request.url, { method: value.request.method }));
  await mustPass("the stored result", async () => {
    const result = storedResult(value);
    if (result !== null) must(["succeeded", "refused", "unknown"].includes(result.kind), "a result of no kind");
    result?.response?.header("content-type");
  });
  return "accepted";
}

// A record that was read must be usable: what raises here would look like a lost answer, or crash its caller.
async function mustPass(what: string, use: () => Promise<unknown>): Promise<void> {
  try {
    await laterOutcomeOf([], use);
  } catch (error) {
    throw error instanceof Finding ? new Finding(`${what} ${error.message}`) : error;
  }
}
