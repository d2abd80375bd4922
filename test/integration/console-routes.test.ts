import { createConsoleIndexes, dropConsoleIndexes } from "oncekey/console";
import { describe, expect, it } from "vitest";
import { consoleWorld, deadLetter, finished, running, unresolved } from "./support/console-world.ts";

describe("the routes of the console", () => {
  it("tell who works with it, and what waits", async () => {
    const world = await consoleWorld();
    await unresolved(world);
    await running(world);
    await finished(world);
    await deadLetter(world);
    const session = await world.ask("GET", "session");
    expect(session).toMatchObject({ status: 200, body: { signedIn: "outside", endsAt: null } });
    expect(session.body.operator).toEqual({ name: "ada", tenant: null, readOnly: false, mayReveal: true });
    const { body } = await world.ask("GET", "overview");
    expect(body).toMatchObject({
      schema: { name: "oncekey", version: 5, layout: "plain" },
      unresolved: { count: 1, more: false },
      inProgress: { count: 1, more: false },
      lapsed: { count: 0, more: false, oldestAt: null },
      outbox: { pending: { count: 0 }, dead: { count: 1 } },
      purgeDue: { count: 0 },
    });
    expect(body.tables.map(({ name }: { name: string }) => name)).toContain("entry");
    expect(world.failures).toEqual([]);
  });

  it("find entries by what an index of the store answers, and by the rest only with the console's own", async () => {
    const world = await consoleWorld();
    const id = await finished(world, { key: "a-key-of-some-length" });
    const open = await unresolved(world);
    const found = async (query: string) =>
      (await world.ask("GET", `entries?${query}`)).body.entries?.map((entry: { id: string }) => entry.id);
    expect(await found(`id=${id}`)).toEqual([id]);
    expect(await found(`id=${id.slice(0, 10)}`)).toEqual([id]);
    expect(await found("state=needs_recovery")).toEqual([open]);
    for (const query of ["", "tenant=acme", "operation=invoices.create", "from=2020-01-01T00:00:00Z", "state=failed"]) {
      expect(await world.ask("GET", `entries?${query}`)).toMatchObject({
        status: 409,
        body: { error: { code: "console_index_missing" } },
      });
    }
    expect(await world.change("entries/search", { key: "a-key-of-some-length" })).toMatchObject({ status: 409 });
    expect(await createConsoleIndexes(world.driver)).toBe(11);
    expect(await createConsoleIndexes(world.driver)).toBe(0);
    for (const query of ["", "tenant=acme", "operation=invoices.create", "from=2020-01-01T00:00:00Z"]) {
      expect(await found(query)).toEqual([open, id]);
    }
    expect(await found("to=2020-01-01T00:00:00Z")).toEqual([]);
    const byKey = await world.change("entries/search", { key: '"a-key-of-some-length"' });
    expect(byKey.body.entries).toMatchObject([{ id, key: "a-k…gth" }]);
    expect(await dropConsoleIndexes(world.driver)).toBe(11);
    expect((await world.ask("GET", "entries")).status).toBe(409);
    expect(world.failures).toEqual([]);
  });

  it("tell an entry's life, and what may be decided", async () => {
    const world = await consoleWorld();
    const id = await unresolved(world);
    const { status, body } = await world.ask("GET", `entries/${id}`);
    expect(status).toBe(200);
    expect(body.entry).toMatchObject({ id, state: "needs_recovery", outcome: { kind: "none" }, version: 1 });
    expect(body.timeline.map(({ kind }: { kind: string }) => kind)).toEqual(["claimed", "call", "needs_recovery"]);
    expect(body.timeline[1]).toMatchObject({ derivedKey: "deri…0001", weight: "warn" });
    expect(body.decisions).toEqual({ mayResolve: true, mayRetry: true, why: null, attempt: 1 });
    expect((await world.ask("GET", "unresolved")).body).toMatchObject({ entries: [{ id }], next: null });
    expect((await world.ask("GET", `entries/${"0".repeat(64)}`)).status).toBe(404);
    expect(world.failures).toEqual([]);
  });

  it("show upkeep, clients, outbox and audit", async () => {
    const world = await consoleWorld();
    const id = await deadLetter(world, { orderBy: "a-long-order-by-of-someone" });
    for (let n = 0; n < 4; n++) await finished(world, { fingerprint: new Uint8Array(35).fill(7) });
    expect((await world.ask("GET", "upkeep")).body).toMatchObject({
      layout: { name: "plain" },
      partitions: [],
      sweepers: [],
    });
    expect((await world.ask("GET", "outbox?state=dead")).body.messages).toMatchObject([{ id, orderBy: "a-lo…eone" }]);
    expect((await world.ask("GET", "outbox?state=pending")).body).toEqual({ messages: [], next: null });
    const { body } = await world.ask("GET", "clients");
    expect(body.findings).toMatchObject([{ kind: "key_per_attempt", tenant: "acme", client: "app", count: 4 }]);
    expect(body.sampled.entries).toBe(4);
    expect((await world.ask("GET", "audit")).body).toEqual({ records: [], next: null });
    expect((await world.ask("GET", "series")).body).toEqual({ source: "none", stepMs: 5000, points: [] });
    expect(world.failures).toEqual([]);
  });
});
