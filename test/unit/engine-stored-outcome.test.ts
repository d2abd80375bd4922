import { createHash, randomBytes } from "node:crypto";
import { createOncekey, type EncryptionKey, type OncekeyOptions, type Outcome, respond } from "oncekey";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { createSweeper } from "oncekey/sweeper";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import type { AnyOutcome, LongBody } from "../../src/core/outcome.ts";
import { bytesOf, isInMemory } from "../../src/core/outcome.ts";
import { runCaptured } from "../support/captured.ts";
import { inChunks, type MemoryBodies, memoryBodies } from "../support/memory-bodies.ts";

const ringOf = (id: number, fill = id): EncryptionKey => ({ id, key: new Uint8Array(32).fill(fill) });
const SCOPE = { tenant: "acme", client: null };
const text = (length: number) =>
  new TextEncoder().encode('{"item":"PLAINTEXT"},'.repeat(Math.ceil(length / 21))).slice(0, length);
const noise = (length: number) => new Uint8Array(randomBytes(length));

/** A body that is not in memory, as a recorded answer's is. */
function longBody(bytes: Uint8Array): LongBody & { readonly released: () => number } {
  let released = 0;
  return {
    length: bytes.length,
    chunks: () => inChunks(bytes),
    share: () => longBody(bytes),
    release: async () => void released++,
    released: () => released,
  };
}

type Options = Partial<OncekeyOptions<MemoryTransaction>>;

/** Two processes on one store, so that nothing is shared but what is stored. */
async function world(options: Options = {}, other: Options = options) {
  process.removeAllListeners("warning");
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const told: { error: Error; operation: string; at: string }[] = [];
  const ids = new Map<string, Uint8Array>();
  const make = async (own: Options) => {
    const once = createOncekey({
      store,
      clock: time.clock,
      onError: (error, about) => told.push({ error: error as Error, ...about }),
      retentionMs: 86_400_000,
      ...own,
    });
    let answer: AnyOutcome = { status: 201, headers: [], body: new Uint8Array() };
    const runs: string[] = [];
    const transaction = once.transaction({
      name: "direct",
      version: 1,
      async run({ id }) {
        runs.push("direct");
        ids.set("direct", Buffer.from(id, "hex"));
        return respond(answer.status, answer.body as Uint8Array, Object.fromEntries(answer.headers));
      },
    });
    const capture = once.capture({ name: "captured", version: 1 });
    await once.start();
    return {
      once,
      runs,
      sweeper: createSweeper(once),
      /** As a transaction, by `once.run`. */
      direct: (given: AnyOutcome, key = "k") => {
        answer = given;
        return time.advanceUntil(once.run(transaction, { scope: SCOPE, key, input: {} }));
      },
      /** As a captured handler's answer. */
      captured: (given: AnyOutcome, key = "k") =>
        time.advanceUntil(
          runCaptured(capture, {
            key,
            handler: async () => {
              runs.push("captured");
              return given as Outcome;
            },
          }),
        ),
    };
  };
  const writer = await make(options);
  const reader = await make(other);
  return { time, store, told, writer, reader, make, ids };
}

const json = (body: AnyOutcome["body"], type = "application/json"): AnyOutcome => ({
  status: 201,
  headers: [
    ["content-type", type],
    ["etag", '"1"'],
  ],
  body,
});

const contents = async ({ store, ids }: { store: ReturnType<typeof memoryStore>; ids: Map<string, Uint8Array> }) => {
  const entry = await store.read(ids.get("direct") as Uint8Array);
  return entry?.outcome ?? null;
};

/** The outcome of a result, its long body read and let go of. */
async function outcomeOf(result: { readonly kind: string; readonly outcome?: AnyOutcome }) {
  const { outcome } = result;
  if (outcome === undefined) return { kind: result.kind };
  const bytes = await bytesOf(outcome.body);
  if (!isInMemory(outcome.body)) await outcome.body.release();
  return { kind: result.kind, status: outcome.status, headers: outcome.headers, body: digest(bytes) };
}
const digest = (bytes: Uint8Array) => `${bytes.length}:${createHash("sha256").update(bytes).digest("hex")}`;

const replayed = (given: AnyOutcome, bytes: Uint8Array) => ({
  kind: "replayed",
  status: given.status,
  headers: given.headers,
  body: digest(bytes),
});

const KEYS: readonly (readonly [string, readonly EncryptionKey[]])[] = [
  ["in the clear", []],
  ["sealed", [ringOf(1)]],
];

const BODIES: readonly (readonly [string, Uint8Array, string])[] = [
  ["an empty body", new Uint8Array(), "application/json"],
  ["a short one", text(100), "application/json"],
  ["one at the limit of compression", text(1_024), "application/json"],
  ["long text", text(200_000), "text/plain; charset=utf-8"],
  ["noise that does not compress", noise(50_000), "application/octet-stream"],
  ["an image", noise(50_000), "image/png"],
  ["zeros called an image", new Uint8Array(50_000), "image/png"],
  ["text over the threshold", text(900_000), "application/json"],
  ["noise over the threshold", noise(700_001), "application/octet-stream"],
];

describe.each(KEYS)("an outcome %s", (_name, encryptionKeys) => {
  it.each(BODIES)("with %s is replayed byte for byte", async (_body, bytes, type) => {
    const bodyStore = memoryBodies();
    const w = await world({ encryptionKeys, bodyStore });
    const given = json(bytes, type);
    expect(await outcomeOf(await w.writer.direct(given))).toMatchObject({ kind: "completed", body: digest(bytes) });
    expect(await outcomeOf(await w.reader.direct(given))).toEqual(replayed(given, bytes));
    const recorded = longBody(bytes);
    expect((await w.writer.captured(json(recorded, type))).kind).toBe("completed");
    expect(recorded.released()).toBe(0);
    expect(await outcomeOf(await w.reader.captured(given))).toEqual(replayed(given, bytes));
    expect(w.told).toEqual([]);
    expect(w.reader.runs).toEqual([]);
    expect(bodyStore.objects.size).toBe(bytes.length > 262_144 ? 2 : 0);
  });

  it("shows nothing of its headers and body where there are keys, in the row and in the body store", async () => {
    for (const bytes of [text(300), text(2_000), text(400_000), noise(300_000)]) {
      const bodyStore = memoryBodies();
      const w = await world({ encryptionKeys, bodyStore, compressBodies: false });
      await w.writer.direct({ ...json(bytes), headers: [["location", "/secrets/LOCATION"]] });
      const kept = await contents(w);
      const stored = [kept?.content ?? [], ...bodyStore.objects.values()].map((one) => Buffer.from(one));
      const all = Buffer.concat(stored);
      const isPlain = encryptionKeys.length === 0;
      expect(all.includes("LOCATION")).toBe(isPlain);
      expect(all.includes(Buffer.from(bytes.subarray(40, 80)))).toBe(isPlain);
    }
  });

  it("is compressed where an eighth is saved, and only there", async () => {
    for (const [bytes, type, smaller] of [
      [text(1_023), "application/json", false],
      [text(4_000), "application/json", true],
      [text(4_000), "application/zip", false],
      [noise(4_000), "application/json", false],
    ] as const) {
      const w = await world({ encryptionKeys });
      await w.writer.direct(json(bytes, type));
      const size = (await contents(w))?.content.length ?? 0;
      expect(size < bytes.length, `${type} ${bytes.length}: ${size}`).toBe(smaller);
    }
  });
});

describe("what older processes can read", () => {
  it("stays the plain form of version 1 for short bodies, and for long ones without compression", async () => {
    for (const [bytes, options] of [
      [text(1_000), {}],
      [noise(100_000), {}],
      [text(100_000), { compressBodies: false }],
    ] as const) {
      const w = await world(options);
      await w.writer.direct(json(bytes));
      const kept = await contents(w);
      expect(kept?.content[0]).toBe(1);
      expect(kept?.pointer).toBeNull();
      expect(
        Buffer.from(kept?.content ?? [])
          .subarray(-bytes.length)
          .equals(bytes),
      ).toBe(true);
    }
  });

  it("stays readable once there are keys, a body store, or neither any more", async () => {
    const bodyStore = memoryBodies();
    const long = json(text(400_000));
    for (const [before, after] of [
      [{}, { encryptionKeys: [ringOf(1)], bodyStore }],
      [{ compressBodies: true }, { compressBodies: false }],
      [{ encryptionKeys: [ringOf(1)] }, { encryptionKeys: [ringOf(2), ringOf(1)], bodyStore }],
      [
        { encryptionKeys: [ringOf(1)], bodyStore },
        { encryptionKeys: [ringOf(2), ringOf(1)], bodyStore },
      ],
    ] as const) {
      const w = await world(before, after);
      await w.writer.direct(long);
      expect(await outcomeOf(await w.reader.direct(long))).toEqual(replayed(long, text(400_000)));
    }
  });
});

describe("an outcome that is too long", () => {
  const options = { maxStoredBodyBytes: 1_000 };

  it("is answered once, told of by its sizes, and gone for retries, which run nothing", async () => {
    const w = await world(options);
    const given = json(text(1_001));
    expect((await w.writer.direct(given)).kind).toBe("completed");
    expect(await w.reader.direct(given)).toEqual({ kind: "gone", state: "succeeded" });
    expect(await w.writer.direct(given)).toEqual({ kind: "gone", state: "succeeded" });
    expect((await w.writer.captured(given)).kind).toBe("completed");
    expect(await w.reader.captured(given)).toEqual({ kind: "gone", state: "succeeded" });
    expect([...w.writer.runs, ...w.reader.runs]).toEqual(["direct", "captured"]);
    expect(w.told.map(({ operation }) => operation)).toEqual(["direct", "captured"]);
    expect(w.told[0]?.error.message).toContain("1001 bytes and 1000 are kept");
    expect(w.told[0]?.error.message).not.toContain("PLAINTEXT");
  });

  it("is kept at the limit itself", async () => {
    const w = await world(options);
    const given = json(text(1_000));
    await w.writer.direct(given);
    expect((await w.reader.direct(given)).kind).toBe("replayed");
  });

  it("by its operation's own limit is not kept, whatever the instance keeps", async () => {
    const once = createOncekey({ store: memoryStore(), onError: () => {} });
    const run = async () => respond(201, text(51));
    const operation = once.transaction({ name: "short", version: 1, maxStoredBodyBytes: 50, run });
    await once.start();
    const kinds = [1, 2].map(() => once.run(operation, { scope: SCOPE, key: "k", input: {} }));
    await Promise.all(kinds);
    expect((await once.run(operation, { scope: SCOPE, key: "k", input: {} })).kind).toBe("gone");
  });

  it("as a provisional answer is not kept, and nothing goes to the body store", async () => {
    const bodyStore = memoryBodies();
    const w = await world({ bodyStore, bodyThresholdBytes: 500 });
    const failed = { ...json(text(600)), status: 500 };
    expect((await w.writer.captured(failed)).kind).toBe("provisional");
    const result = await w.reader.captured(failed);
    expect(result).toMatchObject({ kind: "unknown", reason: "handler_failed", provisional: null });
    expect(bodyStore.objects.size).toBe(0);
    const short = { ...json(text(400)), status: 500 };
    await w.writer.captured(short, "k2");
    expect(await w.reader.captured(short, "k2")).toMatchObject({ provisional: { status: 500 } });
  });
});

describe("a body store that fails", () => {
  const long = json(text(300_000));

  async function failing(options: Options = {}) {
    const bodyStore = memoryBodies();
    const w = await world({ bodyStore, ...options });
    return { ...w, bodyStore };
  }

  it("rolls a transaction back: nothing is stored, and the retry runs it anew", async () => {
    const w = await failing();
    w.bodyStore.failure = new Error("down");
    expect(await w.writer.direct(long)).toEqual({ kind: "store_unavailable", retryAfterMs: 1_000 });
    expect(w.told).toHaveLength(1);
    w.bodyStore.failure = null;
    expect((await w.reader.direct(long)).kind).toBe("completed");
    expect((await w.writer.direct(long)).kind).toBe("replayed");
  });

  it("keeps what phases have committed, gives the entry back, and lets a retry go on from there", async () => {
    const w = await failing();
    const made: string[] = [];
    const once = createOncekey({ store: w.store, clock: w.time.clock, bodyStore: w.bodyStore, onError: () => {} });
    const operation = once.phases({
      name: "phased",
      version: 1,
      async run(op) {
        await op.phase("made", async () => void made.push("made"));
        return op.complete(async () => respond(201, long.body as Uint8Array));
      },
    });
    await once.start();
    const run = () => w.time.advanceUntil(once.run(operation, { scope: SCOPE, key: "k", input: {} }));
    w.bodyStore.failure = new Error("down");
    expect(await run()).toMatchObject({ kind: "store_unavailable" });
    const [first] = await w.store.takeDue({ operation: "phased", runKind: "phases", operationVersion: 1 }, 1, 1);
    expect(first?.from).toBe("in_progress");
    await w.time.advance(10);
    w.bodyStore.failure = null;
    expect((await run()).kind).toBe("completed");
    expect(made).toEqual(["made"]);
    expect((await run()).kind).toBe("replayed");
  });

  it("that stays down shows the phases' entry to operators in the end, with the reason", async () => {
    const w = await failing();
    const once = createOncekey({ store: w.store, clock: w.time.clock, bodyStore: w.bodyStore, onError: () => {} });
    once.phases({
      name: "phased",
      version: 1,
      async run(op) {
        await op.phase("made", async () => 1);
        return op.complete(async () => respond(201, long.body as Uint8Array));
      },
    });
    const operation = once.internals.registry.all()[0] as Parameters<typeof once.run>[0];
    await once.start();
    w.bodyStore.failure = new Error("down");
    await w.time.advanceUntil(once.run(operation, { scope: SCOPE, key: "k", input: {} }));
    const sweeper = createSweeper(once);
    for (let round = 0; round < 60; round++) {
      await w.time.advanceUntil(sweeper.runOnce());
      await w.time.advance(1_000);
    }
    await w.time.advance(300_000);
    const [taken] = await w.store.takeDue({ operation: "phased", runKind: "phases", operationVersion: 1 }, 1, 1);
    expect(taken?.entry?.reason).toBe("gave_up: the body store did not take the outcome");
    expect(taken?.from).toBe("needs_recovery");
  });

  it("is tried again for a captured run, whose effect is done", async () => {
    const w = await failing();
    w.bodyStore.failure = new Error("down");
    const { put } = w.bodyStore;
    let puts = 0;
    w.bodyStore.put = async (...all) => {
      if (++puts === 4) w.bodyStore.failure = null;
      return put(...all);
    };
    expect((await w.writer.captured(long)).kind).toBe("completed");
    expect(puts).toBe(4);
    expect((await w.reader.captured(long)).kind).toBe("replayed");
  });

  it("that stays down completes a captured run without its body rather than leave it unknown", async () => {
    const w = await failing();
    w.bodyStore.failure = new Error("down");
    expect((await w.writer.captured(long)).kind).toBe("completed");
    expect(await w.reader.captured(long)).toEqual({ kind: "gone", state: "succeeded" });
    expect([...w.writer.runs, ...w.reader.runs]).toEqual(["captured"]);
    expect(w.told.length).toBeGreaterThan(0);
  });

  it("that hangs does not hang the run for ever", async () => {
    const w = await failing();
    w.bodyStore.put = () => new Promise(() => {});
    expect(await w.writer.direct(long)).toMatchObject({ kind: "store_unavailable" });
    w.bodyStore.put = memoryBodies().put;
    w.bodyStore.get = () => new Promise(() => {});
    expect((await w.writer.direct(long)).kind).toBe("completed");
    expect(await w.reader.direct(long)).toMatchObject({ kind: "store_unavailable" });
  });

  it("that cannot be read makes a retry wait, and one whose body is missing tells that it is gone", async () => {
    const w = await failing();
    await w.writer.direct(long);
    w.bodyStore.failure = new Error("unreachable");
    expect(await w.reader.direct(long)).toMatchObject({ kind: "store_unavailable" });
    w.bodyStore.failure = null;
    expect((await w.reader.direct(long)).kind).toBe("replayed");
    w.told.length = 0;
    w.bodyStore.objects.clear();
    expect(await w.reader.direct(long)).toEqual({ kind: "gone", state: "succeeded" });
    expect(w.told).toHaveLength(1);
    expect(w.reader.runs).toEqual([]);
  });

  it("that breaks off in the middle of a body is unreachable, not broken", async () => {
    const w = await failing({ encryptionKeys: [ringOf(1)] });
    await w.writer.direct(long);
    const [[pointer = "", whole = new Uint8Array()] = []] = [...w.bodyStore.objects];
    w.bodyStore.get = async (asked) => {
      expect(asked).toBe(pointer);
      return (async function* () {
        yield whole.subarray(0, 20);
        throw new Error("connection reset");
      })();
    };
    expect(await w.reader.direct(long)).toMatchObject({ kind: "store_unavailable" });
  });

  it("that a process lacks which has to replay makes the retry wait for another one", async () => {
    const w = await world({ bodyStore: memoryBodies() }, {});
    await w.writer.direct(long);
    expect(await w.reader.direct(long)).toMatchObject({ kind: "store_unavailable" });
    expect((await w.writer.direct(long)).kind).toBe("replayed");
  });
});

describe.each(KEYS)("a body in the body store (%s) that was changed", (_name, encryptionKeys) => {
  type Spoil = (objects: MemoryBodies["objects"], pointer: string, whole: Uint8Array) => void;
  const spoils: readonly (readonly [string, Spoil])[] = [
    [
      "in one bit",
      (objects, pointer, whole) =>
        void objects.set(
          pointer,
          whole.map((byte, at) => (at === 7 ? byte ^ 1 : byte)),
        ),
    ],
    [
      "at its end",
      (objects, pointer, whole) =>
        void objects.set(
          pointer,
          whole.map((byte, at) => (at === whole.length - 1 ? byte ^ 1 : byte)),
        ),
    ],
    ["to a shorter one", (objects, pointer, whole) => void objects.set(pointer, whole.slice(0, -1))],
    ["to nothing", (objects, pointer) => void objects.set(pointer, new Uint8Array())],
    [
      "to a longer one",
      (objects, pointer, whole) => void objects.set(pointer, new Uint8Array(Buffer.concat([whole, whole]))),
    ],
    ["to another of its length", (objects, pointer, whole) => void objects.set(pointer, noise(whole.length))],
  ];

  it.each(spoils)("%s is never answered", async (_how, spoil) => {
    for (const bytes of [text(400_000), noise(300_000)]) {
      const bodyStore = memoryBodies();
      const w = await world({ encryptionKeys, bodyStore });
      await w.writer.direct(json(bytes));
      const [[pointer = "", whole = new Uint8Array()] = []] = [...bodyStore.objects];
      spoil(bodyStore.objects, pointer, whole);
      await expect(w.reader.direct(json(bytes))).rejects.toMatchObject({ code: "oncekey_store_broken" });
      bodyStore.objects.set(pointer, whole);
      expect((await w.reader.direct(json(bytes))).kind).toBe("replayed");
    }
  });

  it("for another entry's is never answered", async () => {
    const bodyStore = memoryBodies();
    const w = await world({ encryptionKeys, bodyStore });
    for (const key of ["one", "two"]) await w.writer.direct(json(noise(300_000)), key);
    const [[one = "", a = new Uint8Array()] = [], [two = "", b = new Uint8Array()] = []] = [...bodyStore.objects];
    bodyStore.objects.set(one, b).set(two, a);
    for (const key of ["one", "two"]) {
      await expect(w.reader.direct(json(noise(1)), key)).rejects.toMatchObject({ code: "oncekey_store_broken" });
    }
  });
});

describe("loose bodies", () => {
  const long = json(text(300_000));
  const DAYS_MS = 2 * 86_400_000;

  it("that no outcome points at are removed by the sweeper, and those in use are not", async () => {
    const bodyStore = memoryBodies();
    const w = await world({ bodyStore, retentionMs: 30 * 86_400_000 });
    await w.writer.direct(long);
    const orphan = `${"ab".repeat(32)}/${"cd".repeat(16)}`;
    await w.store.bodies.note(orphan, new Uint8Array(32).fill(0xab), DAYS_MS / 2);
    bodyStore.objects.set(orphan, text(10));
    expect(await w.time.advanceUntil(w.reader.sweeper.runOnce())).toMatchObject({ removedBodies: 0 });
    await w.time.advance(DAYS_MS);
    expect(await w.time.advanceUntil(w.reader.sweeper.runOnce())).toMatchObject({ removedBodies: 1 });
    expect(bodyStore.objects.size).toBe(1);
    expect(await w.store.bodies.due(10, 0)).toEqual([]);
    expect((await w.reader.direct(long)).kind).toBe("replayed");
  });

  it("of purged entries are removed", async () => {
    const bodyStore = memoryBodies();
    const w = await world({ bodyStore });
    await w.writer.direct(long);
    await w.time.advance(DAYS_MS / 2);
    const round = async () => w.time.advanceUntil(w.reader.sweeper.runOnce());
    const reports = [await round(), await round()];
    expect(reports.map(({ purged }) => purged).reduce((a, b) => a + b)).toBe(1);
    expect(reports.map(({ removedBodies }) => removedBodies).reduce((a, b) => a + b)).toBe(1);
    expect(bodyStore.objects.size).toBe(0);
  });

  it("that were put before a commit that never came are removed, whatever ended the run", async () => {
    const bodyStore = memoryBodies();
    const w = await world({ bodyStore });
    const { transaction } = w.store;
    w.store.transaction = async (body) =>
      transaction(async (session) => {
        await body(session);
        throw new Error("rolled back");
      });
    await expect(w.writer.direct(long)).rejects.toThrow("rolled back");
    w.store.transaction = transaction;
    expect(bodyStore.objects.size).toBe(1);
    await w.time.advance(DAYS_MS);
    expect(await w.time.advanceUntil(w.reader.sweeper.runOnce())).toMatchObject({ removedBodies: 1 });
    expect(bodyStore.objects.size).toBe(0);
  });

  it("that cannot be removed are told of, stay noted, and do not keep others from being removed", async () => {
    const bodyStore = memoryBodies();
    const w = await world({ bodyStore });
    const { remove } = bodyStore;
    const [stuck, loose] = ["aa", "bb"].map((hex) => `${hex.repeat(32)}/${hex.repeat(16)}`) as [string, string];
    for (const pointer of [stuck, loose]) await w.store.bodies.note(pointer, new Uint8Array(32), 0);
    bodyStore.remove = async (pointer) => {
      if (pointer === stuck) throw new Error("denied");
      return remove(pointer);
    };
    expect(await w.time.advanceUntil(w.reader.sweeper.runOnce())).toMatchObject({ removedBodies: 1 });
    expect(w.told.map(({ at }) => at)).toEqual(["remove from the body store (memory)"]);
    bodyStore.remove = remove;
    expect(await w.time.advanceUntil(w.reader.sweeper.runOnce())).toMatchObject({ removedBodies: 0 });
    await w.time.advance(600_000);
    expect(await w.time.advanceUntil(w.reader.sweeper.runOnce())).toMatchObject({ removedBodies: 1 });
  });

  it("are left alone by sweepers without a body store", async () => {
    const w = await world({});
    await w.store.bodies.note(`${"aa".repeat(32)}/${"aa".repeat(16)}`, new Uint8Array(32), 0);
    expect(await w.time.advanceUntil(w.reader.sweeper.runOnce())).toMatchObject({ removedBodies: 0 });
    expect(await w.store.bodies.due(10, 0)).toHaveLength(1);
  });
});

describe("settings of what is stored", () => {
  const started = (options: Options, connections?: number) =>
    createOncekey({ store: memoryStore(connections === undefined ? {} : { connections }), ...options }).start();

  it.each([
    ["a negative limit", { maxStoredBodyBytes: -1 }],
    ["a limit that is no number", { maxStoredBodyBytes: Number.NaN }],
    ["a limit that no row holds", { maxStoredBodyBytes: 2 ** 31 }],
    ["a limit whose rows a rotation could not send", { maxStoredBodyBytes: 2 ** 27 + 1 }],
    ["a fractional threshold", { bodyThresholdBytes: 0.5 }],
    ["a body store that is none", { bodyStore: { name: "x" } as never }],
  ])("are refused at start: %s", async (_name, options) => {
    await expect(started(options)).rejects.toMatchObject({ code: "oncekey_config_invalid" });
  });

  it("are refused at start where one connection must both hold a transaction and note a body", async () => {
    await expect(started({ bodyStore: memoryBodies() }, 1)).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    await expect(started({ bodyStore: memoryBodies() }, 2)).resolves.toBeUndefined();
  });

  it("of an operation are refused at start as well", async () => {
    const once = createOncekey({ store: memoryStore() });
    once.transaction({ name: "x", version: 1, maxStoredBodyBytes: -1, run: async () => respond(204, null) });
    await expect(once.start()).rejects.toMatchObject({ code: "oncekey_config_invalid" });
  });
});
