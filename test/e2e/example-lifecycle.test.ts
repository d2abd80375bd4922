import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { Webhook } from "standardwebhooks";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { list, post, send } from "./support/client.ts";
import {
  type Example,
  type ExampleOptions,
  eventually,
  isRunning,
  makeDataDir,
  removeDataDir,
  spawnExample,
  startExample,
} from "./support/example.ts";

const invoice = { customer_id: "cus_1", amount_minor: 1, currency: "EUR" };
const isRoot = userInfo().uid === 0;
const NOBODY = 65_534;

let dir: string;
let running: Example[];

beforeEach(() => {
  dir = makeDataDir();
  running = [];
});

afterEach(async () => {
  for (const example of running.reverse()) if (isRunning(example.pid)) await example.stop();
  // Nothing may be left of what a killed API started.
  if (processIds(dir).length > 0) await (await startExample({ env: { ONCEKEY_DATA_DIR: dir } })).stop();
  expect(processIds(dir)).toEqual([]);
  removeDataDir(dir);
});

async function start(options: ExampleOptions = {}): Promise<Example> {
  const example = await startExample({ ...options, env: { ONCEKEY_DATA_DIR: dir, ...options.env } });
  running.push(example);
  return example;
}

/** The database and the provider of a data directory, as far as they still run. */
function processIds(data: string): number[] {
  const read = (path: string) => {
    try {
      return readFileSync(join(data, path), "utf8");
    } catch {
      return "";
    }
  };
  const database = Number(read("postgres/postmaster.pid").split("\n")[0] || "0");
  const psp = Number(/"pid":(\d+)/.exec(read("psp/process.json"))?.[1] ?? "0");
  return [database, psp].filter((pid) => pid > 0 && isRunning(pid));
}

describe("starting and stopping", () => {
  it("prints exactly one line on standard output and three curl lines on standard error", async () => {
    const example = await start();
    expect(example.stdout()).toMatch(
      /^oncekey payments ready \{"api":"http:\/\/127\.0\.0\.1:\d+","psp":"http:\/\/127\.0\.0\.1:\d+","database":"postgres:\/\/[^"]+","pid":\d+\}\n$/,
    );
    await eventually("the hints are printed", 5_000, () => example.stderr().includes("Ctrl-C"));
    expect(example.stderr().match(/curl .*\$TOKEN/g)).toHaveLength(3);
    expect(example.stderr()).not.toContain("sk_test_");
    expect(statSync(join(dir, "token")).mode & 0o777).toBe(0o600);
  });

  it.each(["SIGTERM", "SIGINT"] as const)("stops API, provider and database on %s", async (signal) => {
    const example = await start();
    expect(processIds(dir)).toHaveLength(2);
    process.kill(example.pid, signal);
    expect(await example.ended).toBe(0);
    expect(processIds(dir)).toEqual([]);
    await expect(send("GET", example.psp)).rejects.toThrow();
  });

  it("answers a request that runs while it is asked to stop", async () => {
    const example = await start();
    const answering = post(`${example.api}/v1/invoices`, "k", invoice, { headers: { "x-lab-delay-ms": "1000" } });
    const client = new pg.Client({ connectionString: example.database });
    await client.connect();
    const inTransaction = "select from pg_stat_activity where state = 'idle in transaction'";
    await eventually("the request runs", 5_000, async () => (await client.query(inTransaction)).rowCount === 1);
    await client.end();
    process.kill(example.pid, "SIGTERM");
    expect((await answering).status).toBe(201);
    expect(await example.ended).toBe(0);
  });

  it("keeps its data over a clean stop", async () => {
    const first = await start();
    const made = await post(`${first.api}/v1/invoices`, "k", invoice);
    await first.stop();
    const second = await start();
    const replayed = await post(`${second.api}/v1/invoices`, "k", invoice);
    expect(replayed.bytes.equals(made.bytes)).toBe(true);
    expect(replayed.headers["idempotent-replayed"]).toBe("true");
  });
});

describe("after SIGKILL of the API", () => {
  it("the next start adopts the database and the provider, and stops them in the end", async () => {
    const first = await start();
    await post(`${first.api}/v1/charges`, "k", { amount_minor: 5, currency: "EUR", source: "tok_visa" });
    await first.kill();
    const left = processIds(dir);
    expect(left).toHaveLength(2);
    const second = await start();
    expect(processIds(dir)).toEqual(left);
    expect([second.psp, second.database]).toEqual([first.psp, first.database]);
    expect(await list(`${second.psp}/captures`)).toHaveLength(1);
    await second.stop();
    expect(processIds(dir)).toEqual([]);
  });

  it("a start recovers when database and provider were killed too", async () => {
    const first = await start();
    const made = await post(`${first.api}/v1/charges`, "k", { amount_minor: 5, currency: "EUR", source: "tok_visa" });
    const left = processIds(dir);
    await first.kill();
    for (const pid of left) process.kill(pid, "SIGKILL");
    const second = await start();
    const again = await post(`${second.api}/v1/charges`, "k", { amount_minor: 5, currency: "EUR", source: "tok_visa" });
    expect(again.bytes.equals(made.bytes)).toBe(true);
    expect(await list(`${second.psp}/captures`)).toHaveLength(1);
  });

  it("a joined API serves on, and the next start owns what is left", async () => {
    const owner = await start();
    const joined = await start();
    await owner.kill();
    expect((await post(`${joined.api}/v1/invoices`, "k", invoice)).status).toBe(201);
    const next = await start();
    expect(next.database).toBe(joined.database);
    await joined.stop();
    expect(processIds(dir)).toHaveLength(2);
    await next.stop();
    expect(processIds(dir)).toEqual([]);
  });
});

describe("a second API", () => {
  it("joins on the same data directory and stops nothing but itself", async () => {
    const owner = await start();
    const joined = await start();
    expect([joined.database, joined.psp]).toEqual([owner.database, owner.psp]);
    const made = await post(`${owner.api}/v1/invoices`, "k", invoice);
    expect((await post(`${joined.api}/v1/invoices`, "k", invoice)).bytes.equals(made.bytes)).toBe(true);
    await joined.stop();
    expect(processIds(dir)).toHaveLength(2);
    expect((await list(`${owner.api}/v1/invoices`)).length).toBe(1);
  });

  it("joins when both start at the same moment", async () => {
    const both = await Promise.all([start(), start(), start()]);
    expect(new Set(both.map((example) => example.database)).size).toBe(1);
    expect(new Set(both.map((example) => example.psp)).size).toBe(1);
  });

  it("joins by DATABASE_URL and PSP_URL", async () => {
    const owner = await start();
    const elsewhere = makeDataDir();
    const env = { ONCEKEY_DATA_DIR: elsewhere, DATABASE_URL: owner.database, PSP_URL: owner.psp };
    const joined = await start({ env });
    await post(`${joined.api}/v1/invoices`, "k", invoice);
    expect(await list(`${owner.api}/v1/invoices`)).toHaveLength(1);
    await joined.stop();
    expect(processIds(dir)).toHaveLength(2);
    expect(processIds(elsewhere)).toEqual([]);
    removeDataDir(elsewhere);
  });

  it("collapses 50 duplicates spread over three processes into one execution", async () => {
    const apis = [await start(), await start(), await start()];
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        post(
          `${apis[index % 3]?.api}/v1/charges`,
          "k",
          { amount_minor: 5, currency: "EUR", source: "tok_visa" },
          {
            headers: { "x-lab-delay-ms": "200" },
          },
        ),
      ),
    );
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.text}`)).size).toBe(1);
    expect(await list(`${apis[0]?.psp}/captures`)).toHaveLength(1);
  });
});

describe("settings", () => {
  it.each([
    ["ONCEKEY_PROFILE", "nobody", /nobody/],
    [
      "ONCEKEY_PSP_RECOVER",
      "hope",
      /ONCEKEY_PSP_RECOVER must be one of dedupes, find_cancel, find_settles, at_most_once/,
    ],
    ["ONCEKEY_LEASE_MS", "soon", /ONCEKEY_LEASE_MS must be a whole number/],
    ["ONCEKEY_WEBHOOK_URL", "nowhere", /ONCEKEY_WEBHOOK_URL must be an http: or https: URL/],
    ["PORT", "70000", /PORT must be a whole number from 0 to 65535/],
  ])("%s=%s is a clear start error and leaves nothing running", async (name, value, message) => {
    const { output, ended } = await spawnExample({ env: { ONCEKEY_DATA_DIR: dir, [name]: value } });
    expect(await ended).toBe(1);
    expect(output.stdout).toBe("");
    expect(output.stderr).toMatch(message);
    expect(processIds(dir)).toEqual([]);
  });

  it("a taken port is a clear start error and leaves nothing running", async () => {
    const other = makeDataDir();
    const example = await start();
    const { output, ended } = await spawnExample({ env: { ONCEKEY_DATA_DIR: other, PORT: new URL(example.api).port } });
    expect(await ended).toBe(1);
    expect(output.stderr).toContain("Set PORT to a free port");
    expect(processIds(other)).toEqual([]);
    removeDataDir(other);
  });

  it("without ONCEKEY_LAB=1 there is no lab and its headers do nothing", async () => {
    const example = await start({ env: { ONCEKEY_LAB: "0" } });
    expect((await send("GET", `${example.api}/lab/effects`)).status).toBe(404);
    const headers = { "x-lab-crash": "insert_finished:before" };
    expect((await post(`${example.api}/v1/invoices`, "k", invoice, { headers })).status).toBe(201);
  });

  it("a short retention makes a late retry run anew, and an invoice's reference gives the same invoice again", async () => {
    const example = await start({ env: { ONCEKEY_RETENTION_MS: "2000" } });
    const charge = { amount_minor: 5, currency: "EUR", source: "tok_visa" };
    const [firstInvoice, firstCharge] = await Promise.all([
      post(`${example.api}/v1/invoices`, "k", invoice),
      post(`${example.api}/v1/charges`, "k", charge),
    ]);
    expect((await post(`${example.api}/v1/invoices`, "k", invoice)).headers["idempotent-replayed"]).toBe("true");
    await eventually("the charge runs anew", 20_000, async () => {
      const again = await post(`${example.api}/v1/charges`, "k", charge);
      return again.status === 201 && again.json().id !== firstCharge.json().id;
    });
    await eventually("the invoice's key is forgotten", 20_000, async () => {
      const late = await post(`${example.api}/v1/invoices`, "k", invoice);
      expect(late.json()).toEqual(firstInvoice.json());
      return late.headers["idempotent-replayed"] === undefined;
    });
    await eventually("another payload may use the key", 20_000, async () => {
      const other = await post(`${example.api}/v1/invoices`, "k", { ...invoice, amount_minor: 2 });
      return other.status === 201 && other.json().id !== firstInvoice.json().id;
    });
    expect(await list(`${example.api}/v1/invoices`)).toHaveLength(2);
  });

  it("tells what happened, on standard error or as webhooks signed for the tenant", async () => {
    const received: { tenant: string | null; headers: Record<string, string>; body: string }[] = [];
    const receiver = createServer((request, response) => {
      const tenant = new URL(request.url ?? "/", "http://receiver").searchParams.get("tenant");
      let body = "";
      request.setEncoding("utf8").on("data", (text) => {
        body += text;
      });
      request.on("end", () => {
        received.push({ tenant, headers: request.headers as Record<string, string>, body });
        response.end();
      });
    });
    await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
    try {
      const plain = await start();
      await post(`${plain.api}/v1/invoices`, "k1", invoice);
      await eventually("the message is named", 10_000, () => /^message invoice\.created \S{43}$/m.test(plain.stderr()));
      await plain.stop();
      const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks`;
      const signing = await start({ env: { ONCEKEY_WEBHOOK_URL: url } });
      await post(`${signing.api}/v1/invoices`, "k2", invoice);
      await post(`${signing.api}/v1/invoices`, "k2", invoice, { token: "sk_test_globex" });
      await eventually("both tenants' webhooks arrive", 10_000, () => received.length === 2);
      for (const { tenant, headers, body } of received) {
        const file = join(dir, `webhook-secret-${tenant}.json`);
        expect(statSync(file).mode & 0o777).toBe(0o600);
        new Webhook(JSON.parse(readFileSync(file, "utf8"))).verify(body, headers);
        expect(JSON.parse(body)).toMatchObject({
          type: "invoice.created",
          data: { id: expect.stringMatching(/^inv_/) },
        });
      }
      expect(received.map(({ tenant }) => tenant).sort()).toEqual(["acme", "globex"]);
    } finally {
      await new Promise((done) => receiver.close(done));
    }
  });

  it("npm run worker finishes a charge whose API runs without a worker", async () => {
    const env = { ONCEKEY_WORKER: "0", ONCEKEY_LEASE_MS: "1000" };
    const first = await start({ env });
    const charge = { amount_minor: 5, currency: "EUR", source: "tok_visa" };
    const headers = { "x-lab-crash": "record_call:authorize:after" };
    await expect(post(`${first.api}/v1/charges`, "k", charge, { headers })).rejects.toThrow();
    const second = await start({ env });
    const worker = await start({ script: "worker", env: { ONCEKEY_LEASE_MS: "1000" } });
    await eventually("the worker settles the charge", 30_000, async () => {
      return (await list(`${second.api}/v1/charges`))[0]?.status === "succeeded";
    });
    expect(await list(`${second.psp}/captures`)).toHaveLength(1);
    expect(await worker.stop()).toBe(0);
  });
});

describe("accounts", () => {
  if (!isRoot) {
    it("runs as an ordinary user (as every test of this file does here: this is not root)", async () => {
      const example = await start();
      expect((await post(`${example.api}/v1/invoices`, "k", invoice)).status).toBe(201);
    });
    return;
  }

  it("runs as an ordinary user", async () => {
    chownSync(dir, NOBODY, NOBODY);
    const example = await start({ account: { uid: NOBODY, gid: NOBODY } });
    expect((await post(`${example.api}/v1/invoices`, "k", invoice)).status).toBe(201);
    expect(await example.stop()).toBe(0);
    expect(processIds(dir)).toEqual([]);
  });

  it("as root moves what the database's user cannot reach, and names the place", async () => {
    const closed = mkdtempSync(join(tmpdir(), "oncekey-closed-"));
    chmodSync(closed, 0o700);
    const data = join(closed, "data");
    const first = await start({ env: { ONCEKEY_DATA_DIR: data } });
    await eventually("the place is named", 5_000, () => first.stderr().includes("are in"));
    const place = /are in (\S+)\.$/m.exec(first.stderr())?.[1] ?? "";
    expect(processIds(place)).toHaveLength(2);
    const made = await post(`${first.api}/v1/invoices`, "k", invoice);
    await first.kill();
    const second = await start({ env: { ONCEKEY_DATA_DIR: data } });
    expect(second.database).toBe(first.database);
    expect((await post(`${second.api}/v1/invoices`, "k", invoice)).bytes.equals(made.bytes)).toBe(true);
    await second.stop();
    expect(processIds(place)).toEqual([]);
    removeDataDir(place);
    removeDataDir(closed);
  });
});

describe("under npm", () => {
  it("the printed pid is the API process and a signal to npm stops all of it", async () => {
    const npm = spawnSync("npm", ["--version"], { encoding: "utf8" });
    expect(npm.status).toBe(0);
    const example = await start({ command: ["npm", "start"] });
    expect(isRunning(example.pid)).toBe(true);
    await example.stop();
    await eventually("the API is gone", 20_000, () => !isRunning(example.pid));
    expect(processIds(dir)).toEqual([]);
  });
});
