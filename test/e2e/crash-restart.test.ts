import { afterAll, beforeAll, expect, it } from "vitest";
import { effects, list, post } from "./support/client.ts";
import { type Example, eventually, isRunning, makeDataDir, removeDataDir, startExample } from "./support/example.ts";

// The example as `npm start` runs it, killed and started again on the same data directory.

let dir: string;
let example: Example;

const start = () => startExample({ env: { ONCEKEY_DATA_DIR: dir, ONCEKEY_LEASE_MS: "1000" } });

beforeAll(async () => {
  dir = makeDataDir();
  example = await start();
});

afterAll(async () => {
  await example?.stop();
  removeDataDir(dir);
});

async function crash(key: string, amount_minor: number): Promise<void> {
  const body = { amount_minor, currency: "EUR", source: "tok_visa" };
  const headers = { "x-lab-crash": "record_call:authorize:before" };
  await expect(post(`${example.api}/v1/charges`, key, body, { headers })).rejects.toThrow();
  await example.ended;
  expect(isRunning(example.pid)).toBe(false);
}

const madeFor = async (kind: string, amount: number) =>
  (await list(`${example.psp}/${kind}`)).filter((one) => one.amount_minor === amount).length;

it("a killed API is succeeded by one that adopts its database and provider, and the charge is made once", async () => {
  const before = example;
  await crash("returns", 4711);
  example = await start();
  expect(example.database).toBe(before.database);
  expect(example.psp).toBe(before.psp);
  const body = { amount_minor: 4711, currency: "EUR", source: "tok_visa" };
  let answer = await post(`${example.api}/v1/charges`, "returns", body);
  await eventually("the retry is answered", 30_000, async () => {
    answer = await post(`${example.api}/v1/charges`, "returns", body);
    return answer.status === 201;
  });
  const replay = await post(`${example.api}/v1/charges`, "returns", body);
  expect(replay.bytes.equals(answer.bytes)).toBe(true);
  expect((await effects(example.api, "charges")).get("returns")).toBe(1);
  expect([await madeFor("authorizations", 4711), await madeFor("captures", 4711)]).toEqual([1, 1]);
});

it("a charge whose client never returns is finished by the sweeper of the next API", async () => {
  await crash("never-returns", 4712);
  example = await start();
  await eventually("the sweeper has settled the charge", 30_000, async () => {
    const charge = (await list(`${example.api}/v1/charges`)).find((one) => one.amount_minor === 4712);
    return charge?.status === "succeeded";
  });
  expect((await effects(example.api, "charges")).get("never-returns")).toBe(1);
  expect([await madeFor("authorizations", 4712), await madeFor("captures", 4712)]).toEqual([1, 1]);
  const late = { amount_minor: 4712, currency: "EUR", source: "tok_visa" };
  const answer = await post(`${example.api}/v1/charges`, "never-returns", late);
  expect(answer.status).toBe(201);
  expect(answer.headers["idempotent-replayed"]).toBe("true");
});
