import { created, createOncekey, type OncekeyOptions, type PhasesContext, reject } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { type FaultyMethod, fakeClock, faultyStore, type StoreFault } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { messageId } from "../../src/core/message.ts";
import { memoryBodies } from "../support/memory-bodies.ts";

type Op = PhasesContext<MemoryTransaction, unknown>;
type Plan = readonly { readonly method: FaultyMethod; readonly fault: StoreFault; readonly nth?: number }[];
type Options = Partial<OncekeyOptions<MemoryTransaction>>;

const settled = (op: Op) =>
  op.complete(async ({ tx, send }) => {
    await tx.insert("settled", {});
    await send("charge.settled", {});
    return created("/charges/1", { a: 1 });
  });
const refused = (op: Op, keepRows = false) =>
  op.complete(async ({ tx }) => {
    await tx.insert("refused", {});
    return reject(402, { code: "card_declined" }, { keepRows });
  });

/** Processes of one service, each with code of its own for one operation, and a view of the store in which things go wrong. */
function world() {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  let id = new Uint8Array();
  const worker = async (code: (op: Op) => Promise<unknown>, plan: Plan = [], options: Options = {}) => {
    const faulty = faultyStore(Object.create(store) as MemoryStore, { script: plan });
    const once = createOncekey({
      store: faulty.store,
      clock: time.clock,
      leaseMs: 1_000,
      waitMs: 0,
      onError: () => {},
      ...options,
    });
    const operation = once.phases({
      name: "charges.create",
      version: 1,
      async run(op) {
        id = Buffer.from(op.id, "hex");
        return (await code(op)) as never;
      },
    });
    await once.start();
    const run = () =>
      time.advanceUntil(once.run(operation, { scope: { tenant: "a", client: null }, key: "k", input: {} }));
    return { run, own: faulty.store, pending: faulty.pending };
  };
  return { time, store, worker, entry: () => store.read(id), id: () => id };
}

const ANSWER_LOST: Plan = [{ method: "transaction", fault: "commit_unknown", nth: 1 }];
const UNDONE: Plan = [{ method: "transaction", fault: "commit_unknown_undone", nth: 1 }];

describe("the completion of a phases operation", () => {
  it.each([
    ["an answer", settled, { state: "succeeded", status: 201 }],
    ["a refusal whose rows stay", (op: Op) => refused(op, true), { state: "failed", status: 402 }],
  ])("whose COMMIT arrived and was not answered counts: %s", async (_, code, { state, status }) => {
    const { worker, entry } = world();
    const { run, pending } = await worker(code, ANSWER_LOST);
    const first = await run();
    expect(pending).toEqual([]);
    expect(first).toMatchObject({ kind: "completed", outcome: { status } });
    expect(await entry()).toMatchObject({ state });
    expect(await run()).toMatchObject({ kind: "replayed", outcome: { status } });
  });

  it("whose COMMIT did not arrive proves nothing: unknown at first, and done once by the retry", async () => {
    const { worker, entry, store, time } = world();
    const { run } = await worker(settled, UNDONE);
    expect((await run()).kind).toBe("commit_unknown");
    expect(await entry()).toMatchObject({ state: "in_progress", outcome: null });
    // Nobody can tell that it will not arrive yet: its lease has to lapse.
    const next = await worker(settled);
    expect((await next.run()).kind).toBe("busy");
    await time.advance(1_000);
    expect((await next.run()).kind).toBe("completed");
    expect(store.rows("settled")).toHaveLength(1);
  });

  it("stays unknown where the look that would prove it fails as well", async () => {
    const { worker } = world();
    // The first read is the look-up before the claim.
    const { run } = await worker(settled, [...ANSWER_LOST, { method: "read", fault: "unavailable", nth: 2 }]);
    expect((await run()).kind).toBe("commit_unknown");
    expect(await run()).toMatchObject({ kind: "replayed", outcome: { status: 201 } });
  });

  it.each([
    ["cannot be read back", async () => Promise.reject(new Error("away"))],
    ["is gone", async () => null],
  ])("stays unknown where its stored body %s", async (_, get) => {
    const { worker, entry } = world();
    const bodyStore = Object.assign(memoryBodies(), { get });
    const long = (op: Op) => op.complete(async () => created("/charges/1", { long: "x".repeat(10_000) }));
    const { run, pending } = await worker(long, ANSWER_LOST, { bodyStore, bodyThresholdBytes: 1_000 });
    expect((await run()).kind).toBe("commit_unknown");
    expect(pending).toEqual([]);
    expect(await entry()).toMatchObject({ state: "succeeded" });
  });

  it("takes no other attempt's outcome for its own", async () => {
    const { worker, time, store } = world();
    const first = await worker(settled, UNDONE);
    const second = await worker((op) => refused(op, true));
    // Between the COMMIT and the look another attempt takes the entry over and finishes it.
    const { read } = first.own;
    let reads = 0;
    first.own.read = async (id) => {
      if (++reads === 2) {
        await time.advance(1_000);
        expect((await second.run()).kind).toBe("completed");
      }
      return read.call(store, id);
    };
    expect((await first.run()).kind).toBe("commit_unknown");
  });

  it("commits nothing under a fence that the store refuses", async () => {
    const { worker, store, entry } = world();
    const { run, own } = await worker(settled);
    const transaction = store.transaction.bind(store);
    own.transaction = (body) => transaction((session) => body(Object.assign(session, { complete: async () => false })));
    expect((await run()).kind).toBe("lease_lost");
    expect(store.rows("settled")).toEqual([]);
    expect(store.messages()).toEqual([]);
    expect(await entry()).toMatchObject({ state: "in_progress", outcome: null });
  });

  it("rolls the rows of a refusal back, and stores the refusal", async () => {
    const { worker, store, entry } = world();
    const { run } = await worker(refused);
    expect(await run()).toMatchObject({ kind: "completed", outcome: { status: 402 } });
    expect(store.rows("refused")).toEqual([]);
    expect(await entry()).toMatchObject({ state: "failed" });
    expect(await run()).toMatchObject({ kind: "replayed", outcome: { status: 402 } });
  });

  it("keeps the rows of a refusal that asks for it", async () => {
    const { worker, store } = world();
    const { run } = await worker((op) => refused(op, true));
    expect(await run()).toMatchObject({ kind: "completed", outcome: { status: 402 } });
    expect(store.rows("refused")).toHaveLength(1);
  });

  it("raises what fails in it as it is, and asks nothing", async () => {
    const { worker, entry, store } = world();
    let reads = 0;
    const counted = async (...given: Parameters<typeof worker>) => {
      const made = await worker(...given);
      made.own.read = async (id) => {
        reads++;
        return store.read(id);
      };
      return made;
    };
    const { run } = await counted((op) => op.complete(() => Promise.reject(new Error("boom"))));
    await expect(run()).rejects.toThrow("boom");
    expect(await entry()).toBe(null);
    const contended = await counted(
      settled,
      [1, 2, 3, 4, 5].map((nth) => ({ method: "transaction", fault: "contention", nth })),
    );
    expect((await contended.run()).kind).toBe("contention");
    // Only a lost COMMIT needs a second look: the first one is that before the claim.
    expect(reads).toBe(2);
  });

  it("has its two crash points, and gives its messages the ids that its name has", async () => {
    const { worker, store, entry, id } = world();
    const points: string[] = [];
    const { run } = await worker(settled, [], { onPoint: async (point) => void points.push(point) });
    await run();
    expect(points).toEqual(expect.arrayContaining(["phase:complete:entered", "phase:complete:committed"]));
    const seed = (await entry())?.seed as Uint8Array;
    expect(store.messages().map((message) => message.id)).toEqual([messageId({ id: id(), seed }, "complete", 0)]);
  });

  it("at the place of a recorded phase that had its name is no end", async () => {
    const { worker, entry } = world();
    const before = await worker(async (op) => {
      await op.phase("complete", async () => 1);
      throw new Error("boom");
    });
    await expect(before.run()).rejects.toThrow("boom");
    const after = await worker(settled);
    expect(await after.run()).toMatchObject({ kind: "unknown", state: "needs_recovery" });
    expect(await entry()).toMatchObject({
      state: "needs_recovery",
      reason: "phase_changed: recorded complete after the end",
    });
  });
});
