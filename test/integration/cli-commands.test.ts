import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createDatabase, passTime, query } from "../support/postgres.ts";
import { cli } from "./support/cli.ts";
import { CONTENT, entriesOn, SCOPE } from "./support/cli-entries.ts";

const DAY_MS = 86_400_000;

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** Runs the command on that database with --json; it must succeed. */
async function json(url: string, ...args: string[]) {
  const { code, stdout, stderr } = await cli([...args, "--json"], { url });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

describe("oncekey layout", () => {
  it("shows the layout, changes it both ways, and looks after its partitions", async () => {
    const { url } = await createDatabase();
    expect((await cli(["layout"], { url })).stdout).toBe("layout  plain\n");
    const changed = await cli(["layout", "partitioned", "--width", "12h", "--retention", "1d"], { url });
    expect(changed).toMatchObject({ code: 0, stderr: "" });
    expect(changed.stdout).toMatch(/^Outcomes go into partitions from now on\.\n\nlayout +partitioned, 12 h wide/);
    expect(changed.stdout.match(/^ {2}outcome_\d+ +.*, attached, /gm)).toHaveLength(4);
    const { layout } = await json(url, "layout");
    expect(layout).toMatchObject({ name: "partitioned", guarded: true, widthMs: DAY_MS / 2, behind: false });
    expect((await json(url, "status")).layout).toEqual(layout);
    expect((await cli(["status"], { url })).stdout).toMatch(/\npartitions of outcomes\n {2}outcome_\d+ /);
    const upkeep = { kind: "maintained", created: 0, dropped: 0 };
    expect(await json(url, "layout", "maintain")).toMatchObject({ upkeep });
    const back = await cli(["layout", "plain"], { url });
    expect(back.stdout).toMatch(/keep a worker running\.\n\nlayout +plain; outcomes of before are in partitions/);
  });

  it("says what it does not understand, and changes nothing", async () => {
    const { url } = await createDatabase();
    for (const args of [["monthly"], ["plain", "partitioned"], ["plain", "--width", "1d"]]) {
      expect(await cli(["layout", ...args], { url })).toMatchObject({ code: 2, stdout: "" });
    }
    expect(await cli(["layout", "partitioned", "--width", "1s"], { url })).toMatchObject({ code: 1, stdout: "" });
    expect((await json(url, "layout")).layout).toMatchObject({ name: "plain", guarded: false });
  });
});

describe("oncekey migrate", () => {
  it("creates the tables in an empty database, and then has nothing to do", async () => {
    const { url } = await createDatabase({ migrated: false });
    const first = await cli(["migrate"], { url });
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toMatch(/^Applied \d+ migrations? to schema oncekey:\n {2}0001 {2}\w+\n/);
    expect(await cli(["migrate"], { url })).toEqual({
      code: 0,
      stdout: "Schema oncekey is up to date; nothing was applied.\n",
      stderr: "",
    });
    expect(await json(url, "migrate")).toEqual({ schema: "oncekey", applied: [], granted: {} });
  });

  it("may be run by several at once: one of them does the work", async () => {
    const { url } = await createDatabase({ migrated: false });
    const results = await Promise.all([1, 2, 3].map(() => json(url, "migrate")));
    expect(results.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
  });

  it("uses the schema of --schema", async () => {
    const { url } = await createDatabase({ migrated: false });
    expect(await json(url, "migrate", "--schema", "payments_once")).toMatchObject({ schema: "payments_once" });
    expect(await json(url, "status", "--schema=payments_once")).toMatchObject({ schema: { name: "payments_once" } });
    expect(await query(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'oncekey'")).toEqual([]);
  });

  it("prints SQL without a database, which does the same when run by hand", async () => {
    const printed = await cli(["migrate", "--print", "--schema", "by_hand"]);
    expect(printed).toMatchObject({ code: 0, stderr: "" });
    const { url } = await createDatabase({ migrated: false });
    await query(url, printed.stdout);
    expect(await json(url, "migrate", "--schema", "by_hand")).toMatchObject({ applied: [] });
    const asData = await cli(["migrate", "--print", "--schema", "by_hand", "--json"]);
    expect(JSON.parse(asData.stdout)).toEqual({ schema: "by_hand", sql: printed.stdout });
  });

  it("grants an operator's role what status and inspect need, and no more", async () => {
    const { url } = await createDatabase();
    const role = `role_${url.slice(-16)}`;
    await query(url, `CREATE ROLE "${role}" LOGIN`);
    try {
      const granted = await cli(["migrate", "--grants", `console=${role}`], { url });
      expect(granted).toMatchObject({
        code: 0,
        stderr: "",
        stdout: expect.stringMatching(/Granted rights:\n {2}console/),
      });
      await (await entriesOn(url)).charge("k1");
      const asRole = url.replace("//postgres@", `//${role}@`);
      expect(await json(asRole, "status")).toMatchObject({ entries: { succeeded: 1 } });
      const { entries } = await json(asRole, "inspect", "k1");
      expect(entries[0]).toMatchObject({ state: "succeeded", outcome: { kind: "hidden" } });
      expect(entries[0].recorded.phases).toHaveLength(2);
      expect((await cli(["inspect", "k1"], { url: asRole })).stdout).toMatch(/outcome +not shown: this database role/);
      const refused = await cli(["purge"], { url: asRole });
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toMatch(/^oncekey: The database role may not do this: permission denied .*\n$/);
    } finally {
      await query(url, `DROP OWNED BY "${role}"`, `DROP ROLE "${role}"`);
    }
  });

  it("prints grants behind the migrations, and makes none for a role that does not exist", async () => {
    const printed = await cli(["migrate", "--print", "--grants", "api=the api,worker=w"]);
    expect(printed.stdout).toContain('GRANT USAGE ON SCHEMA oncekey TO "the api";\n');
    const { url } = await createDatabase();
    const failed = await cli(["migrate", "--grants", "api=postgres,worker=no_such_role_here"], { url });
    expect(failed).toMatchObject({ code: 1, stdout: "" });
    expect(failed.stderr).toMatch(
      /role "no_such_role_here" does not exist\. The tables were up to date, no grant was made\./,
    );
  });
});

describe("oncekey status", () => {
  it("counts nothing in a database without entries", async () => {
    const { url } = await createDatabase();
    expect(await json(url, "status")).toMatchObject({
      schema: { name: "oncekey", version: expect.any(Number) },
      entries: { in_progress: 0, needs_recovery: 0, released: 0, succeeded: 0, failed: 0 },
      oldestInProgressMs: null,
      lapsed: 0,
      expired: 0,
      pendingMessages: 0,
    });
    expect((await cli(["status"], { url })).stdout).toMatch(/\n {2}succeeded +0\n/);
  });

  it("counts entries by state, the oldest in progress, and what waits", async () => {
    const { url } = await createDatabase();
    // A long lease: its renewal would undo what passTime does.
    const entries = await entriesOn(url, { leaseMs: 600_000 });
    await entries.invoice("k1");
    await entries.invoice("k2");
    await passTime(url, DAY_MS);
    await entries.charge("k3");
    await entries.payout("k4");
    const goOn = await entries.standing("k5");
    await passTime(url, 3_725_000);
    const status = await json(url, "status");
    expect(status).toMatchObject({
      entries: { in_progress: 1, needs_recovery: 1, released: 0, succeeded: 3, failed: 0 },
      lapsed: 1,
      expired: 2,
      pendingMessages: 2,
      bytes: { entry: expect.any(Number), outbox: expect.any(Number) },
    });
    expect(status.oldestInProgressMs).toBeGreaterThanOrEqual(3_725_000);
    const { stdout } = await cli(["status"], { url });
    expect(stdout).toMatch(/^schema +oncekey, migration \d+\n/);
    expect(stdout).toMatch(/\n {2}in_progress +1 {2}oldest 1 h 2 min, 1 lapsed\n/);
    expect(stdout).toMatch(/\n {2}needs_recovery +1 {2}nobody knows what these did/);
    expect(stdout).toMatch(/\n {2}purge +2 expired entries\n {2}relay +2 pending messages\n/);
    expect(stdout).not.toContain("\u001b");
    await goOn().catch(() => {});
  });
});

describe("oncekey inspect", () => {
  it("shows what happened under a key, and never what was sent, recorded or answered", async () => {
    const { url } = await createDatabase();
    const made = await entriesOn(url);
    const result = await made.charge("k1");
    await made.invoice("k2");
    const body = result.kind === "completed" ? Buffer.from(result.outcome.body).toString() : "";
    const asJson = await cli(["inspect", "k1", "--json"], { url });
    const { key, entries } = JSON.parse(asJson.stdout);
    expect(key).toBe("k1");
    expect(entries).toEqual([
      expect.objectContaining({
        ...SCOPE,
        id: expect.stringMatching(/^[0-9a-f]{64}$/),
        operation: "charges.create",
        operationVersion: 2,
        runKind: "phases",
        state: "succeeded",
        attempt: 1,
        status: 201,
        outcome: expect.objectContaining({
          kind: "stored",
          headerNames: expect.arrayContaining(["location"]),
          bodyBytes: body.length,
          bodySha256: sha256(body),
        }),
        recorded: {
          phases: [
            { position: 0, kind: "phase", name: "charge_created" },
            { position: 1, kind: "call", name: "authorize" },
          ],
          intents: [
            {
              call: "authorize",
              generation: 1,
              state: "settled",
              form: "cancel",
              ageMs: expect.any(Number),
              settlesInMs: null,
            },
          ],
        },
        resolutions: [],
        messages: [],
      }),
    ]);
    const asText = await cli(["inspect", "k1"], { url });
    expect(asText.stdout).toMatch(/\nphases +0 {2}phase {2}charge_created\n +1 {2}call {2}authorize\n/);
    expect(asText.stdout).toMatch(/\nintents +authorize, generation 1, cancel, settled\n/);
    expect(asText.stdout).toContain(`SHA-256 ${sha256(body)}`);
    const sent = await json(url, "inspect", "k2");
    expect(sent.entries[0].messages).toMatchObject([{ topic: "invoice.created", state: "pending", attempts: 0 }]);
    expect(CONTENT.filter((word) => `${JSON.stringify(sent)}${asJson.stdout}${asText.stdout}`.includes(word))).toEqual(
      [],
    );
    expect(body).toContain("body-content");
  });

  it("shows why an entry needs recovery, and the call that may have been made", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url)).payout("k1");
    const { entries } = await json(url, "inspect", "k1");
    expect(entries[0]).toMatchObject({ state: "needs_recovery", completedAt: null, outcome: { kind: "none" } });
    expect(entries[0].reason).not.toBe("");
    const { stdout } = await cli(["inspect", "k1"], { url });
    expect(stdout).toMatch(/\nstate +needs_recovery\nreason +\S/);
    expect(stdout).toMatch(
      /\nintents +transfer, generation 1, never, open for \d.*, may land for a time that nobody declared\n/,
    );
  });

  it("shows every entry of a key, and those of one tenant and operation where asked", async () => {
    const { url } = await createDatabase();
    const entries = await entriesOn(url);
    await entries.invoice("k1");
    await entries.charge("k1");
    await entries.invoice("k1", { tenant: "globex", client: null });
    const found = async (...filter: string[]) => {
      const result = await json(url, "inspect", "k1", ...filter);
      return result.entries.map(({ tenant, operation }: Record<string, string>) => `${tenant} ${operation}`);
    };
    expect(await found()).toEqual(["acme invoices.create", "acme charges.create", "globex invoices.create"]);
    expect(await found("--tenant", "acme")).toEqual(["acme invoices.create", "acme charges.create"]);
    expect(await found("--tenant", "acme", "--operation", "charges.create")).toEqual(["acme charges.create"]);
    const { stdout } = await cli(["inspect", "k1"], { url });
    expect(stdout).toMatch(/^3 entries have this key, oldest first\. --tenant and --operation narrow it\.\n\nid /);
    expect(stdout.match(/^id /gm)).toHaveLength(3);
    expect(stdout).toMatch(/\nclient +\(none\)\n/);
  });

  it("says so where it shows only the first of too many entries", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url)).invoice("k1");
    await query(
      url,
      `INSERT INTO oncekey.entry
       SELECT (jsonb_populate_record(e, jsonb_build_object(
         'id', '\\x' || encode(sha256(n::text::bytea), 'hex'), 'tenant', 't' || n))).*
       FROM oncekey.entry AS e, generate_series(1, 1000) AS n`,
    );
    const { truncated, entries } = await json(url, "inspect", "k1");
    expect({ truncated, shown: entries.length }).toEqual({ truncated: true, shown: 1_000 });
    expect(await json(url, "inspect", "k1", "--tenant", "t7")).toMatchObject({ truncated: false, entries: [{}] });
  });

  it("finds keys that begin with a dash, stand in quotes, or are stored as digests only", async () => {
    const { url } = await createDatabase();
    const entries = await entriesOn(url, { storedKey: "digest" });
    await entries.invoice("-dashed-key");
    expect((await json(url, "inspect", '"-dashed-key"')).entries).toHaveLength(1);
    const { code, stdout } = await cli(["inspect", "--json", "--", "-dashed-key"], { url });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ key: "-dashed-key", entries: [{ state: "succeeded" }] });
    expect(stdout).not.toContain("sha256:");
  });

  it("ends with 3 where no entry has the key", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url)).invoice("k1");
    const text = await cli(["inspect", "k2"], { url });
    expect(text).toMatchObject({ code: 3, stderr: "", stdout: expect.stringMatching(/^No entry has this key\./) });
    const narrowed = await cli(["inspect", "k1", "--tenant", "globex", "--json"], { url });
    expect(narrowed).toMatchObject({ code: 3, stderr: "" });
    expect(JSON.parse(narrowed.stdout)).toEqual({ key: "k1", truncated: false, entries: [] });
  });

  it("lets stored text neither steer the terminal nor break a line", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url)).invoice("k1", { tenant: "a\u001b[2J\u009bH\nid  b", client: "" });
    const text = await cli(["inspect", "k1"], { url });
    expect(text.stdout).toContain("tenant     a\\u{1b}[2J\\u{9b}H\\u{a}id  b\n");
    expect(text.stdout).toMatch(/\nclient +""\n/);
    const asJson = await cli(["inspect", "k1", "--json"], { url });
    expect(asJson.stdout).not.toMatch(/[^\P{Cc}\n]/u);
    expect(JSON.parse(asJson.stdout).entries[0].tenant).toBe("a\u001b[2J\u009bH\nid  b");
  });
});

describe("oncekey purge", () => {
  it("deletes what is past its retention in batches, and nothing else", async () => {
    const { url } = await createDatabase();
    const entries = await entriesOn(url);
    for (const key of ["k1", "k2", "k3", "k4", "k5"]) await entries.invoice(key);
    await entries.payout("k6");
    await passTime(url, DAY_MS + 1);
    await entries.invoice("k7");
    expect(await json(url, "purge", "--batch", "2")).toEqual({ purged: 5 });
    expect(await query(url, "SELECT key FROM oncekey.entry ORDER BY key")).toEqual([{ key: "k6" }, { key: "k7" }]);
    const again = await cli(["purge"], { url });
    expect(again).toMatchObject({ code: 0, stdout: "No entry was past its retention; nothing was purged.\n" });
  });

  it("keeps tombstones, which inspect then shows without an outcome", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url, { tombstoneMs: DAY_MS })).invoice("k1");
    await passTime(url, DAY_MS + 1);
    expect(await cli(["purge"], { url })).toMatchObject({
      code: 0,
      stdout: "Purged 1 entry whose retention was over.\n",
    });
    expect((await cli(["inspect", "k1"], { url })).stdout).toMatch(/\noutcome +no longer kept\n/);
    expect(await json(url, "purge")).toEqual({ purged: 0 });
  });

  it("tells what was purged before it failed", async () => {
    const { url } = await createDatabase();
    const entries = await entriesOn(url);
    for (const key of ["k1", "k2", "k3"]) await entries.invoice(key);
    await passTime(url, DAY_MS + 1);
    await query(
      url,
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'kept on purpose'; END $$",
      "CREATE TRIGGER refuse BEFORE DELETE ON oncekey.entry FOR EACH ROW WHEN (OLD.key = 'k3') EXECUTE FUNCTION refuse()",
    );
    const failed = await cli(["purge", "--batch", "1", "--json"], { url });
    expect(failed).toMatchObject({ code: 1, stdout: "" });
    const { error } = JSON.parse(failed.stderr);
    expect(error).toMatchObject({ code: null, sqlState: "P0001" });
    expect(error.message).toMatch(/: kept on purpose\. 2 entries were purged before\./);
  });
});
