import { fromPg } from "oncekey/drivers/pg";
import { printGrants } from "oncekey/postgres";
import { describe, expect, it } from "vitest";
import { testPool } from "../support/postgres.ts";
import { newMessage } from "../support/store-values.ts";
import { type ConsoleWorld, consoleWorld, deadLetter, finished, running, unresolved } from "./support/console-world.ts";

const reason = "found at the provider, ticket 4711";
const outcome = { status: 201, body: { amount: 1 } };

const audited = async ({ ask }: ConsoleWorld) => (await ask("GET", "audit")).body.records;

describe("a decision in the console", () => {
  it("stores the outcome with all digits of its numbers, and who decided and why", async () => {
    const world = await consoleWorld();
    const id = await unresolved(world);
    const body = `{"verdict":"succeeded","attempt":1,"reason":"${reason}","force":true,"outcome":{"status":201,"body":{"amount":9007199254740993}}}`;
    const told = await world.change(`entries/${id}/resolve`, body);
    expect(told).toMatchObject({ status: 200, body: { kind: "succeeded" } });
    expect(told.body.message).toMatch(/answered with the stored 201/);
    expect(await audited(world)).toMatchObject([
      { by: "ada", action: "resolve", entryId: id, tenant: "acme", verdict: "succeeded", note: reason },
    ]);
    const shown = await world.change(`entries/${id}/reveal`, { what: "outcome", reason });
    expect(shown.body.value).toMatchObject({ status: 201, body: '{"amount":9007199254740993}' });
    const { body: seen } = await world.ask("GET", `entries/${id}`);
    expect(seen.entry).toMatchObject({ state: "succeeded", status: 201, outcome: { kind: "stored" } });
    expect(seen.decisions).toMatchObject({ mayResolve: false, mayRetry: false });
    expect(seen.timeline.map(({ title }: { title: string }) => title)).toEqual(
      expect.arrayContaining(["Decided by ada: succeeded with 201", "ada looked at the stored outcome"]),
    );
    expect(world.failures).toEqual([]);
  });

  it("is refused as oncekey resolve refuses it, and changes nothing", async () => {
    const world = await consoleWorld();
    const [done, busy, open] = [await finished(world), await running(world), await unresolved(world)];
    await world.query("UPDATE oncekey.intent SET settles_at = NULL");
    const decide = (id: string, more: object = {}) =>
      world.change(`entries/${id}/resolve`, { verdict: "succeeded", outcome, reason, ...more });
    expect((await decide(done)).body.error).toMatchObject({ code: "console_refused", kind: "finished" });
    expect((await decide(busy, { force: true })).body.error).toMatchObject({ kind: "running" });
    expect((await decide(open)).body.error).toMatchObject({ kind: "unsettled", openCalls: ["authorize"] });
    expect((await decide(open, { attempt: 7, force: true })).body.error).toMatchObject({ kind: "changed", attempt: 1 });
    expect(await decide("0".repeat(64))).toMatchObject({ status: 404 });
    for (const bad of [
      { outcome: undefined },
      { outcome: { status: 500 } },
      { outcome: { status: 201, headers: { "set-cookie": "a=b" } } },
      { verdict: "failed", outcome: { status: 402 } },
      { verdict: "released" },
      { verdict: "perhaps" },
      { attempt: 0 },
    ]) {
      expect(await decide(open, bad)).toMatchObject({
        status: 400,
        body: { error: { code: "console_request_invalid" } },
      });
    }
    expect(await audited(world)).toEqual([]);
    expect((await world.ask("GET", "unresolved")).body.entries).toHaveLength(1);
    expect(world.failures).toEqual([]);
  });

  it("asks the sweeper to take an entry up now, where it can", async () => {
    const world = await consoleWorld();
    const [open, inputless, done] = [
      await unresolved(world),
      await unresolved(world, { input: null }),
      await finished(world),
    ];
    const retry = (id: string) => world.change(`entries/${id}/retry`, { reason });
    expect(await retry(open)).toMatchObject({ status: 200, body: { kind: "asked" } });
    expect((await retry(inputless)).body.error.message).toMatch(/input is not stored/);
    expect((await retry(done)).body.error.message).toMatch(/outcome already/);
    expect((await retry("f".repeat(64))).status).toBe(404);
    const target = { operation: "invoices.create", runKind: "phases" as const, operationVersion: 1 };
    const taken = await world.store.takeDue(target, 10, 30_000);
    expect(taken).toHaveLength(1);
    expect(await audited(world)).toMatchObject([{ action: "retry", entryId: open, note: reason }]);
  });

  it("sends a dead letter again, or gives it up; what a relay holds is left to it", async () => {
    const world = await consoleWorld();
    const [again, gone] = [await deadLetter(world), await deadLetter(world)];
    const held = newMessage();
    await world.store.transaction((session) => session.send(held));
    await world.store.outbox.claim({ topics: ["*"], limit: 10, leaseMs: 60_000 });
    const act = (id: string, what: string) => world.change(`outbox/${encodeURIComponent(id)}/${what}`, { reason });
    expect(await act(again, "resend")).toMatchObject({ status: 200, body: { kind: "resent" } });
    expect(await act(gone, "discard")).toMatchObject({ status: 200, body: { kind: "discarded" } });
    expect((await act(held.id, "resend")).body.error).toMatchObject({ code: "console_refused" });
    expect((await act(gone, "resend")).status).toBe(404);
    expect((await world.ask("GET", "outbox?state=pending")).body.messages).toHaveLength(2);
    expect((await world.ask("GET", "outbox")).body.messages).toEqual([]);
    const records = await audited(world);
    expect(records.map(({ action, messageId }: Record<string, string>) => [action, messageId])).toEqual([
      ["discard", gone],
      ["resend", again],
    ]);
  });

  it("shows what is masked only after the audit has it", async () => {
    const world = await consoleWorld();
    const id = await unresolved(world, { key: "a-key-of-some-length" });
    const reveal = (what: string) => world.change(`entries/${id}/reveal`, { what, reason });
    expect((await reveal("key")).body).toEqual({ what: "key", value: "a-key-of-some-length" });
    expect((await reveal("derived_keys")).body.value).toEqual([
      { call: "authorize", generation: 1, key: "derived-key-of-the-call-0001" },
    ]);
    expect((await reveal("outcome")).body.value).toEqual({ kind: "none" });
    expect((await reveal("input")).status).toBe(400);
    await world.query("ALTER TABLE oncekey.audit ADD CONSTRAINT audit_full CHECK (false) NOT VALID");
    const refused = await reveal("key");
    expect(refused.status).toBe(500);
    expect(JSON.stringify(refused.body)).not.toContain("a-key");
    expect((await audited(world)).map(({ action }: { action: string }) => action)).toEqual([
      "reveal_outcome",
      "reveal_derived_keys",
      "reveal_key",
    ]);
  });
});

describe("the console's database roles", () => {
  async function worldAs(part: "console" | "operator") {
    const world = await consoleWorld();
    const role = `r_${part}_${Math.random().toString(36).slice(2)}`;
    await world.query(`CREATE ROLE ${role} LOGIN`, printGrants({ [part]: role }));
    const pool = testPool(world.url.replace("postgres@", `${role}@`));
    return { world, driver: fromPg(pool), role };
  }

  it("console: looks at everything and decides nothing", async () => {
    const { world: owner, driver } = await worldAs("console");
    const id = await unresolved(owner);
    await deadLetter(owner);
    const world = await consoleWorld({ driver });
    for (const path of [
      "overview",
      "unresolved",
      `entries/${id}`,
      "outbox",
      "outbox?state=pending",
      "upkeep",
      "audit",
    ]) {
      expect([path, (await world.ask("GET", path)).status]).toEqual([path, 200]);
    }
    const { body } = await world.ask("GET", `entries/${id}`);
    expect(body.entry.outcome).toEqual({ kind: "hidden", why: "this database role may not read it" });
    expect(body.timeline[1].derivedKey).toBeUndefined();
    for (const [path, members] of [
      [`entries/${id}/retry`, {}],
      [`entries/${id}/reveal`, { what: "key" }],
      [`entries/${id}/resolve`, { verdict: "released", force: true }],
    ] as const) {
      const told = await world.change(path, { reason, ...members });
      expect([path, told.status, told.body.error.code]).toEqual([path, 403, "console_role_lacks"]);
    }
    expect(world.failures).toEqual([]);
  });

  it("operator: decides, too, and cannot change the audit", async () => {
    const { world: owner, driver, role } = await worldAs("operator");
    const [id, other, letter] = [await unresolved(owner), await unresolved(owner), await deadLetter(owner)];
    const world = await consoleWorld({ driver });
    const done = await Promise.all([
      world.change(`entries/${other}/retry`, { reason }),
      world.change(`entries/${id}/reveal`, { what: "derived_keys", reason }),
      world.change(`outbox/${letter}/resend`, { reason }),
    ]);
    expect(done.map(({ status }) => status)).toEqual([200, 200, 200]);
    const resolve = { verdict: "failed", attempt: 1, force: true, reason, outcome: { status: 402 } };
    expect((await world.change(`entries/${id}/resolve`, resolve)).status).toBe(200);
    expect((await world.ask("GET", "clients")).status).toBe(200);
    expect((await world.ask("GET", "audit")).body.records).toHaveLength(4);
    for (const sql of [
      "DELETE FROM oncekey.audit",
      "UPDATE oncekey.resolution SET note = ''",
      "SELECT payload FROM oncekey.outbox",
    ]) {
      await expect(driver.run(sql, [])).rejects.toMatchObject({ code: "42501" });
    }
    expect(role).toMatch(/operator/);
    expect(world.failures).toEqual([]);
  });
});
