import { describe, expect, it } from "vitest";
import { checkOperation, checkTimes, type PolicyOperation, type PolicyTimes, unseenMs } from "../../src/core/policy.ts";
import type { StoreTraits } from "../../src/core/store.ts";

const LONGEST_MS = 2_147_483_647;
const TEN_YEARS_MS = 10 * 365 * 24 * 3_600_000;
const TRAITS: StoreTraits = { connections: 10, renews: true, abandons: true };
const UNKNOWN_POOL: StoreTraits = { ...TRAITS, renews: "unknown" };

const times: PolicyTimes = {
  leaseMs: 30_000,
  waitMs: 5_000,
  retentionMs: 100_000,
  clientRetryWindowMs: 50_000,
  tombstoneMs: 0,
  maxKeyLength: 255,
  maxBodyBytes: 1,
  maxAnswerBytes: 1,
  maxRecordingBytes: 1,
  maxWaiters: 1,
  maxWaitersPerKey: 1,
};

const operation: PolicyOperation = {
  runKind: "phases",
  name: "charges.create",
  version: 1,
  aliases: [],
  maxDurationMs: 1_000,
  maxAttempts: 5,
  retentionMs: 100_000,
  waitMs: 5_000,
  replayHeaders: [],
  claimCommit: "synchronous",
  dedupesForMs: undefined,
  afterFailure: "replay",
  onStoreDown: "refuse",
};

const timesRefused = (over: Partial<PolicyTimes>, message: RegExp | string) =>
  expect(() => checkTimes({ ...times, ...over }), JSON.stringify(over)).toThrow(refusal(message));
const refused = (over: Partial<PolicyOperation>, message: RegExp | string, traits = TRAITS) =>
  expect(() => checkOperation({ ...operation, ...over }, times, traits), JSON.stringify(over)).toThrow(
    refusal(message),
  );
const timesTaken = (over: Partial<PolicyTimes>) => checkTimes({ ...times, ...over });
const taken = (over: Partial<PolicyOperation>, traits = TRAITS) =>
  checkOperation({ ...operation, ...over }, times, traits);

function refusal(message: RegExp | string) {
  const text = typeof message === "string" ? expect.stringContaining(message) : expect.stringMatching(message);
  return expect.objectContaining({ code: "oncekey_config_invalid", message: text });
}

describe("the times of an instance", () => {
  it("are whole numbers of milliseconds within what their timers and columns take", () => {
    for (const name of ["leaseMs", "waitMs", "retentionMs", "clientRetryWindowMs", "tombstoneMs"] as const) {
      for (const wrong of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, "1"]) {
        timesRefused({ [name]: wrong }, `${name} must be a whole number of milliseconds from 0 to`);
      }
    }
    timesRefused({ leaseMs: LONGEST_MS + 1 }, "leaseMs must be a whole number");
    timesRefused({ waitMs: LONGEST_MS + 1 }, "waitMs must be a whole number");
    timesTaken({ leaseMs: LONGEST_MS, waitMs: LONGEST_MS, retentionMs: TEN_YEARS_MS });
    for (const name of ["retentionMs", "clientRetryWindowMs", "tombstoneMs"] as const) {
      timesTaken({ retentionMs: TEN_YEARS_MS, [name]: TEN_YEARS_MS });
      timesRefused({ retentionMs: TEN_YEARS_MS, [name]: TEN_YEARS_MS + 1 }, `${name} must be a whole number`);
    }
  });

  it("leave a lease long enough to be renewed", () => {
    timesTaken({ leaseMs: 100 });
    timesRefused({ leaseMs: 99 }, "leaseMs is 99: a lease below 100 ms cannot be renewed in time");
  });

  it("keep an outcome as long as clients retry, and twice as long as anybody waits", () => {
    timesTaken({ retentionMs: 50_000 });
    timesRefused({ retentionMs: 49_999 }, /^retentionMs \(49999\) is shorter than clientRetryWindowMs \(50000\)/);
    timesTaken({ retentionMs: 50_000, waitMs: 25_000 });
    timesRefused({ retentionMs: 50_000, waitMs: 25_001 }, /at least twice waitMs \(25001\)/);
  });
});

describe("the limits of an instance", () => {
  it("are numbers from 0: what is no number would be no limit", () => {
    const names = ["maxBodyBytes", "maxAnswerBytes", "maxRecordingBytes", "maxWaiters", "maxWaitersPerKey"] as const;
    for (const name of names) {
      for (const most of [0, Number.POSITIVE_INFINITY]) timesTaken({ [name]: most });
      for (const wrong of [-1, Number.NaN, undefined]) timesRefused({ [name]: wrong }, `${name} must be a number`);
    }
  });

  it("hold a key within its column", () => {
    for (const maxKeyLength of [1, 512]) timesTaken({ maxKeyLength });
    for (const wrong of [0, 513, Number.NaN])
      timesRefused({ maxKeyLength: wrong }, "maxKeyLength must be from 1 to 512");
  });
});

describe("an operation", () => {
  it("is told by its name in every refusal, and that nothing was started", () => {
    refused({ version: 0 }, /^Operation "charges\.create": .*\. Nothing was started\.$/);
    refused({ maxDurationMs: -1 }, /^Operation "charges\.create": maxDurationMs must be/);
    refused({ retentionMs: 1 }, /^Operation "charges\.create": retentionMs \(1\) is shorter/);
  });

  it("has a name, and aliases, of 1 to 100 visible ASCII characters", () => {
    for (const name of ["!", "~", "n".repeat(100)]) {
      taken({ name });
      taken({ aliases: ["a", name] });
    }
    for (const wrong of ["", " ", "a b", "a\n", "\na", "é", "\x7f", "n".repeat(101), 7 as never, undefined as never]) {
      refused({ name: wrong }, "names and aliases are 1 to 100 visible ASCII characters");
      refused({ aliases: ["a", wrong] }, "names and aliases are");
    }
    // A list of one name would pass where it is only looked at as text.
    refused({ name: ["a"] as never }, "names and aliases are");
  });

  it("has a version that its column holds", () => {
    for (const version of [1, LONGEST_MS]) taken({ version });
    for (const wrong of [0, -1, 1.5, LONGEST_MS + 1, Number.NaN]) refused({ version: wrong }, "version must be");
  });

  it("runs for a millisecond at least, and attempts it once at least", () => {
    taken({ maxDurationMs: 1, maxAttempts: 1 });
    taken({ maxDurationMs: LONGEST_MS });
    refused({ maxDurationMs: 0 }, "maxDurationMs must be at least 1");
    refused({ maxDurationMs: LONGEST_MS + 1 }, "maxDurationMs must be a whole number");
    for (const wrong of [0, 1.5, Number.NaN])
      refused({ maxAttempts: wrong }, "maxAttempts must be a whole number from 1");
  });

  it("has times of its own within the same rules", () => {
    taken({ retentionMs: TEN_YEARS_MS, waitMs: LONGEST_MS });
    refused({ retentionMs: TEN_YEARS_MS + 1 }, "retentionMs must be a whole number");
    refused({ waitMs: LONGEST_MS + 1, retentionMs: TEN_YEARS_MS }, "waitMs must be a whole number");
    taken({ retentionMs: 50_000 });
    refused({ retentionMs: 49_999 }, "shorter than clientRetryWindowMs");
    taken({ waitMs: 50_000 });
    refused({ waitMs: 50_001 }, "at least twice waitMs");
  });

  it("that is one transaction does not outlive what it stores", () => {
    refused(
      { runKind: "transaction", maxDurationMs: 100_000 },
      /retentionMs \(100000\) must be longer than maxDuration/,
    );
    taken({ runKind: "transaction", maxDurationMs: 99_999 });
    for (const runKind of ["phases", "capture"] as const) taken({ runKind, maxDurationMs: 100_000 });
  });

  it("replays no header that belongs to one connection", () => {
    taken({ replayHeaders: ["x-request-cost"] });
    refused({ replayHeaders: ["Set-Cookie"] }, "set-cookie can never be replayed");
  });

  it("runs without its store only where it captures: the others keep their promise in it", () => {
    taken({ runKind: "capture", onStoreDown: "run" });
    for (const runKind of ["transaction", "phases"] as const) {
      refused({ runKind, onStoreDown: "run" }, `onStoreDown "run" is only possible for capture: ${runKind}`);
    }
  });

  it("that renews a lease has a connection to do so", () => {
    for (const runKind of ["phases", "capture"] as const) refused({ runKind }, "{ control }", UNKNOWN_POOL);
    taken({ runKind: "transaction" }, UNKNOWN_POOL);
    for (const renews of [true, false]) taken({}, { ...TRAITS, renews });
  });
});

describe("a claim that a crash of the database may lose", () => {
  const lossy = { claimCommit: "asynchronous", dedupesForMs: 0 } as const;

  it("is chosen by one of two words", () => {
    refused({ claimCommit: "later" as never }, 'claimCommit is "synchronous" or "asynchronous"');
    taken({ claimCommit: "synchronous" });
    taken(lossy);
  });

  it("is refused where the next run would have a second effect", () => {
    refused({ ...lossy, runKind: "capture" }, /refused for capture: a claim lost .* would run the handler twice/);
    refused({ ...lossy, runKind: "transaction" }, "refused for transaction: it has no claim");
    refused({ ...lossy, afterFailure: "runAgain" }, 'refused with afterFailure "runAgain"');
    taken({ afterFailure: "runAgain" });
  });

  it("says for how long the other side dedupes: for as long as a client may come back, and run", () => {
    refused({ ...lossy, dedupesForMs: undefined }, "needs dedupesForMs");
    for (const wrong of [-1, 0.5, TEN_YEARS_MS + 1]) {
      refused({ ...lossy, dedupesForMs: wrong }, "dedupesForMs must be a whole number");
    }
    refused({ ...lossy, dedupesForMs: 1 }, "dedupesForMs (1) is shorter than");
    refused({ ...lossy, dedupesForMs: 50_999 }, /dedupesForMs \(50999\) is shorter than .* together \(51000\)/);
    for (const dedupesForMs of [0, 51_000, TEN_YEARS_MS]) taken({ ...lossy, dedupesForMs });
    for (const dedupesForMs of [0, 51_000]) refused({ dedupesForMs }, "dedupesForMs belongs to claimCommit");
  });

  it("may be as much older than its entry as clients go on retrying", () => {
    expect(unseenMs("asynchronous", { clientRetryWindowMs: 7 })).toBe(7);
    expect(unseenMs("synchronous", { clientRetryWindowMs: 7 })).toBe(0);
  });
});
