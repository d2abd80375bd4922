import { fromPg } from "oncekey/drivers/pg";
import { eraseContent, printGrants } from "oncekey/postgres";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { storedKey } from "../../src/core/key.ts";
import { gate } from "../support/gate.ts";
import { createDatabase, passTime, query, testPool } from "../support/postgres.ts";
import { cli } from "./support/cli.ts";
import { contentService, rowsOf, wordsIn } from "./support/stored-content.ts";

const KINDS = ["transaction", "phases", "capture"] as const;
const DAY_MS = 86_400_000;
const GONE = { status: 409, code: "idempotency_response_unavailable" };

/** A tenant's entries of every kind, two messages (delivered), and a remembered delivery. */
async function filled(tenants: readonly string[], options: Parameters<typeof contentService>[1] = {}) {
  const { url } = await createDatabase();
  const service = await contentService(url, options);
  for (const tenant of tenants) {
    for (const kind of KINDS) {
      expect(await service.call(kind, { tenant, client: "app", key: `k-${kind}` })).toMatchObject({ status: 201 });
    }
    expect(await service.consume(tenant, "d1")).toBe("done");
  }
  await service.relay.runOnce();
  return { url, service };
}

async function erase(url: string, ...args: string[]) {
  const { code, stdout, stderr } = await cli(["erase", "--json", ...args], { url });
  expect(stderr).toBe("");
  return { code, ...JSON.parse(stdout) };
}

describe("oncekey erase", () => {
  it("refuses every retry of what it erased, runs nothing again, and leaves other tenants byte for byte", async () => {
    const { url, service } = await filled(["acme", "globex"]);
    expect(await wordsIn(url, "acme")).toEqual(expect.arrayContaining(["header-word", "record-word", "message-word"]));
    const before = await rowsOf(url, "globex");
    const ran = service.runs.length;
    expect(await erase(url, "--tenant", "acme", "--apply")).toEqual({
      code: 0,
      kind: "erased",
      entries: 3,
      bodies: 0,
      messages: { delivered: 2, dead: 0 },
      deliveries: 1,
      left: {
        unfinished: { inProgress: 0, needsRecovery: 0, released: 0 },
        unfinishedIds: [],
        pendingMessages: 0,
        busy: 0,
      },
    });
    expect(await wordsIn(url, "acme")).toEqual([]);
    expect(await rowsOf(url, "acme")).not.toMatch(/request-of-|"k-[a-z]+"/);
    expect(await rowsOf(url, "globex")).toBe(before);
    for (const kind of KINDS) {
      expect(await service.call(kind, { tenant: "acme", client: "app", key: `k-${kind}` })).toMatchObject(GONE);
      expect(await service.call(kind, { tenant: "globex", client: "app", key: `k-${kind}` })).toMatchObject({
        status: 201,
      });
    }
    expect(await service.consume("acme", "d1")).toBe("duplicate");
    expect(await service.consume("globex", "d1")).toBe("replayed");
    expect(service.runs).toHaveLength(ran);
  });

  it("still tells another payload under an erased key from a retry", async () => {
    const { url, service } = await filled(["acme"]);
    await erase(url, "--tenant=acme", "--apply");
    for (const kind of KINDS) {
      const other = { tenant: "acme", client: "app", key: `k-${kind}`, note: "another" };
      const { status, code } = await service.call(kind, other);
      expect({ status, code }).toEqual({ status: 422, code: "idempotency_payload_mismatch" });
    }
  });

  it("only counts without --apply, and what it counts is what it erases", async () => {
    const { url } = await filled(["acme"]);
    const before = await rowsOf(url);
    const planned = await erase(url, "--tenant", "acme");
    expect(planned).toMatchObject({ code: 0, kind: "planned", entries: 3, messages: { delivered: 2 }, deliveries: 1 });
    expect(await rowsOf(url)).toBe(before);
    const erased = await erase(url, "--tenant", "acme", "--apply");
    expect({ ...erased, kind: "planned" }).toEqual(planned);
    expect(await erase(url, "--tenant", "acme", "--apply")).toMatchObject({ code: 0, entries: 0, deliveries: 0 });
    const { stdout } = await cli(["erase", "--tenant", "acme"], { url });
    expect(stdout).toMatch(/^Would be erased \(nothing was changed; --apply erases\)\n {2}finished entries {2}0\n/);
  });

  it("narrows to a client, an operation and a key, however the key is stored and given", async () => {
    const { url, service } = await filled(["acme"]);
    await service.call("transaction", { tenant: "acme", client: "other", key: "k-transaction" });
    await service.relay.runOnce();
    const counts = async (...args: string[]) => {
      const { code, kind, entries, messages, deliveries } = await erase(url, "--tenant=acme", ...args);
      return kind === "absent" ? { code } : { entries, messages: messages.delivered, deliveries };
    };
    expect(await counts()).toEqual({ entries: 4, messages: 3, deliveries: 1 });
    expect(await counts("--client=other")).toEqual({ entries: 1, messages: 1, deliveries: null });
    expect(await counts("--operation=invoices.create")).toEqual({ entries: 2, messages: 2, deliveries: null });
    expect(await counts("--key=k-capture")).toEqual({ entries: 1, messages: 0, deliveries: null });
    expect(await counts("--key=k-transaction", "--client=app")).toEqual({ entries: 1, messages: 1, deliveries: null });
    expect(await counts("--key=k-transaction", "--operation=charges.create")).toEqual({ code: 3 });
    expect(await counts("--client=nobody")).toEqual({ code: 3 });
    expect(await counts('--key="k-phases"', "--apply")).toEqual({ entries: 1, messages: 1, deliveries: null });
    expect(await counts("--key=k-phases", "--apply")).toEqual({ entries: 0, messages: 0, deliveries: null });
    const [row] = await query(url, "SELECT key FROM oncekey.entry WHERE run_kind = 'phases'");
    expect(row?.key).toBe(storedKey("k-phases", "digest"));
    const inspected = await cli(["inspect", "k-phases", "--json"], { url });
    expect(JSON.parse(inspected.stdout).entries).toMatchObject([{ state: "succeeded", outcome: { kind: "gone" } }]);
  });

  it("leaves what is not finished and not delivered, and says what to do", async () => {
    const arrived = gate();
    const goOn = gate();
    const between = async ({ key }: { key: string }) => {
      if (key !== "k-running") return;
      arrived.open();
      await goOn.promise;
    };
    const { url, service } = await filled(["acme"], { between });
    await service.call("transaction", { tenant: "acme", client: "app", key: "k-pending" });
    const running = service.call("phases", { tenant: "acme", client: "app", key: "k-running" });
    await arrived.promise;
    await query(
      url,
      `UPDATE oncekey.entry SET state = 'needs_recovery', reason = 'crash', completed_at = NULL, expires_at = NULL
       WHERE key = 'k-capture'`,
    );
    await query(url, "UPDATE oncekey.outbox SET state = 'dead', delivered_at = NULL WHERE topic = 'charge.settled'");
    const [needy] = await query(url, "SELECT encode(id, 'hex') AS id FROM oncekey.entry WHERE key = 'k-capture'");
    const text = await cli(["erase", "--tenant", "acme", "--apply"], { url });
    expect(text.code).toBe(5);
    expect(text.stdout).toContain("1 entry in progress: run it again when they have ended");
    expect(text.stdout).toContain("1 entry in needs_recovery: oncekey resolve <id>");
    expect(text.stdout).toContain(`  ${needy?.id}\n`);
    expect(text.stdout).toContain("1 message pending");
    expect(text.stdout).toMatch(/messages +1 delivered, 1 given up\n/);
    goOn.open();
    expect(await running).toMatchObject({ status: 201 });
    await service.relay.runOnce();
    const later = await erase(url, "--tenant", "acme", "--apply");
    expect(later).toMatchObject({ code: 5, kind: "partly", entries: 1, left: { unfinished: { needsRecovery: 1 } } });
    expect(await service.call("phases", { tenant: "acme", client: "app", key: "k-running" })).toMatchObject(GONE);
  });

  it("puts bodies that lie elsewhere on the sweeper's list, which removes them", async () => {
    const { url, service } = await filled(["acme", "globex"], { bodyThresholdBytes: 100 });
    expect(service.bodies.size).toBe(6);
    expect(await erase(url, "--tenant", "acme")).toMatchObject({ kind: "planned", bodies: 3 });
    expect(await erase(url, "--tenant", "acme", "--apply")).toMatchObject({ kind: "erased", bodies: 3 });
    await service.sweeper.runOnce();
    expect(service.bodies.size).toBe(3);
    for (const kind of KINDS) {
      expect(await service.call(kind, { tenant: "acme", client: "app", key: `k-${kind}` })).toMatchObject(GONE);
      const kept = await service.call(kind, { tenant: "globex", client: "app", key: `k-${kind}` });
      expect(kept.body).toContain("body-word");
    }
  });

  it("is purged when its retention ends, or its tombstone, which --tombstone makes longer and never shorter", async () => {
    const { url, service } = await filled(["acme", "globex"]);
    await erase(url, "--tenant=acme", "--apply");
    await erase(url, "--tenant=globex", "--apply", "--tombstone=10d");
    expect(await erase(url, "--tenant=globex", "--apply", "--tombstone=1d")).toMatchObject({ entries: 0 });
    await passTime(url, 2 * DAY_MS);
    expect((await cli(["purge"], { url })).stdout).toMatch(/^Purged 3 entries/);
    const ran = service.runs.length;
    for (const kind of KINDS) {
      expect(await service.call(kind, { tenant: "globex", client: "app", key: `k-${kind}` })).toMatchObject(GONE);
    }
    expect(service.runs).toHaveLength(ran);
    expect(await service.call("phases", { tenant: "acme", client: "app", key: "k-phases" })).toMatchObject({
      status: 201,
    });
    await passTime(url, 10 * DAY_MS);
    await cli(["purge"], { url });
    expect(await query(url, "SELECT 1 FROM oncekey.entry WHERE tenant = 'globex'")).toEqual([]);
  });

  it("waits for rows that somebody holds for a moment, and counts those that are held on", async () => {
    const { url } = await filled(["acme"]);
    const holder = new pg.Client({ connectionString: url });
    await holder.connect();
    try {
      await holder.query("BEGIN");
      await holder.query("SELECT 1 FROM oncekey.entry WHERE run_kind = 'phases' FOR UPDATE");
      expect(await erase(url, "--tenant=acme", "--apply")).toMatchObject({ code: 5, entries: 2, left: { busy: 1 } });
      const waiting = erase(url, "--tenant=acme", "--apply");
      await holder.query("ROLLBACK");
      expect(await waiting).toMatchObject({ code: 0, entries: 1, left: { busy: 0 } });
    } finally {
      await holder.end();
    }
  });

  it("needs no more than the worker's grants, and is refused to the API's role", async () => {
    const { url } = await filled(["acme"]);
    const name = `role_${url.slice(-14)}`;
    const [worker, api] = [`w${name}`, `a${name}`];
    await query(url, `CREATE ROLE "${worker}" LOGIN`, `CREATE ROLE "${api}" LOGIN`);
    try {
      await query(url, printGrants({ worker, api }));
      const as = (role: string) => url.replace("//postgres@", `//${role}@`);
      const refused = await cli(["erase", "--tenant=acme", "--apply"], { url: as(api) });
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toMatch(/permission denied.* What was erased before stays so; run it again/);
      expect(await erase(as(worker), "--tenant=acme", "--apply")).toMatchObject({ code: 0, deliveries: 1 });
      expect(await wordsIn(url)).toEqual([]);
    } finally {
      for (const role of [worker, api]) await query(url, `DROP OWNED BY "${role}"`, `DROP ROLE "${role}"`);
    }
  });

  it("erases in small batches beside requests, and under a stricter isolation level", async () => {
    const { url } = await createDatabase({ isolation: "serializable" });
    const service = await contentService(url);
    const keys = Array.from({ length: 24 }, (_, index) => `k-${index}`);
    const call = (key: string) => service.call("phases", { tenant: "acme", key });
    for (const key of keys.slice(0, 12)) expect(await call(key)).toMatchObject({ status: 201 });
    /** As clients do: where transactions were in each other's way (503), the same key again. */
    const callUntilAnswered = async (key: string) => {
      for (;;) {
        const answer = await call(key);
        if (answer.code !== "idempotency_contention") return answer;
      }
    };
    const [erased, ...answers] = await Promise.all([
      erase(url, "--tenant=acme", "--apply", "--batch=2"),
      ...keys.slice(12).map(callUntilAnswered),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    expect(erased.entries).toBeGreaterThanOrEqual(12);
    await service.relay.runOnce();
    expect(await erase(url, "--tenant=acme", "--apply", "--batch=5")).toMatchObject({ code: 0, kind: "erased" });
    const ran = service.runs.length;
    for (const key of keys) expect(await call(key)).toMatchObject(GONE);
    expect(service.runs).toHaveLength(ran);
    expect(await wordsIn(url)).toEqual([]);
  });

  it.each<[string, string[], RegExp]>([
    ["no tenant", [], /^--tenant is missing/],
    ["an empty tenant", ["--tenant="], /^The option "--tenant" needs a value/],
    ["an operand", ["acme"], /^Too many operands/],
    ["a tombstone of no duration", ["--tenant=a", "--tombstone=soon"], /^--tombstone must be a duration/],
    ["a batch of nothing", ["--tenant=a", "--batch=0"], /^--batch must be a whole number from 1 to 100000/],
    ["a tenant that no entry can have", ["--tenant=a".padEnd(300, "a")], /^--tenant must be text of at most 255/],
  ])("refuses %s with 2, before it connects", async (_, args, expected) => {
    const { code, stdout, stderr } = await cli(["erase", ...args], { url: "postgres://127.0.0.1:1/none" });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr.replace(/^oncekey: /, "")).toMatch(expected);
  });
});

describe("eraseContent", () => {
  it("refuses a selection that a forgotten variable made wider", async () => {
    const driver = fromPg(testPool((await createDatabase()).url));
    const wrong = [
      {},
      { tenant: "" },
      { tenant: "a", key: "" },
      { tenant: "a", operation: "" },
      { tenant: "a\0" },
      { tenant: "a", client: 5 },
    ];
    for (const selection of wrong) {
      const refused = eraseContent(driver, selection as { tenant: string });
      await expect(refused).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    }
    for (const options of [{ batch: 0 }, { batch: 1.5 }, { tombstoneMs: -1 }, { tombstoneMs: Number.NaN }]) {
      await expect(eraseContent(driver, { tenant: "a" }, options)).rejects.toMatchObject({
        code: "oncekey_config_invalid",
      });
    }
    expect(await eraseContent(driver, { tenant: "nobody" })).toEqual({ kind: "absent" });
  });

  it("reaches what has no client with null, and a tenant whose name looks like a pattern", async () => {
    const { url } = await createDatabase();
    const service = await contentService(url);
    for (const client of ["app", undefined]) {
      for (const tenant of ["ac%e", "acme"]) {
        const caller = client === undefined ? { tenant, key: "k" } : { tenant, client, key: "k" };
        await service.call("capture", caller);
      }
    }
    const driver = fromPg(testPool(url));
    expect(await eraseContent(driver, { tenant: "ac%e", client: null })).toMatchObject({ kind: "erased", entries: 1 });
    expect(await eraseContent(driver, { tenant: "ac%e" })).toMatchObject({ entries: 1 });
    expect(await wordsIn(url, "ac%e")).toEqual([]);
    expect(await wordsIn(url, "acme")).toEqual(["context-word", "header-word", "body-word"]);
  });
});
