import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { query } from "../support/postgres.ts";
import { behave, post, send } from "./support/client.ts";
import { postRaw } from "./support/crash-raw.ts";
import { type Example, eventually, makeDataDir, removeDataDir, startExample } from "./support/example.ts";

// A storm with everything that can go wrong, under marks that cannot be mistaken for anything else; then the whole
// output of every process is searched for them. The example as `npm start` runs it: its logs are what an operator sees.

const mark = (what: string): string => `${what}${randomUUID().replaceAll("-", "")}`;
const KEY = mark("key");
const BODY = mark("body");
const TOKEN = mark("sk_test_unknown");
const HEADER = mark("header");
const SECRETS = { KEY, BODY, TOKEN, HEADER, "a known token": "sk_test_acme" };

let dir: string;
let example: Example;
/** What the API processes of this file have written, the killed ones included. */
const processes: Example[] = [];

async function start(): Promise<void> {
  example = await startExample({ env: { ONCEKEY_DATA_DIR: dir, ONCEKEY_LEASE_MS: "1000", ONCEKEY_WAIT_MS: "300" } });
  processes.push(example);
}

beforeAll(async () => {
  dir = makeDataDir();
  await start();
});

afterAll(async () => {
  await example?.stop();
  removeDataDir(dir);
});

let sent = 0;
const freshKey = (): string => `${KEY}-${sent++}`;
const invoice = { customer_id: BODY, amount_minor: 1999, currency: "EUR", metadata: { [BODY]: BODY } };
const charge = { amount_minor: 1999, currency: "EUR", source: BODY };
const headers = { "x-marked": HEADER, cookie: `session=${HEADER}` };

const submit = (path: string, body: unknown, more: Readonly<Record<string, string>> = {}, key = freshKey()) =>
  post(`${example.api}/v1/${path}`, key, body, { headers: { ...headers, ...more } });

async function goodAndRefused(): Promise<void> {
  const key = freshKey();
  const made = await Promise.all(Array.from({ length: 5 }, () => submit("invoices", invoice, {}, key)));
  expect(made.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
  expect((await submit("invoices", { ...invoice, amount_minor: 1 }, {}, key)).status).toBe(422);
  expect((await submit("invoices", { ...invoice, [BODY]: 1 })).status).toBe(400);
  expect((await submit("invoices", `{"customer_id":"${BODY}`)).status).toBe(400);
  expect((await submit("invoices", BODY, { "content-type": BODY })).status).toBe(415);
  expect((await submit("invoices", invoice, {}, `${KEY},${KEY}`)).status).toBe(400);
  expect((await submit("charges", { ...charge, source: "tok_declined" })).status).toBe(402);
  const { id } = (await submit("charges", charge)).json();
  expect((await submit("refunds", { charge_id: id, amount_minor: 5 })).status).toBe(201);
  expect((await submit("refunds", { charge_id: id, amount_minor: 5_000 })).status).toBe(422);
  expect((await submit("refunds", { charge_id: BODY, amount_minor: 5 })).status).toBe(404);
  expect((await submit("refunds", `{"charge_id":"${BODY}`)).status).toBe(400);
  await postRaw(`${example.api}/v1/invoices`, [Buffer.from(`idempotency-key: ${KEY}\0`)], invoice);
  const stranger = { token: TOKEN, key: freshKey(), body: invoice };
  expect((await send("POST", `${example.api}/v1/invoices`, stranger)).status).toBe(401);
}

/** The provider fails, the database refuses rows (and says so, with their content, in its error). */
async function failing(): Promise<void> {
  await behave(example.psp, { fail_next: 4 });
  expect((await submit("charges", charge)).status).toBe(409);
  await behave(example.psp, { fail_next: 0 });
  const { id } = (await submit("charges", charge)).json();
  const tables = ["invoices", "charges", "refunds"];
  for (const table of tables) {
    await query(example.database, `ALTER TABLE ${table} ADD CONSTRAINT never CHECK (currency_of() IS NULL) NOT VALID`);
  }
  const refund = { charge_id: id, amount_minor: 1 };
  const refused = [submit("invoices", invoice), submit("charges", charge), submit("refunds", refund)];
  expect((await Promise.all(refused)).map(({ status }) => status)).toEqual([500, 500, 500]);
  for (const table of tables) await query(example.database, `ALTER TABLE ${table} DROP CONSTRAINT never`);
}

async function crashing(): Promise<void> {
  const points = [
    ["invoices", invoice, "insert_finished:before"],
    ["charges", charge, "call:authorize:after"],
  ] as const;
  for (const [path, body, point] of points) {
    const key = freshKey();
    await expect(submit(path, body, { "x-lab-crash": point }, key)).rejects.toThrow();
    await example.ended;
    await start();
    await eventually("the retry is answered", 30_000, async () => (await submit(path, body, {}, key)).status === 201);
  }
}

/** Every log file of the data directory, and what the API processes wrote. */
function everythingLogged(): Map<string, string> {
  const logs = new Map<string, string>();
  for (const name of readdirSync(dir, { recursive: true, encoding: "utf8" })) {
    const path = join(dir, name);
    if (name.endsWith(".log") && statSync(path).isFile()) logs.set(name, readFileSync(path, "utf8"));
  }
  processes.forEach((one, index) => {
    logs.set(`stdout of API ${index}`, one.stdout());
    logs.set(`stderr of API ${index}`, one.stderr());
  });
  return logs;
}

it("nothing secret stands in any log after a storm of failures and crashes", async () => {
  await query(
    example.database,
    "CREATE FUNCTION currency_of() RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'EUR' $$",
  );
  await goodAndRefused();
  await failing();
  await crashing();
  await example.stop();
  const logs = everythingLogged();
  expect([...logs.keys()]).toEqual(expect.arrayContaining(["postgres.log", "psp/psp.log", "stderr of API 2"]));
  // The search itself works: what must be there is found.
  expect(logs.get("stderr of API 0")).toContain("unexpected: ");
  expect(logs.get("postgres.log")).toContain("violates check constraint");
  const found = [...logs].flatMap(([name, text]) =>
    Object.entries(SECRETS).flatMap(([what, secret]) => (text.includes(secret) ? [`${what} in ${name}`] : [])),
  );
  expect(found).toEqual([]);
});
