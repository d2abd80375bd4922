import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { behave, list, post, send } from "./support/client.ts";
import { eventually, removeDataDir, spawnExample } from "./support/example.ts";

let dir: string;
let psp: string;
let kill: () => Promise<void>;

async function startPsp(): Promise<void> {
  const { child, output, ended } = await spawnExample({ script: "psp", env: { PSP_DATA_DIR: dir } });
  const ready = () => /^oncekey psp ready (\{.*\})$/m.exec(output.stdout)?.[1];
  await eventually("the provider is ready", 20_000, () => ready() !== undefined);
  psp = JSON.parse(ready() ?? "{}").url;
  kill = async () => {
    child.kill("SIGKILL");
    await ended;
  };
}

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "oncekey-psp-"));
  chmodSync(dir, 0o755);
  await startPsp();
});

afterEach(async () => {
  await kill();
  removeDataDir(dir);
});

const body = { amount_minor: 100, currency: "EUR", source: "tok_visa" };
const pay = (key: string, sent: unknown = body) => post(`${psp}/authorizations`, key, sent, { token: null });
const cut = (key: string) => expect(pay(key)).rejects.toThrow();
const landed = (key: string) => list(`${psp}/authorizations?key=${key}`);
/** When the provider made the payment, by the clock it shares with this test. */
const landedAt = async (key: string) => Date.parse((await landed(key))[0]?.created_at);

it("demands a key of its own", async () => {
  expect((await send("POST", `${psp}/authorizations`, { token: null, body })).status).toBe(400);
  expect(await list(`${psp}/authorizations`)).toEqual([]);
});

it("gives one object per key and refuses the key for another body", async () => {
  const answers = await Promise.all(Array.from({ length: 5 }, () => pay("k")));
  expect(new Set(answers.map((answer) => answer.json().id)).size).toBe(1);
  expect((await pay("k", { ...body, amount_minor: 101 })).status).toBe(422);
  expect(await landed("k")).toHaveLength(1);
});

it("records a declined authorization as a value", async () => {
  expect((await pay("k", { ...body, source: "tok_declined" })).json().status).toBe("declined");
  expect((await landed("k")).map((one) => one.status)).toEqual(["declined"]);
});

it("makes a second object where it does not dedupe, or its window is over", async () => {
  await pay("k");
  await behave(psp, { dedupe: false });
  await pay("k");
  expect(await landed("k")).toHaveLength(2);
  await behave(psp, { dedupe: true, dedupe_window_ms: 0 });
  await pay("k");
  expect(await landed("k")).toHaveLength(3);
});

it("fails the next calls without making a payment", async () => {
  await behave(psp, { fail_next: 2 });
  expect([(await pay("k")).status, (await pay("k")).status]).toEqual([500, 500]);
  expect(await landed("k")).toEqual([]);
  expect((await pay("k")).status).toBe(201);
});

it("makes the payment of a dropped call and cuts the connection", async () => {
  await behave(psp, { drop_next: 1 });
  await cut("k");
  expect(await landed("k")).toHaveLength(1);
  expect((await pay("k")).status).toBe(200);
});

it("lands a payment late, once for calls that repeat the key", async () => {
  await behave(psp, { land_after_ms: 400 });
  const sentAt = Date.now();
  await cut("k");
  await cut("k");
  await eventually("the payment landed", 10_000, async () => (await landed("k")).length > 0);
  expect(await landedAt("k")).toBeGreaterThanOrEqual(sentAt + 400);
  expect((await pay("k")).status).toBe(200);
  expect(await landed("k")).toHaveLength(1);
});

it("lands an accepted payment after having been killed", async () => {
  await behave(psp, { land_after_ms: 1_500 });
  const sentAt = Date.now();
  await cut("k");
  await kill();
  await startPsp();
  await eventually("the payment landed", 20_000, async () => (await landed("k")).length > 0);
  expect(await landedAt("k")).toBeGreaterThanOrEqual(sentAt + 1_500);
  expect(await landed("k")).toHaveLength(1);
});

it("keeps payments and behaviour over a kill", async () => {
  const made = (await pay("k")).json();
  await behave(psp, { find_lag_ms: 3 });
  await kill();
  await startPsp();
  expect(await landed("k")).toEqual([made]);
  expect((await send("GET", `${psp}/behaviour`)).json().find_lag_ms).toBe(3);
  expect((await pay("k")).json()).toEqual(made);
});

it("hides new payments from look-ups for the lag", async () => {
  await behave(psp, { find_lag_ms: 3_600_000 });
  expect((await pay("k")).status).toBe(201);
  expect(await landed("k")).toEqual([]);
  await behave(psp, { find_lag_ms: 0 });
  expect(await landed("k")).toHaveLength(1);
});

it("answers 409 to a cancelled key, and what landed where it came too late", async () => {
  const cancel = (key: string) => send("POST", `${psp}/authorizations/cancel?key=${key}`, { token: null });
  expect((await cancel("early")).json().data).toEqual([]);
  expect((await pay("early")).status).toBe(409);
  const made = (await pay("late")).json();
  expect((await cancel("late")).json().data).toEqual([made]);
  expect((await pay("late")).status).toBe(200);
});

it("never lands a payment whose key was cancelled in time", async () => {
  await behave(psp, { land_after_ms: 300 });
  await cut("k");
  await cut("other");
  await send("POST", `${psp}/authorizations/cancel?key=k`, { token: null });
  // The other one was accepted later: once it has landed, the time of the cancelled one is over.
  await eventually("the other payment landed", 10_000, async () => (await landed("other")).length > 0);
  expect(await landed("k")).toEqual([]);
});

it("refuses everything but a change of behaviour while it is down", async () => {
  await behave(psp, { down: true });
  expect((await pay("k")).status).toBe(503);
  expect((await send("GET", `${psp}/authorizations`)).status).toBe(503);
  await behave(psp, { down: false });
  expect((await pay("k")).status).toBe(201);
});

it("makes a payment only after its latency", async () => {
  await behave(psp, { latency_ms: 300 });
  const sentAt = Date.now();
  expect((await pay("k")).status).toBe(201);
  expect(await landedAt("k")).toBeGreaterThanOrEqual(sentAt + 300);
});

it("refuses a knob it does not know", async () => {
  const answer = await send("POST", `${psp}/behaviour`, { token: null, body: { latency: 1 } });
  expect(answer.status).toBe(400);
});

it("lets no second process write the same ledger", async () => {
  const second = await spawnExample({ script: "psp", env: { PSP_DATA_DIR: dir } });
  expect(await second.ended).toBe(1);
  expect(second.output.stderr).toContain("Another provider process");
});

it("keeps payments, keys and look-ups per account, and shows all of them to a caller without one", async () => {
  const as = (id: string, secret = `psp_test_${id.slice("acct_".length)}`) => ({
    token: null,
    headers: { "x-psp-account": id, authorization: `Bearer ${secret}` },
  });
  const [acme, globex] = [as("acct_acme"), as("acct_globex")];
  const made = await Promise.all([
    post(`${psp}/authorizations`, "k", body, acme),
    post(`${psp}/authorizations`, "k", { ...body, amount_minor: 7 }, globex),
    pay("k", { ...body, amount_minor: 8 }),
  ]);
  expect(made.map((answer) => answer.json().account)).toEqual(["acct_acme", "acct_globex", undefined]);
  const seen = async (who: typeof acme) => (await send("GET", `${psp}/authorizations?key=k`, who)).json().data.length;
  expect([await seen(acme), await seen(globex), (await landed("k")).length]).toEqual([1, 1, 3]);
  await send("POST", `${psp}/captures/cancel?key=c`, acme);
  const capture = (who: typeof acme) => post(`${psp}/captures`, "c", { authorization: "auth_1" }, who);
  expect([(await capture(acme)).status, (await capture(globex)).status]).toEqual([409, 201]);
  for (const stranger of [as("acct_acme", "psp_test_globex"), as("acct_none"), as("acct_acme", "")]) {
    expect((await send("GET", `${psp}/authorizations`, stranger)).status).toBe(401);
  }
});
