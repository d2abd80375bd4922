import { createConsoleIndexes } from "oncekey/console";
import { changeLayout } from "oncekey/postgres";
import { describe, expect, it } from "vitest";
import { routes } from "../../src/console/router.ts";
import { ADA, consoleWorld, deadLetter, finished, unresolved } from "./support/console-world.ts";

const reason = "ticket 4711";
const GLOBEX = {
  tenant: "globex",
  client: "globex-client",
  operation: "globex.orders",
  key: "globex-key-of-some-length",
};

/** Everything of two tenants: entries in each state, messages, decisions, and what this process saw. */
async function twoTenants(layout: "plain" | "partitioned") {
  const world = await consoleWorld();
  await createConsoleIndexes(world.driver);
  if (layout === "partitioned") await changeLayout(world.driver, "partitioned");
  const theirs = {
    finished: await finished(world, GLOBEX),
    unresolved: await unresolved(world, { ...GLOBEX, key: "globex-other-key-of-some-length" }),
    letter: await deadLetter(world, { tenant: "globex", topic: "globex.topic" }),
  };
  const ours = {
    finished: await finished(world),
    unresolved: await unresolved(world),
    letter: await deadLetter(world),
  };
  for (let n = 0; n < 3; n++)
    await finished(world, { ...GLOBEX, key: `globex-${n}`, fingerprint: new Uint8Array(35).fill(9) });
  await world.change(`entries/${theirs.unresolved}/reveal`, { what: "key", reason: "globex-reason" });
  await world.change(`entries/${theirs.unresolved}/resolve`, {
    verdict: "released",
    force: true,
    reason: "globex-reason",
  });
  await world.query("UPDATE oncekey.entry SET state = 'needs_recovery' WHERE state = 'released'");
  const about = {
    tenant: "globex",
    operation: "globex.orders",
    runKind: "phases",
    entryId: theirs.finished,
    by: "request",
    runId: 1,
    trace: null,
  } as const;
  world.console.observe({ ...about, kind: "mismatch", state: "succeeded", durationMs: 5, waitedMs: 0 });
  world.console.observe({ ...about, kind: "threw", error: "GlobexError", durationMs: 5, waitedMs: 0 });
  world.who.operator = { ...ADA, tenant: "acme" };
  return { world, theirs, ours };
}

const bodies: Readonly<Record<string, object>> = {
  reveal: { what: "key", reason },
  retry: { reason },
  resolve: { verdict: "released", force: true, reason },
  resend: { reason },
  discard: { reason },
  search: {},
};

describe.each(["plain", "partitioned"] as const)("an operator of one tenant, in the %s layout", (layout) => {
  it("is told of nothing that belongs to another one, by any route", async () => {
    const { world, theirs } = await twoTenants(layout);
    const before = await world.query("SELECT state, sweep_at FROM oncekey.entry WHERE tenant = 'globex' ORDER BY id");
    for (const { method, path } of routes) {
      for (const id of [theirs.finished, theirs.unresolved]) {
        const pattern = path.source.replaceAll(/^\^|\$$|\\/g, "");
        const filled = pattern.replace("([0-9a-f]{64})", id).replace("([^/]{1,300})", theirs.letter);
        const told =
          method === "GET"
            ? await world.ask("GET", filled)
            : await world.change(filled, bodies[filled.split("/").at(-1) ?? ""]);
        const names = filled !== pattern;
        const without = filled === "upkeep" ? 403 : 200;
        const expected = names ? 404 : without;
        expect([filled, told.status]).toEqual([filled, expected]);
        expect(JSON.stringify(told.body).toLowerCase()).not.toContain("globex");
        for (const other of [theirs.finished, theirs.unresolved])
          expect(JSON.stringify(told.body)).not.toContain(other);
      }
    }
    expect(await world.query("SELECT state, sweep_at FROM oncekey.entry WHERE tenant = 'globex' ORDER BY id")).toEqual(
      before,
    );
    expect(await world.query("SELECT state FROM oncekey.outbox WHERE tenant = 'globex'")).toEqual([{ state: "dead" }]);
    expect(world.failures).toEqual([]);
  });

  it("finds nothing of another one by any search", async () => {
    const { world, theirs } = await twoTenants(layout);
    for (const query of [
      `id=${theirs.finished}`,
      `id=${theirs.finished.slice(0, 12)}`,
      "tenant=globex",
      "operation=globex.orders",
      "client=globex-client",
      "state=needs_recovery&operation=globex.orders",
      "tenant=globex&client=globex-client&operation=globex.orders",
    ]) {
      expect([query, (await world.ask("GET", `entries?${query}`)).body]).toEqual([query, { entries: [], next: null }]);
    }
    for (const members of [
      { key: GLOBEX.key },
      GLOBEX,
      { ...GLOBEX, tenant: undefined },
      { key: GLOBEX.key, tenant: "globex" },
    ]) {
      expect((await world.change("entries/search", members)).body).toEqual({ entries: [], next: null });
    }
    const stream = await fetch(`${world.origin}/console/api/stream`);
    const reader = stream.body?.getReader();
    let text = "";
    while (!text.includes("event: overview")) text += new TextDecoder().decode((await reader?.read())?.value);
    await reader?.cancel();
    expect(text).not.toContain("globex");
    expect(text).toContain('"unresolved":{"count":1');
  });

  it("sees and decides what is its own", async () => {
    const { world, ours } = await twoTenants(layout);
    const { body } = await world.ask("GET", "overview");
    expect(body).toMatchObject({ unresolved: { count: 1 }, outbox: { dead: { count: 1 } }, tables: [] });
    expect((await world.ask("GET", "entries")).body.entries.map(({ id }: { id: string }) => id)).toEqual([
      ours.unresolved,
      ours.finished,
    ]);
    const decided = [
      await world.change(`entries/${ours.unresolved}/reveal`, { what: "key", reason }),
      await world.change(`entries/${ours.unresolved}/resolve`, { verdict: "released", force: true, reason }),
      await world.change(`entries/${ours.unresolved}/retry`, { reason }),
      await world.change(`outbox/${ours.letter}/discard`, { reason }),
    ];
    expect(decided.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const { records } = (await world.ask("GET", "audit")).body;
    expect(records.map(({ action }: { action: string }) => action)).toEqual([
      "discard",
      "retry",
      "resolve",
      "reveal_key",
    ]);
    const { points } = (await world.ask("GET", "series")).body;
    expect(
      points.every(
        ({ errors, mismatch, bytes }: Record<string, unknown>) => errors === 0 && mismatch === 0 && bytes === null,
      ),
    ).toBe(true);
    expect(world.failures).toEqual([]);
  });
});
