import { type ChildProcess, fork } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readdir, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { S3 } from "@aws-sdk/client-s3";
import { startFauxqs } from "fauxqs";
import {
  type BodyStore,
  createOncekey,
  type EncryptionKey,
  type OncekeyOptions,
  type RunResult,
  respond,
} from "oncekey";
import { fileBodyStore } from "oncekey/bodies/file";
import { s3BodyStore } from "oncekey/bodies/s3";
import { fromPg } from "oncekey/drivers/pg";
import { createRelay, delivered } from "oncekey/outbox";
import { postgresStore } from "oncekey/postgres";
import { createSweeper } from "oncekey/sweeper";
import type { PoolClient } from "pg";
import { beforeEach, describe, expect, it } from "vitest";
import { statements } from "../../src/stores/postgres/sql.gen.ts";
import { atEnd, createDatabase, passTime, query, testPool } from "../support/postgres.ts";

const ring: readonly EncryptionKey[] = [{ id: 3, key: new Uint8Array(32).fill(3) }];
const DAYS_MS = 3 * 86_400_000;

let url: string;
beforeEach(async () => {
  ({ url } = await createDatabase());
});

type Options = Partial<OncekeyOptions<PoolClient>> & { readonly max?: number; readonly control?: boolean };

/** One process's instance: a transaction that answers `bytes`, phases that record, call, send and fail on demand. */
async function instance({ max = 10, control = false, ...options }: Options = {}) {
  const told: unknown[] = [];
  const driver = fromPg(testPool(url, { max }));
  const store = postgresStore(driver, control ? { control: fromPg(testPool(url, { max: 1 })) } : {});
  const once = createOncekey({ store, waitMs: 30_000, onError: (error) => told.push(error), ...options });
  let runs = 0;
  let bytes = new Uint8Array();
  let failing = false;
  const report = once.transaction({
    name: "reports.create",
    version: 1,
    replayHeaders: ["x-secret"],
    async run({ send }) {
      runs++;
      await send("report.made", { secret: "PLAINTEXT" });
      return respond(201, bytes, { "content-type": "text/plain", "x-secret": "PLAINTEXT" });
    },
  });
  const charge = once.phases({
    name: "charges.create",
    version: 1,
    async run(op) {
      const made = await op.phase("made", async () => ({ secret: "PLAINTEXT", tenant: op.scope.tenant }));
      const called = await op.call("authorize", {
        timeoutMs: 1_000,
        request: {},
        run: async () => ({ authorization: "PLAINTEXT" }),
        recover: { dedupes: { forMs: DAYS_MS } },
      });
      if (failing) throw new Error("stopped on purpose");
      return op.complete(async () => respond(201, JSON.stringify({ made, called, input: op.input })));
    },
  });
  await once.start();
  return {
    once,
    store,
    told,
    runs: () => runs,
    sweeper: createSweeper(once),
    report: (given: Uint8Array, key = "k", tenant = "acme") => {
      bytes = new Uint8Array(given);
      return once.run(report, { scope: { tenant, client: null }, key, input: {} });
    },
    charge: (tenant: string, stops = false) => {
      failing = stops;
      const input = { body: { secret: "PLAINTEXT" } };
      return once.run(charge, { scope: { tenant, client: null }, key: "k", input, context: { secret: "PLAINTEXT" } });
    },
    consume: (tenant: string) =>
      once.consume({ tenant, source: "queue", id: "d" }, async () => ({ secret: "PLAINTEXT", tenant }), {
        onDuplicate: "replay",
      }),
  };
}

async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "oncekey-bodies-"));
  atEnd(() => rm(path, { recursive: true, force: true }));
  return path;
}

const filesIn = async (path: string) =>
  (await readdir(path, { recursive: true, withFileTypes: true })).filter((one) => one.isFile()).map(({ name }) => name);

const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const answerOf = (result: RunResult) =>
  "outcome" in result ? [result.kind, digest(result.outcome.body)] : [result.kind];

/** Everything that the schema holds, as text in which bytes are readable. */
async function everything(): Promise<string> {
  const tables = await query(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'oncekey'");
  const texts: string[] = [];
  for (const { tablename } of tables) {
    for (const row of await query(url, `SELECT * FROM oncekey.${tablename}`)) {
      for (const value of Object.values(row)) {
        texts.push(value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : String(value));
      }
    }
  }
  return texts.join("\n");
}

describe("what is stored", () => {
  const text = new TextEncoder().encode("PLAINTEXT of a report");

  async function used(options: Options) {
    const one = await instance(options);
    await one.report(text);
    await one.charge("acme");
    await one.charge("globex", true).catch(() => {});
    await one.consume("acme");
    return one;
  }

  it("shows nothing that clients sent, operations gave or others answered where there are keys, and all of it where not", async () => {
    await used({ encryptionKeys: ring });
    expect(await everything()).not.toContain("PLAINTEXT");
    ({ url } = await createDatabase());
    await used({});
    expect((await everything()).split("PLAINTEXT").length).toBeGreaterThan(8);
  });

  it("is read again in every place by processes that have the keys, and what was plain before stays readable", async () => {
    for (const before of [{ encryptionKeys: ring }, {}]) {
      ({ url } = await createDatabase());
      await used(before);
      const reader = await instance({ encryptionKeys: [{ id: 4, key: new Uint8Array(32).fill(4) }, ...ring] });
      expect(answerOf(await reader.report(text))).toEqual(["replayed", digest(text)]);
      const replayed = await reader.charge("acme");
      expect(replayed.kind).toBe("replayed");
      const resumed = await reader.charge("globex");
      expect(resumed.kind).toBe("completed");
      expect("outcome" in resumed && JSON.parse(Buffer.from(resumed.outcome.body).toString())).toEqual({
        made: { secret: "PLAINTEXT", tenant: "globex" },
        called: { authorization: "PLAINTEXT" },
        input: { body: { secret: "PLAINTEXT" } },
      });
      expect(await reader.consume("acme")).toMatchObject({ kind: "replayed", value: { secret: "PLAINTEXT" } });
      const payloads: string[] = [];
      const relay = createRelay(reader.once, {
        topics: {
          "*": async ({ payload }) => {
            payloads.push(payload);
            return delivered();
          },
        },
      });
      expect(await relay.runOnce()).toMatchObject({ delivered: 1 });
      expect(payloads).toEqual(['{"secret":"PLAINTEXT"}']);
    }
  });

  const MOVES: readonly (readonly [string, string, (w: Awaited<ReturnType<typeof instance>>) => Promise<unknown>])[] = [
    [
      "an outcome",
      `UPDATE oncekey.entry AS e SET outcome = o.outcome FROM oncekey.entry AS o
       WHERE e.tenant = 'globex' AND o.tenant = 'acme' AND e.operation = o.operation AND o.operation = 'reports.create'`,
      (w) => w.report(text, "k", "globex"),
    ],
    [
      "a recorded value",
      `UPDATE oncekey.phase AS p SET value = o.value FROM oncekey.phase AS o, oncekey.entry AS e, oncekey.entry AS f
       WHERE p.entry_id = e.id AND e.tenant = 'globex' AND o.entry_id = f.id AND f.tenant = 'acme' AND p.name = o.name`,
      (w) => w.charge("globex"),
    ],
    [
      "an input",
      `UPDATE oncekey.entry AS e SET input = o.input FROM oncekey.entry AS o
       WHERE e.tenant = 'globex' AND o.tenant = 'acme' AND e.operation = o.operation AND o.operation = 'charges.create'`,
      (w) => w.charge("globex"),
    ],
    ["a whole entry", "UPDATE oncekey.entry SET tenant = 'initech' WHERE tenant = 'globex'", (w) => w.charge("globex")],
    [
      "what a delivery's handler gave",
      `UPDATE oncekey.inbox AS i SET value = o.value FROM oncekey.inbox AS o WHERE i.tenant = 'globex' AND o.tenant = 'acme'`,
      (w) => w.consume("globex"),
    ],
  ];

  it.each(MOVES)("%s that is moved to another tenant does not open", async (_what, sql, use) => {
    const w = await instance({ encryptionKeys: ring });
    for (const tenant of ["acme", "globex"]) {
      await w.report(text, "k", tenant);
      await w.charge(tenant, true).catch(() => {});
      await w.consume(tenant);
    }
    await query(url, sql);
    await expect(use(w)).rejects.toMatchObject({ code: "oncekey_store_broken" });
  });

  it("a message that is moved to another tenant is a dead letter, and reaches nobody", async () => {
    const w = await instance({ encryptionKeys: ring });
    await w.report(text);
    await query(url, "UPDATE oncekey.outbox SET tenant = 'globex'");
    const relay = createRelay(w.once, { topics: { "*": async () => delivered() } });
    expect(await relay.runOnce()).toMatchObject({ delivered: 0, dead: 1 });
    expect(await query(url, "SELECT reason FROM oncekey.outbox")).toEqual([
      { reason: "its payload cannot be opened (oncekey_store_broken)" },
    ]);
  });

  it("is not told by a refusal, nor is a message delivered sealed by a relay that lacks the key", async () => {
    const w = await instance({ encryptionKeys: ring });
    await w.report(text);
    const other = await instance({});
    await expect(other.report(text)).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    const seen: unknown[] = [];
    const relay = createRelay(other.once, {
      topics: {
        "*": async (message) => {
          seen.push(message);
          return delivered();
        },
      },
    });
    expect(await relay.runOnce()).toMatchObject({ delivered: 0, dead: 0, postponed: 1 });
    expect(seen).toEqual([]);
  });
});

const STORES: readonly (readonly [string, () => Promise<BodyStore>])[] = [
  ["the file system", async () => fileBodyStore({ directory: await directory() })],
  ["S3", s3],
];

async function s3(): Promise<BodyStore> {
  const server = await startFauxqs({ port: 0, host: "127.0.0.1", logger: false });
  const credentials = { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "hush-hush-secret" };
  const endpoint = `http://127.0.0.1:${server.port}`;
  const client = new S3({ endpoint, region: "us-east-1", credentials, forcePathStyle: true });
  atEnd(async () => {
    client.destroy();
    await server.stop();
  });
  await client.createBucket({ Bucket: "bodies" });
  return s3BodyStore({ client, bucket: "bodies" });
}

/** Files without a name that this process holds open. */
async function heldFiles(): Promise<number> {
  const numbers = await readdir("/proc/self/fd");
  const targets = await Promise.all(numbers.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
  return targets.filter((target) => target.includes("oncekey-")).length;
}

describe.each(STORES)("a long body in %s", (_name, makeStore) => {
  it("is answered byte for byte to 50 duplicates in two processes, run once, and no file is held afterwards", async () => {
    const bodyStore = await makeStore();
    const options = { bodyStore, encryptionKeys: ring };
    const all = [await instance(options), await instance(options)] as const;
    for (const [key, bytes] of [
      ["noise", new Uint8Array(randomBytes(2_000_000))],
      ["text", new TextEncoder().encode("PLAINTEXT, ".repeat(100_000))],
    ] as const) {
      const racing = await Promise.all(
        Array.from({ length: 50 }, (_, n) => all[n % 2 === 0 ? 0 : 1].report(bytes, key)),
      );
      const kinds = racing.map(({ kind }) => kind).toSorted();
      expect(kinds).toEqual(["completed", ...Array.from({ length: 49 }, () => "replayed")]);
      expect(new Set(racing.map((one) => answerOf(one)[1]))).toEqual(new Set([digest(bytes)]));
      const later = await Promise.all(
        Array.from({ length: 50 }, (_, n) => all[n % 2 === 0 ? 0 : 1].report(bytes, key)),
      );
      expect(new Set(later.map((one) => answerOf(one).join()))).toEqual(new Set([`replayed,${digest(bytes)}`]));
    }
    expect(all[0].runs() + all[1].runs()).toBe(2);
    expect([...all[0].told, ...all[1].told]).toEqual([]);
    expect(await heldFiles()).toBe(0);
    const stored = await query(url, "SELECT octet_length(outcome) AS length, body_pointer FROM oncekey.entry");
    expect(stored.every(({ length, body_pointer }) => Number(length) < 400 && body_pointer !== null)).toBe(true);
  });

  it("needs no connection that a transaction might hold for ever", async () => {
    const bodyStore = await makeStore();
    for (const options of [
      { max: 2, bodyStore },
      { max: 2, control: true, bodyStore },
    ]) {
      const w = await instance(options);
      const bytes = new Uint8Array(randomBytes(300_000));
      const keys = Array.from({ length: 20 }, (_, n) => `${options.control ?? false}-${n}`);
      const results = await Promise.all(keys.map((key) => w.report(bytes, key)));
      expect(results.map(({ kind }) => kind)).toEqual(keys.map(() => "completed"));
    }
  });

  it("goes when its entry is purged, whichever of two sweepers finds it", async () => {
    const bodyStore = await makeStore();
    const options = { bodyStore };
    const [one, two] = [await instance(options), await instance(options)];
    const bytes = new Uint8Array(randomBytes(300_000));
    const keys = Array.from({ length: 12 }, (_, n) => `k${n}`);
    for (const key of keys) await one.report(bytes, key);
    const pointers = await query(url, "SELECT body_pointer AS pointer FROM oncekey.entry");
    await passTime(url, DAYS_MS);
    let removed = 0;
    for (let round = 0; round < 3; round++) {
      const reports = await Promise.all([one.sweeper.runOnce(), two.sweeper.runOnce()]);
      removed += reports.reduce((sum, { removedBodies }) => sum + removedBodies, 0);
    }
    expect(removed).toBe(keys.length);
    for (const { pointer } of pointers) expect(await bodyStore.get(String(pointer))).toBeNull();
    expect(await query(url, "SELECT FROM oncekey.body")).toEqual([]);
  });
});

describe("a process that is killed between putting a body and its commit", () => {
  it("leaves an orphan, which the sweeper removes; the retry runs anew", async () => {
    const path = await directory();
    const child = fork(fileURLToPath(new URL("support/body-worker.ts", import.meta.url)), {
      execArgv: ["--conditions=oncekey-source", "--import", "tsx"],
      env: { ...process.env, NODE_NO_WARNINGS: "1", BODY_WORKER: JSON.stringify({ url, directory: path }) },
    });
    expect(await endOf(child)).toBe("SIGKILL");
    const [orphan, ...more] = await filesIn(path);
    expect(more).toEqual([]);
    expect(await query(url, "SELECT FROM oncekey.entry")).toEqual([]);
    const w = await instance({ bodyStore: fileBodyStore({ directory: path }), retentionMs: 10 * DAYS_MS });
    const bytes = new Uint8Array(randomBytes(300_000));
    expect((await w.report(bytes, "killed")).kind).toBe("completed");
    expect(await w.sweeper.runOnce()).toMatchObject({ removedBodies: 0 });
    expect(await filesIn(path)).toHaveLength(2);
    await passTime(url, DAYS_MS);
    expect(await w.sweeper.runOnce()).toMatchObject({ removedBodies: 1 });
    const left = await filesIn(path);
    expect(left).toHaveLength(1);
    expect(left).not.toContain(orphan);
    expect(answerOf(await w.report(bytes, "killed"))).toEqual(["replayed", digest(bytes)]);
  });
});

function endOf(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => child.once("exit", (_code, signal) => resolve(signal)));
}

describe("a look at loose bodies that a purge overtakes", () => {
  // Volatile, or the planner would ask it. The clock of the looking session stands still in the middle of its scan until the test lets it go on.
  const STANDING_CLOCK = `
    CREATE SCHEMA slow;
    CREATE FUNCTION slow.statement_timestamp() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(77);
      RETURN pg_catalog.statement_timestamp();
    END $$`;

  it("never takes a body for one in use whose entry is gone", async () => {
    const bodyStore = fileBodyStore({ directory: await directory() });
    const { report } = await instance({ bodyStore });
    await report(new Uint8Array(randomBytes(300_000)));
    const [entry] = await query(url, "SELECT body_pointer AS pointer FROM oncekey.entry");
    await passTime(url, DAYS_MS);
    await query(url, STANDING_CLOCK);
    const [holder, purging] = [testPool(url, { max: 1 }), testPool(url, { max: 1 })];
    await holder.query("SELECT pg_advisory_lock(77)");
    // The purge begins first and commits in the middle of the look.
    await purging.query("BEGIN");
    await purging.query(statements.purge, [100]);
    const slowly = new URL(url);
    slowly.searchParams.set("options", "-c search_path=slow,pg_catalog");
    const looking = postgresStore(fromPg(testPool(slowly.href, { max: 1 }))).bodies.due(10, 60_000);
    await expect
      .poll(() => query(url, "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))
      .toHaveLength(1);
    await purging.query("COMMIT");
    await holder.query("SELECT pg_advisory_unlock(77)");
    expect(await looking).toEqual([{ pointer: entry?.pointer, inUse: false }]);
  });
});
