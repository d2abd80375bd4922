import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fromPg } from "oncekey/drivers/pg";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import { type Driver, eraseContent, printGrants, rotateStored } from "oncekey/postgres";
import pg from "pg";
import postgres from "postgres";
import { describe, expect, it } from "vitest";
import { rotatedTables, sealedHead } from "../../src/stores/postgres/rotated-tables.ts";
import { statementRunner } from "../../src/stores/postgres/statements.ts";
import { gate } from "../support/gate.ts";
import { atEnd, createDatabase, passTime, query, testPool } from "../support/postgres.ts";
import { cli, cliProgram } from "./support/cli.ts";
import { contentService, keyOf, LONG, ringFile, ringText, rowsOf, wordsIn } from "./support/stored-content.ts";

const KINDS = ["transaction", "phases", "capture"] as const;
const PARTS = ["context", "delivery", "input", "message", "outcome", "payload", "record"];

/** A tenant's entries of every kind, two messages (pending), and a remembered delivery, sealed under these keys. */
async function filled(ids: readonly number[], options: Parameters<typeof contentService>[1] = {}) {
  const { url } = await createDatabase();
  const service = await contentService(url, { encryptionKeys: ids.map(keyOf), ...options });
  for (const kind of KINDS)
    expect(await service.call(kind, { tenant: "acme", key: `k-${kind}` })).toMatchObject({ status: 201 });
  expect(await service.consume("acme", "d1")).toBe("done");
  return { url, service };
}

async function rotate(url: string, ids: readonly number[], ...args: string[]) {
  const run = await cli(["rotate", "--json", "--keys-file", await ringFile(...ids), ...args], { url });
  expect(run.stderr).toBe("");
  return { code: run.code, ...JSON.parse(run.stdout) };
}

interface Counted {
  readonly values: readonly { readonly part: string; readonly keyId: number | null; readonly count: number }[];
}

function testSql(url: string) {
  const sql = postgres(url, { max: 4, onnotice: () => {} });
  atEnd(() => sql.end({ timeout: 5 }));
  return sql;
}

/** `<part> <key id>` of all that is stored. */
const places = ({ values }: Counted) => values.map(({ part, keyId }) => `${part} ${keyId ?? "plain"}`);
const under = (keyId: number | string) => PARTS.map((part) => `${part} ${keyId}`);

/** A service that knows these keys only answers everything from what is stored, and delivers the messages. */
async function answersUnder(url: string, ids: readonly number[], keys = KINDS.map((kind) => `k-${kind}`)) {
  const service = await contentService(url, { encryptionKeys: ids.map(keyOf) });
  for (const kind of KINDS) {
    for (const key of keys.filter((one) => one.includes(kind))) {
      const { status, body } = await service.call(kind, { tenant: "acme", key });
      expect({ status, isWhole: body.includes(LONG) }).toEqual({ status: 201, isWhole: true });
    }
  }
  expect(service.runs).toEqual([]);
  return service;
}

describe("oncekey rotate", () => {
  it("seals everything under the newest key, after which the old one is needed no more", async () => {
    const { url } = await filled([1]);
    expect(await wordsIn(url)).toEqual([]);
    const before = await rowsOf(url);
    const planned = await rotate(url, [2, 1], "--dry-run");
    expect(planned).toMatchObject({ code: 5, kind: "planned", newestKeyId: 2, resealed: 0, plain: 0 });
    expect(places(planned)).toEqual(under(1));
    expect(await rowsOf(url)).toBe(before);
    const rotated = await rotate(url, [2, 1]);
    expect(rotated).toMatchObject({
      code: 0,
      kind: "rotated",
      resealed: planned.underOtherKeys,
      underOtherKeys: 0,
      unreadable: [],
    });
    expect(places(rotated)).toEqual(under(2));
    const service = await answersUnder(url, [2]);
    expect(await service.consume("acme", "d1")).toBe("replayed");
    expect(await service.relay.runOnce()).toMatchObject({ delivered: 2 });
    expect(await rotate(url, [2])).toMatchObject({ code: 0, resealed: 0, underOtherKeys: 0 });
  });

  it("tells people what is left, and never a key", async () => {
    const { url } = await filled([1]);
    const text = await cli(["rotate", "--dry-run", "--keys-file", await ringFile(2, 1)], { url });
    expect(text.code).toBe(5);
    expect(text.stdout).toMatch(
      /^Nothing was changed \(dry run\)\.\n\nstored values by kind and key\n {2}context, key 1 /,
    );
    expect(text.stdout).toMatch(/\n\d+ values are under other keys than 2\. Keep these keys\./);
    process.env.ONCEKEY_ENCRYPTION_KEYS = ringText(2, 1);
    try {
      const done = await cli(["rotate"], { url });
      expect(done).toMatchObject({ code: 0, stderr: "" });
      expect(done.stdout).toMatch(/^\d+ values were sealed anew under key 2\.\n/);
      expect(done.stdout).toContain("No value is left under another key than 2");
      for (const id of [1, 2])
        expect(done.stdout + text.stdout).not.toContain(Buffer.from(keyOf(id).key).toString("base64"));
    } finally {
      delete process.env.ONCEKEY_ENCRYPTION_KEYS;
    }
  });

  it("leaves plain values alone unless asked, and marks of authorship always", async () => {
    const { url } = await filled([]);
    const pool = testPool(url);
    await pool.query("UPDATE oncekey.inbox SET value = '\\x00aabb' WHERE delivery = 'd1'");
    const left = await rotate(url, [1]);
    expect(left).toMatchObject({ code: 0, resealed: 0, underOtherKeys: 0 });
    expect(places(left)).toEqual(under("plain").filter((place) => !place.startsWith("delivery")));
    expect(await rotate(url, [1], "--seal-plain", "--dry-run")).toMatchObject({ code: 5, plain: left.plain });
    const sealed = await rotate(url, [1], "--seal-plain");
    expect(sealed).toMatchObject({ code: 0, kind: "rotated", resealed: left.plain, plain: 0 });
    expect(await wordsIn(url)).toEqual([]);
    expect(await query(url, "SELECT encode(value, 'hex') AS value FROM oncekey.inbox")).toEqual([{ value: "00aabb" }]);
    const service = await answersUnder(url, [1]);
    expect(await service.relay.runOnce()).toMatchObject({ delivered: 2 });
  });

  it("leaves bodies that lie elsewhere where they are: their keys are sealed anew", async () => {
    const { url, service } = await filled([1], { bodyThresholdBytes: 100 });
    const before = new Map(service.bodies);
    expect(before.size).toBe(3);
    expect(await rotate(url, [2, 1])).toMatchObject({ code: 0, underOtherKeys: 0 });
    expect(service.bodies).toEqual(before);
    const later = await contentService(url, { encryptionKeys: [keyOf(2)], bodyThresholdBytes: 100 });
    for (const [pointer, body] of before) later.bodies.set(pointer, body);
    for (const kind of KINDS) {
      expect((await later.call(kind, { tenant: "acme", key: `k-${kind}` })).body).toContain(LONG);
    }
  });

  it("runs beside requests and a worker that resumes what others left", async () => {
    const { url } = await createDatabase();
    const arrived = { count: 0, all: gate() };
    const never = new Promise<void>(() => {});
    const dying = await contentService(url, {
      encryptionKeys: [keyOf(1)],
      leaseMs: 600_000,
      between: () => {
        arrived.count += 1;
        if (arrived.count === 12) arrived.all.open();
        return never;
      },
    });
    const left = Array.from({ length: 12 }, (_, index) => `k-phases-left-${index}`);
    for (const key of left) void dying.call("phases", { tenant: "acme", key }).catch(() => {});
    await arrived.all.promise;
    await passTime(url, 700_000);
    const living = await contentService(url, { encryptionKeys: [keyOf(2), keyOf(1)] });
    const fresh = Array.from({ length: 12 }, (_, index) => `k-${KINDS[index % 3]}-fresh-${index}`);
    const rotation = rotate(url, [2, 1], "--batch=2", "--pause=5ms");
    let resumed = 0;
    const traffic = (async () => {
      for (const [index, key] of fresh.entries()) {
        expect(await living.call(KINDS[index % 3] ?? "capture", { tenant: "acme", key })).toMatchObject({
          status: 201,
        });
        resumed += (await living.sweeper.runOnce()).resumed;
      }
    })();
    await Promise.all([rotation, traffic]);
    for (let round = 0; round < 20 && resumed < left.length; round++)
      resumed += (await living.sweeper.runOnce()).resumed;
    expect(resumed).toBe(left.length);
    expect(await query(url, "SELECT DISTINCT state FROM oncekey.entry")).toEqual([{ state: "succeeded" }]);
    const rest = await rotate(url, [2, 1]);
    expect(rest).toMatchObject({ code: 0, kind: "rotated", underOtherKeys: 0, unreadable: [] });
    await answersUnder(url, [2], [...left, ...fresh]);
  });

  it("goes on where it was killed", async () => {
    const { url, service } = await filled([1]);
    for (let index = 0; index < 30; index++)
      await service.call("capture", { tenant: "acme", key: `k-capture-${index}` });
    const args = [await cliProgram(), "rotate", "--keys-file", await ringFile(2, 1), "--batch=1", "--pause=30ms"];
    const child = spawn(process.execPath, args, { env: { ...process.env, DATABASE_URL: url }, stdio: "ignore" });
    const ended = new Promise<string | null>((done) => child.once("close", (_, signal) => done(signal)));
    const underNew = async () => {
      const [row] = await query(
        url,
        "SELECT count(*)::int AS n FROM oncekey.entry WHERE substr(outcome, 1, 2) = '\\x8102'",
      );
      return Number(row?.n);
    };
    while ((await underNew()) < 3) await sleep(10);
    child.kill("SIGKILL");
    expect(await ended).toBe("SIGKILL");
    const done = await underNew();
    expect(done).toBeLessThan(33);
    const keys = [
      ...KINDS.map((kind) => `k-${kind}`),
      ...Array.from({ length: 30 }, (_, index) => `k-capture-${index}`),
    ];
    await answersUnder(url, [2, 1], keys);
    expect(await rotate(url, [2, 1])).toMatchObject({ code: 0, underOtherKeys: 0 });
    await answersUnder(url, [2], keys);
  });

  it("tells of values that no key opens, leaves them as they are and goes on with the others", async () => {
    const { url } = await filled([1]);
    const lost = await contentService(url, { encryptionKeys: [keyOf(3)] });
    await lost.call("capture", { tenant: "acme", key: "k-lost" });
    // Moved: to another tenant, and from one entry into another.
    await query(
      url,
      "UPDATE oncekey.entry SET tenant = 'globex' WHERE key = 'k-phases'",
      `UPDATE oncekey.entry SET outcome = (SELECT outcome FROM oncekey.entry WHERE key = 'k-phases')
       WHERE key = 'k-capture'`,
    );
    const stuck =
      "SELECT key, input, context, outcome FROM oncekey.entry WHERE key IN ('k-lost', 'k-capture') ORDER BY key";
    const before = await query(url, stuck);
    const result = await rotate(url, [2, 1]);
    expect(result).toMatchObject({ code: 5, kind: "partly", newestKeyId: 2 });
    const why = (part: string, kind: string) => expect.objectContaining({ part, why: kind });
    expect(result.unreadable).toEqual(
      expect.arrayContaining([
        why("outcome", "key_missing"),
        why("outcome", "broken"),
        why("input", "broken"),
        why("context", "broken"),
      ]),
    );
    const after = await query(url, stuck);
    expect(after.map(({ key, outcome }) => ({ key, outcome }))).toEqual(
      before.map(({ key, outcome }) => ({ key, outcome })),
    );
    expect(result.values).toContainEqual({ part: "outcome", keyId: 3, count: 1 });
    const text = await cli(["rotate", "--keys-file", await ringFile(2, 1)], { url });
    expect(text.stdout).toMatch(/\ncannot be opened\n(?: {2}[0-9a-f]{64} {2}\w+: .*\n)+/);
    expect(text.stdout).toContain("outcome: its key is not in the ring");
    expect(text.stdout).toContain("input: changed, or of another row");
  });

  it("does not open what was moved into another row, whatever the row says", async () => {
    const { url, service } = await filled([1]);
    const call = (key: string) => service.call("capture", { tenant: "acme", key, note: "same" });
    await call("k-capture-from");
    await call("k-capture-to");
    const to = "FROM oncekey.entry WHERE key = 'k-capture-to'";
    await query(
      url,
      `CREATE TABLE moved AS SELECT * ${to}`,
      `DELETE ${to}`,
      `UPDATE oncekey.entry AS e SET id = m.id, key = m.key, fingerprint = m.fingerprint, wire_digest = m.wire_digest
       FROM moved AS m WHERE e.key = 'k-capture-from'`,
    );
    await expect(call("k-capture-to")).rejects.toMatchObject({ code: "oncekey_store_broken" });
    expect(await rotate(url, [2, 1])).toMatchObject({
      code: 5,
      unreadable: [
        { part: "context", why: "broken" },
        { part: "outcome", why: "broken" },
      ],
    });
  });

  it("leaves rows alone that somebody holds, and says so", async () => {
    const { url } = await filled([1]);
    const holder = new pg.Client({ connectionString: url });
    await holder.connect();
    try {
      await holder.query("BEGIN");
      await holder.query("SELECT 1 FROM oncekey.entry WHERE key = 'k-capture' FOR UPDATE");
      const result = await rotate(url, [2, 1]);
      expect(result).toMatchObject({ code: 5, kind: "partly", underOtherKeys: 2, unreadable: [] });
      await holder.query("ROLLBACK");
      expect(await rotate(url, [2, 1])).toMatchObject({ code: 0, resealed: 2 });
    } finally {
      await holder.end();
    }
  });

  it("needs no more than the worker's grants", async () => {
    const { url } = await filled([1]);
    const worker = `w_${url.slice(-16)}`;
    await query(url, `CREATE ROLE "${worker}" LOGIN`);
    try {
      await query(url, printGrants({ worker }));
      expect(await rotate(url.replace("//postgres@", `//${worker}@`), [2, 1])).toMatchObject({
        code: 0,
        underOtherKeys: 0,
      });
    } finally {
      await query(url, `DROP OWNED BY "${worker}"`, `DROP ROLE "${worker}"`);
    }
  });
});

describe("the help", () => {
  it.each(["rotate", "erase"])("of %s has an example, fits a terminal, and needs no database", async (name) => {
    const { code, stdout, stderr } = await cli([name, "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(new RegExp(`\\nexamples\\n(?: {2}.*\\n)* {2}.*oncekey ${name}`));
    expect(stdout.split("\n").filter((line) => line.length > 120)).toEqual([]);
  });
});

describe("the keys of the command", () => {
  const [good] = [ringText(7)];
  const secret = good.slice(2);
  it.each<[string, string, RegExp]>([
    ["none", "", /^No encryption keys are given\. Set ONCEKEY_ENCRYPTION_KEYS/],
    ["no id", secret, /^ONCEKEY_ENCRYPTION_KEYS is not a list of encryption keys: key 1 is not of that form/],
    ["an id of 0", `0:${secret}`, /key 1 is not of that form\. .*ids are 1 to 255/],
    ["an id of 256", `256:${secret}`, /key 1 is not of that form/],
    ["a short key", `${good},8:${secret.slice(4)}`, /key 2 is not of that form/],
    ["a long key", `8:AAAA${secret}`, /key 1 is not of that form/],
    ["no base64", `8:${secret.replace("w", "!")}!`, /key 1 is not of that form/],
    ["one id twice", `${good},7:${secret}`, /two keys have one id/],
  ])("are refused with 2 where there is %s, and never repeated", async (_, ring, expected) => {
    process.env.ONCEKEY_ENCRYPTION_KEYS = ring;
    try {
      const run = await cli(["rotate"], { url: "postgres://127.0.0.1:1/none" });
      expect({ code: run.code, stdout: run.stdout }).toEqual({ code: 2, stdout: "" });
      expect(run.stderr.replace(/^oncekey: /, "")).toMatch(expected);
      expect(run.stderr).not.toContain(secret.slice(4, 24));
    } finally {
      delete process.env.ONCEKEY_ENCRYPTION_KEYS;
    }
  });

  it("are not taken from the command line: a key in the place of the file is not repeated", async () => {
    const run = await cli(["rotate", "--keys-file", good], { url: "postgres://127.0.0.1:1/none" });
    expect(run.code).toBe(2);
    expect(run.stderr).toMatch(/^oncekey: The file of --keys-file cannot be read \(ENOENT\)\./);
    expect(run.stderr).not.toContain(secret.slice(4, 24));
  });
});

describe("rotateStored", () => {
  /** Does something between the reading of a window and the commit that puts newly sealed values into its rows. */
  function interrupted(driver: Driver<pg.PoolClient>, work: () => Promise<unknown>): Driver<pg.PoolClient> {
    let isDone = false;
    return {
      ...driver,
      async run(sql, parameters, tx) {
        const isDue = !isDone && sql.includes("resealed");
        isDone ||= isDue;
        if (isDue) await work();
        return driver.run(sql, parameters, tx);
      },
    };
  }

  it("never brings back what was erased, or puts an old value over a new one, in between", async () => {
    const { url, service } = await filled([1]);
    await service.relay.runOnce();
    const driver = fromPg(testPool(url));
    const racing = interrupted(driver, () => eraseContent(driver, { tenant: "acme" }));
    const result = await rotateStored(racing, { encryptionKeys: [keyOf(2), keyOf(1)] });
    expect(result).toMatchObject({ kind: "rotated", resealed: 0, values: [] });
    for (const kind of KINDS) {
      expect(await service.call(kind, { tenant: "acme", key: `k-${kind}` })).toMatchObject({ status: 409 });
    }
  });

  it("leaves the records of a run alone whose owner is at work", async () => {
    const arrived = gate();
    const goOn = gate();
    const between = async () => {
      arrived.open();
      await goOn.promise;
    };
    const { url } = await createDatabase();
    const service = await contentService(url, { encryptionKeys: [keyOf(1)], between });
    const running = service.call("phases", { tenant: "acme", key: "k-phases" });
    await arrived.promise;
    const driver = fromPg(testPool(url));
    const ring = { encryptionKeys: [keyOf(2), keyOf(1)] };
    expect(await rotateStored(driver, ring)).toMatchObject({
      kind: "partly",
      resealed: 2,
      values: [
        { part: "context", keyId: 2 },
        { part: "input", keyId: 2 },
        { part: "record", keyId: 1, count: 1 },
      ],
    });
    goOn.open();
    expect(await running).toMatchObject({ status: 201 });
    expect(await rotateStored(driver, ring)).toMatchObject({ kind: "rotated", underOtherKeys: 0 });
    await answersUnder(url, [2], ["k-phases"]);
  });

  it.each([
    ["pg", (url: string) => fromPg(testPool(url)) as Driver<unknown>],
    ["postgres", (url: string) => fromPostgresJs(testSql(url)) as Driver<unknown>],
  ])("works in windows of few rows, under a stricter isolation level, through %s", async (_, driverOn) => {
    const { url } = await createDatabase({ isolation: "serializable" });
    const service = await contentService(url, { encryptionKeys: [keyOf(1)] });
    const keys = Array.from({ length: 7 }, (_, index) => `k-phases-${index}`);
    for (const key of keys) await service.call("phases", { tenant: "acme", key });
    const driver = driverOn(url);
    for (const [batch, newest] of [
      [1, 2],
      [3, 3],
      [7, 4],
    ] as const) {
      const result = await rotateStored(driver, { encryptionKeys: [newest, newest - 1].map(keyOf), batch });
      expect(result).toMatchObject({ kind: "rotated", resealed: 7 * 7, underOtherKeys: 0, newestKeyId: newest });
    }
    await answersUnder(url, [4], keys);
    await service.relay.runOnce();
    expect(await eraseContent(driver, { tenant: "acme" }, { batch: 3 })).toMatchObject({ kind: "partly", entries: 7 });
  });

  it("reads no more bytes at a time than were asked for, and at least one row", async () => {
    const { url, service } = await filled([1]);
    for (const key of ["k-1", "k-2"]) await service.call("phases", { tenant: "acme", key });
    const run = statementRunner(fromPg(testPool(url)), "oncekey");
    for (const { due, first, keyOf: keyOfRow } of rotatedTables) {
      const walk = async (mostBytes: number) => {
        const windows: number[] = [];
        for (let after = first; ; ) {
          const rows = await run(due, [...after, 100, sealedHead(2), false, mostBytes]);
          const last = rows.at(-1);
          if (last === undefined) return windows;
          windows.push(rows.length);
          after = keyOfRow(last);
        }
      };
      const [all = 0, ...none] = await walk(1e9);
      expect(none).toEqual([]);
      expect(await walk(1)).toEqual(Array.from({ length: all }, () => 1));
    }
  });

  it("refuses options that make no sense", async () => {
    const driver = fromPg(testPool((await createDatabase()).url));
    const encryptionKeys = [keyOf(1)];
    for (const options of [
      { encryptionKeys: [] },
      { encryptionKeys, batch: 0 },
      { encryptionKeys, batch: 10_001 },
      { encryptionKeys, pauseMs: -1 },
      { encryptionKeys: [{ id: 1, key: new Uint8Array(16) }] },
    ]) {
      await expect(rotateStored(driver, options)).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    }
  });
});

describe("oncekey inspect", () => {
  it("shows how an outcome is stored, and opens it with the keys for names, length and digest", async () => {
    const { url, service } = await filled([1], { compressBodies: true });
    const { body } = await service.call("capture", { tenant: "acme", key: "k-capture" });
    const shown = async (...args: string[]) => {
      const { code, stdout } = await cli(["inspect", "k-capture", ...args], { url });
      expect(code).toBe(0);
      expect(stdout).not.toContain("body-word");
      return stdout;
    };
    const closed = JSON.parse(await shown("--json")).entries[0].outcome;
    expect(closed).toMatchObject({ kind: "sealed", keyId: 1, pointer: null, provisional: false });
    expect(closed.storedBytes).toBeLessThan(LONG.length / 2);
    expect(await shown()).toMatch(
      /\noutcome +not shown: its key is not given .*\nstored +sealed under key 1, \d+ bytes\n/,
    );
    const ring = await ringFile(2, 1);
    const digest = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(body))).toString("hex");
    expect(JSON.parse(await shown("--json", "--keys-file", ring)).entries[0].outcome).toMatchObject({
      kind: "stored",
      keyId: 1,
      compressed: true,
      bodyBytes: LONG.length,
      bodySha256: digest,
      headerNames: expect.arrayContaining(["location"]),
    });
    const opened = await shown("--keys-file", ring);
    expect(opened).toMatch(new RegExp(`\\noutcome +stored, body of .*, SHA-256 ${digest}\\n`));
    expect(opened).toMatch(/\nstored +sealed under key 1, compressed, \d+ bytes\n/);
    expect(await shown("--keys-file", await ringFile(9))).toMatch(/not shown: its key is not given/);
    await query(url, "UPDATE oncekey.entry SET outcome = outcome || '\\x00' WHERE key = 'k-capture'");
    expect(await shown("--keys-file", ring)).toMatch(/not shown: it cannot be opened: it was changed/);
  });

  it("shows where a body lies that is not in the database, without going there", async () => {
    const { url } = await filled([1], { bodyThresholdBytes: 100 });
    const { stdout } = await cli(["inspect", "k-phases", "--keys-file", await ringFile(1)], { url });
    expect(stdout).toMatch(/\nbody lies at +[0-9a-f]{64}\/[0-9a-f]{32}\n/);
    expect(stdout).toMatch(/\noutcome +stored, body of [\d.]+ KiB, SHA-256 [0-9a-f]{64}\n/);
  });
});
