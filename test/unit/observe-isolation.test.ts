import { created, createOncekey, type Observer, type OncekeyEvent } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";

const SCOPE = { tenant: "acme", client: null };
const thrown = new Error("the exporter is down");

/** Runs one operation and its replay under an observer. */
async function under(observe: Observer | readonly Observer[]) {
  const told: unknown[] = [];
  const onError = (error: unknown, { operation }: { operation: string }) => void told.push([operation, error]);
  const once = createOncekey({ store: memoryStore(), observe, onError });
  const operation = once.transaction({ name: "o", version: 1, run: async () => created("/o/1", { id: 1 }) });
  await once.start();
  const run = async () => once.run(operation, { scope: SCOPE, key: "k", input: {} });
  const kinds = [(await run()).kind, (await run()).kind];
  return { kinds, told };
}

describe("an observer", () => {
  it("that throws changes nothing, and is told of once", async () => {
    const broken = () => {
      throw thrown;
    };
    const seen: OncekeyEvent[] = [];
    const { kinds, told } = await under([broken, (event) => void seen.push(event)]);
    expect(kinds).toEqual(["completed", "replayed"]);
    expect(told).toEqual([["observe", thrown]]);
    expect(seen.map(({ kind }) => kind)).toEqual(["began", "claimed", "completed", "began", "replayed"]);
  });

  it("that rejects changes nothing, and is told of once", async () => {
    const { kinds, told } = await under(async () => {
      throw thrown;
    });
    expect(kinds).toEqual(["completed", "replayed"]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual([["observe", thrown]]);
  });

  it("that gives a promise of another kind, which rejects, ends no process", async () => {
    // biome-ignore lint/suspicious/noThenProperty: a promise library of somebody else's.
    const foreign = { then: (_: unknown, reject: (error: unknown) => void) => reject(thrown) };
    const { told } = await under(() => foreign);
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual([["observe", thrown]]);
  });

  it("that hangs is not waited for", async () => {
    const { kinds, told } = await under(() => new Promise(() => {}));
    expect(kinds).toEqual(["completed", "replayed"]);
    expect(told).toEqual([]);
  });

  it("that cannot be told is refused at once", () => {
    for (const observe of ["console", [null], { observe: () => {} }]) {
      const creating = () => createOncekey({ store: memoryStore(), observe: observe as never });
      expect(creating).toThrow(expect.objectContaining({ code: "oncekey_config_invalid" }));
    }
  });

  it("takes the place of no error about a store that is none", async () => {
    const starting = createOncekey({ store: undefined as never, observe: () => {} }).start();
    await expect(starting).rejects.toMatchObject({ code: "oncekey_config_invalid" });
  });

  it("leaves the store as it is where there is none", () => {
    const store = memoryStore();
    expect(createOncekey({ store }).internals.context.store).toBe(store);
    expect(createOncekey({ store, observe: [] }).internals.context.store).toBe(store);
  });
});

describe("the events of a run", () => {
  it("carry one number, and the entry's id", async () => {
    const seen: OncekeyEvent[] = [];
    await under((event) => void seen.push(event));
    const runs = seen.map((event) => ("runId" in event ? event.runId : null));
    expect(new Set(runs).size).toBe(2);
    expect(new Set(runs.slice(0, 3)).size).toBe(1);
    const ids = new Set(seen.map((event) => ("entryId" in event ? event.entryId : null)));
    expect([...ids]).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
  });
});
